"""Opens and keeps the connection of a task to its database, and classifies its errors.

It stays in `context.kept` between slices, since opening one costs a TLS handshake and a login.
"""

import os
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from connectors.plugins.postgres import addresses
from connectors.sdk import outgoing
from connectors.sdk.checks import in_range, non_empty
from connectors.sdk.configs import REQUIRED, Importance, Key, Kind, Secret
from connectors.sdk.connector import Context, Parsed
from connectors.sdk.errors import ConnectorError, RetriableError
from connectors.sdk.fixed_keys import fixed_key

if TYPE_CHECKING:
    import psycopg

URL: Final = "connection.url"
USER: Final = "connection.user"
PASSWORD: Final = "connection.password"  # noqa: S105 - the name of a key
ATTEMPTS: Final = "connection.attempts"
BACKOFF: Final = "connection.backoff.ms"
DIALECT: Final = "dialect.name"
TIMEZONE: Final = "db.timezone"
STATEMENT_TIMEOUT: Final = "statement.timeout.ms"
GROUP: Final = "Connection"

# A live server answers within milliseconds; several addresses may be tried in turn.
CONNECT_S: Final = 5
# How long a server may be silent on an open connection before it counts as gone.
SILENCE_MS: Final = 10_000
# The longest time that a killed task may hold locks on rows.
IDLE_IN_TRANSACTION_MS: Final = 60_000
# A lock that takes longer is held by a client that hangs.
LOCK_MS: Final = 10_000
# Parameters that libpq would otherwise read from environment variables or files of its user. These
# hold credentials of Samsa's own database, and the author of a config could have them sent to any
# server. An empty text overrides them; a missing parameter does not.
NOTHING_OF_OURS: Final[Mapping[str, str]] = {
    "passfile": f"{os.devnull}/none",
    "gssencmode": "disable",
    # Kerberos tickets and client certificates belong to Samsa as well.
    "require_auth": "!gss,!sspi",
    "sslcertmode": "disable",
    "options": "",
    "target_session_attrs": "any",
    "client_encoding": "UTF8",
}
# Keys of `context.kept`: the connection, and the count of failures.
CONNECTION: Final = "postgres.connection"
FAILURES: Final = "postgres.failures"

# SQLSTATE classes of errors that may pass: connection, resources, operator intervention, system,
# and conflicts of transactions.
PASSING_CLASSES: Final = ("08", "40", "53", "57", "58")
# Classes of errors that repeat values: of data, of constraints, and those that functions raise.
CLASSES_OF_ROWS: Final = ("22", "23", "P0")
PASSING_STATES: Final = ("55P03", "55006", "25006", "25P03")
# libpq's texts for final refusals, which have no SQLSTATE.
FINAL_WORDS: Final = (
    *("authentication failed", "does not exist", "no pg_hba.conf entry"),
    *("permission denied", "must be superuser"),
)


def keys() -> tuple[Key, ...]:
    """Return the keys of both connectors for the database to connect to."""
    return (
        _key(
            URL,
            Kind.STRING,
            "Where the database is: jdbc:postgresql://host:5432/database, or postgresql://….",
            default=REQUIRED,
            importance=Importance.HIGH,
            check=addresses.problem,
            targets=_targets,
        ),
        _key(
            USER, Kind.STRING, "The role to log in as.", importance=Importance.HIGH, check=non_empty
        ),
        _key(PASSWORD, Kind.PASSWORD, "Its password.", importance=Importance.HIGH),
        _key(
            ATTEMPTS,
            Kind.INT,
            "After how many failures in a row to reach the database the task fails; -1 for "
            "never, so that it continues when the database is back. A task that has never "
            "reached it fails after five minutes.",
            default=-1,
            check=in_range(-1),
        ),
        _key(
            BACKOFF,
            Kind.LONG,
            "How long to wait between two attempts, in milliseconds.",
            default=10_000,
            check=in_range(0, 600_000),
        ),
        fixed_key(
            DIALECT, Kind.STRING, "", "it is PostgreSQL", also=("PostgreSqlDatabaseDialect",)
        ),
        fixed_key(TIMEZONE, Kind.STRING, "UTC", "columns without a time zone are UTC"),
        _key(
            STATEMENT_TIMEOUT,
            Kind.INT,
            "How long one statement may take, in milliseconds, before it is tried again.",
            default=20_000,
            # A slice ends after 30 s, and is killed after twice that.
            check=in_range(100, 30_000),
        ),
    )


def _targets(value: str, _values: Mapping[str, Any]) -> list[tuple[str, int]]:
    address = addresses.parse_address(value)
    return [(address.host, address.port)]


def connected(context: Context, parsed: Parsed) -> "psycopg.Connection[Any]":
    """Return the kept connection of this task, or a new one."""
    kept = context.kept.get(CONNECTION)
    if kept is not None and not kept.closed and not kept.broken:
        return kept  # type: ignore[no-any-return]
    forget(context)
    # A failure that ends the slice ends what was kept, too.
    context.kept.setdefault(FAILURES, context.retries)
    context.kept[CONNECTION] = opened = connect(parsed, context.kept)
    context.reached()
    return opened


def forget(context: Context) -> None:
    """Close the kept connection, as after a failure that may have broken it."""
    kept = context.kept.pop(CONNECTION, None)
    if kept is not None:
        kept.close()


def connect(parsed: Parsed, kept: MutableMapping[str, Any]) -> "psycopg.Connection[Any]":
    """Open a connection in autocommit mode, with limits on the time of statements."""
    import psycopg  # noqa: PLC0415 - only tasks need it

    address = addresses.parse_address(parsed[URL])
    try:
        opened = reach(address, user=parsed[USER], password=parsed[PASSWORD])
    except psycopg.Error as error:
        raise _connect_failure(error, address, parsed, kept) from None
    with translated():
        _prepare(opened, address.schema, parsed[STATEMENT_TIMEOUT])
    kept[FAILURES] = 0
    return opened


def reach(
    address: addresses.Address, *, user: str | None, password: Secret | None, **more: Any
) -> "psycopg.Connection[Any]":
    """Open a connection to an allowed target; `more` are libpq parameters."""
    import psycopg  # noqa: PLC0415 - only tasks need it

    reached = outgoing.addresses(address.host, address.port)
    return psycopg.connect(
        host=",".join([address.host] * len(reached)),
        hostaddr=",".join(reached),
        port=address.port,
        dbname=address.database,
        sslmode=address.ssl_mode,
        sslrootcert="system" if address.ssl_mode == "verify-full" else None,
        user=user or address.user,
        password=password.reveal() if password else "",
        **{**NOTHING_OF_OURS, **more},
        connect_timeout=CONNECT_S,
        application_name=address.application,
        keepalives_idle=SILENCE_MS // 1000,
        keepalives_interval=2,
        keepalives_count=3,
        tcp_user_timeout=SILENCE_MS,
        autocommit=True,
    )


@contextmanager
def translated() -> Iterator[None]:
    """Convert errors of the database to errors of the sdk, by who can fix them."""
    import psycopg  # noqa: PLC0415 - only tasks need it

    try:
        yield
    except psycopg.Error as error:
        raise failure_of(error) from error


def failure_of(error: "psycopg.Error") -> ConnectorError:
    state, text = error.sqlstate or "", first_line(error)
    return judged(state, text, is_of_the_server=_is_of_the_server(error))


def judged(state: str, text: str, *, is_of_the_server: bool = True) -> ConnectorError:
    """Return the exception for a server error: one to retry, or one that fails the task."""
    # Without a SQLSTATE, the connection itself has failed.
    if state.startswith(CLASSES_OF_ROWS):
        return ConnectorError("PostgreSQL", about_record=f": {text} ({state})")
    is_passing = not state or state.startswith(PASSING_CLASSES) or state in PASSING_STATES
    if is_passing and is_of_the_server:
        return RetriableError(f"PostgreSQL: {text}")
    return ConnectorError(f"PostgreSQL: {text}" + (f" ({state})" if state else ""))


def is_about_data(error: "psycopg.Error") -> bool:
    """Return whether single rows cause the error: a broken constraint, or an invalid value."""
    import psycopg  # noqa: PLC0415 - only tasks need it

    return isinstance(error, (psycopg.DataError, psycopg.IntegrityError))


def first_line(error: Exception) -> str:
    """Return the error message without the server's details, which show the row."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _is_of_the_server(error: "psycopg.Error") -> bool:
    import psycopg  # noqa: PLC0415 - only tasks need it

    return isinstance(error, (psycopg.OperationalError, psycopg.InternalError))


def _prepare(opened: "psycopg.Connection[Any]", schema: str, timeout_ms: int) -> None:
    settings = {
        "TimeZone": "UTC",
        "DateStyle": "ISO",
        "statement_timeout": str(timeout_ms),
        "lock_timeout": str(LOCK_MS),
        "idle_in_transaction_session_timeout": str(IDLE_IN_TRANSACTION_MS),
    }
    if schema:
        settings["search_path"] = schema
    pairs = [text for pair in settings.items() for text in pair]
    calls = ", ".join(["set_config(%s, %s, false)"] * len(settings))
    opened.execute(f"SELECT {calls}", pairs)


def _connect_failure(
    error: "psycopg.Error",
    address: addresses.Address,
    parsed: Parsed,
    kept: MutableMapping[str, Any],
) -> ConnectorError:
    text = f"{address.host}:{address.port}/{address.database}: {first_line(error)}"
    failures = kept[FAILURES] = kept.get(FAILURES, 0) + 1
    if any(word in str(error) for word in FINAL_WORDS):
        return ConnectorError(text)
    if 0 <= parsed[ATTEMPTS] <= failures:
        return ConnectorError(f"{text}; gave up after {failures} attempts ({ATTEMPTS})")
    return RetriableError(text, wait_s=parsed[BACKOFF] / 1000)


def _key(name: str, kind: Kind, doc: str, *, default: Any = None, **more: Any) -> Key:
    importance = more.pop("importance", Importance.LOW)
    return Key(
        name=name, kind=kind, default=default, importance=importance, doc=doc, group=GROUP, **more
    )
