"""Checks a config against its server before use: connections, and settings that cannot work.

An unreachable server is not an error of the config, since it may come back.
"""

from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from connectors.plugins.postgres.capture import slots
from connectors.plugins.postgres.capture.event_keys import DATABASE
from connectors.plugins.postgres.capture.relations import SESSION
from connectors.plugins.postgres.capture.settings import (
    AUTOCREATE,
    HOST,
    SLOT,
    CaptureSettings,
)
from connectors.plugins.postgres.connection import (
    FINAL_WORDS,
    LOCK_MS,
    first_line,
    reach,
    translated,
)
from connectors.sdk.configs import Value
from connectors.sdk.errors import ConfigError, ConnectorError, RetriableError

if TYPE_CHECKING:
    import psycopg

NEEDED_LEVEL: Final = "logical"
# Timeout: a form waits for the answer.
ANSWER_MS: Final = 3000


def connect(
    settings: CaptureSettings, *, statement_ms: int | None = None, **more: Any
) -> "psycopg.Connection[Any]":
    """Open a connection with the value formats of the log; `more` are libpq parameters."""
    import psycopg  # noqa: PLC0415 - only tasks need it

    address = settings.address
    # Statements of a replication connection do not end on their own.
    limits = () if more else (f"-c statement_timeout={statement_ms or settings.statement_ms}",)
    options = " ".join((*SESSION, *limits, f"-c lock_timeout={LOCK_MS}"))
    try:
        return reach(
            address,
            user=settings.user,
            password=settings.password,
            options=options,
            client_encoding="UTF8",
            **more,
        )
    except psycopg.Error as error:
        text = f"{address.host}:{address.port}/{address.database}: {first_line(error)}"
        if any(word in str(error) for word in FINAL_WORDS):
            raise ConnectorError(text) from None
        raise RetriableError(text, wait_s=settings.retry_wait_s) from None


def problems(settings: CaptureSettings) -> list[Value]:
    """Return the settings that cannot work with this server; nothing if it is unreachable."""
    try:
        opened = connect(settings, statement_ms=ANSWER_MS)
    except (ConfigError, RetriableError):
        # Only the workers can tell whether they reach it.
        return []
    except ConnectorError as error:
        return [Value(name=DATABASE, value=settings.address.database, errors=(str(error),))]
    with closing(opened):
        return [wrong for wrong in (_level(opened, settings), _parts(opened, settings)) if wrong]


def _level(opened: "psycopg.Connection[Any]", settings: CaptureSettings) -> Value | None:
    if not settings.mode.has_stream:
        return None
    with translated():
        (level,) = opened.execute("SELECT current_setting('wal_level')").fetchone() or ("",)
    if level == NEEDED_LEVEL:
        return None
    text = (
        f"the server runs with wal_level={level}, which does not support logical decoding: set"
        f" it to {NEEDED_LEVEL} and restart the server"
    )
    return Value(name=HOST, value=settings.address.host, errors=(text,))


def _parts(opened: "psycopg.Connection[Any]", settings: CaptureSettings) -> Value | None:
    """Check the slot and the publication, if the task does not create them."""
    key, value = SLOT, settings.slot
    try:
        with translated():
            slots.slot_of(opened, settings.slot)
            key, value = AUTOCREATE, settings.autocreate.value
            if settings.autocreate is slots.Autocreate.DISABLED and settings.mode.has_stream:
                slots.require_publication(opened, settings.publication)
    except RetriableError:
        return None
    except ConnectorError as error:
        return Value(name=key, value=value, errors=(str(error),))
    return None
