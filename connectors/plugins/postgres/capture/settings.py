"""Settings of a capture: Debezium's keys with its defaults, and their parsed value."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from connectors.plugins.postgres.addresses import SSL_MODES, Address
from connectors.plugins.postgres.capture import event_keys, filters
from connectors.plugins.postgres.capture.event_keys import DATABASE, PREFIX
from connectors.plugins.postgres.capture.event_settings import EventSettings
from connectors.plugins.postgres.capture.filters import Choice, Filters
from connectors.plugins.postgres.capture.slots import Autocreate
from connectors.sdk.checks import in_range, non_empty, one_of
from connectors.sdk.configs import REQUIRED, Importance, Key, Kind, Secret, Value
from connectors.sdk.connector import Parsed

# The connector version in events: the Debezium version whose form they have.
VERSION: Final = "3.6.3.Final"
HOST: Final = "database.hostname"
PORT: Final = "database.port"
USER: Final = "database.user"
PASSWORD: Final = "database.password"  # noqa: S105 - the name of a key
SSL_MODE: Final = "database.sslmode"
QUERY_TIMEOUT: Final = "database.query.timeout.ms"
PLUGIN: Final = "plugin.name"
SLOT: Final = "slot.name"
SLOT_RETRIES: Final = "slot.max.retries"
SLOT_DELAY: Final = "slot.retry.delay.ms"
PUBLICATION: Final = "publication.name"
AUTOCREATE: Final = "publication.autocreate.mode"
BY_ROOT: Final = "publish.via.partition.root"
SCHEMAS: Final = ("schema.include.list", "schema.exclude.list")
TABLES: Final = ("table.include.list", "table.exclude.list")
COLUMNS: Final = ("column.include.list", "column.exclude.list")
MESSAGE_KEYS: Final = "message.key.columns"
SNAPSHOT_MODE: Final = "snapshot.mode"
SNAPSHOT_TABLES: Final = "snapshot.include.collection.list"
SNAPSHOT_ROWS: Final = "snapshot.fetch.size"
HEARTBEAT: Final = "heartbeat.interval.ms"
HEARTBEAT_QUERY: Final = "heartbeat.action.query"
HEARTBEAT_PREFIX: Final = "heartbeat.topics.prefix"
OLD_HEARTBEAT_PREFIX: Final = "topic.heartbeat.prefix"
BATCH: Final = "max.batch.size"
STATUS_INTERVAL: Final = "status.update.interval.ms"
MAX_RETRIES: Final = "errors.max.retries"
RETRY_WAIT: Final = "retriable.restart.connector.wait.ms"
WHERE, WHAT, HOW = "Connection", "What to capture", "How to read it"

# A slice ends after 30 s, and is ended by force after twice that.
MAX_STATEMENT_MS: Final = 30_000


class SnapshotMode(Enum):
    """When to read the existing rows: Debezium's words."""

    INITIAL = "initial"
    INITIAL_ONLY = "initial_only"
    NO_DATA = "no_data"
    NEVER = "never"
    ALWAYS = "always"
    WHEN_NEEDED = "when_needed"

    @property
    def has_stream(self) -> bool:
        return self is not SnapshotMode.INITIAL_ONLY

    @property
    def has_rows(self) -> bool:
        return self not in (SnapshotMode.NO_DATA, SnapshotMode.NEVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureSettings:
    address: Address
    user: str | None
    password: Secret | None
    statement_ms: int
    slot: str
    slot_retries: int
    slot_delay_s: float
    publication: str
    autocreate: Autocreate
    by_root: bool
    filters: Filters
    mode: SnapshotMode
    snapshot_rows: int
    heartbeat_s: float
    heartbeat_query: str | None
    heartbeat_topic: str
    batch: int
    status_s: float
    max_retries: int
    retry_wait_s: float
    events: EventSettings

    @classmethod
    def of(cls, parsed: Parsed) -> "CaptureSettings":
        return cls(
            address=Address(
                host=parsed[HOST],
                port=parsed[PORT],
                database=parsed[DATABASE],
                ssl_mode=parsed[SSL_MODE],
            ),
            user=parsed[USER],
            password=parsed[PASSWORD],
            statement_ms=min(parsed[QUERY_TIMEOUT] or MAX_STATEMENT_MS, MAX_STATEMENT_MS),
            slot=parsed[SLOT],
            slot_retries=parsed[SLOT_RETRIES],
            slot_delay_s=parsed[SLOT_DELAY] / 1000,
            publication=parsed[PUBLICATION],
            autocreate=Autocreate(parsed[AUTOCREATE]),
            by_root=parsed[BY_ROOT],
            filters=filters_of(parsed),
            mode=SnapshotMode(parsed[SNAPSHOT_MODE]),
            snapshot_rows=parsed[SNAPSHOT_ROWS],
            heartbeat_s=parsed[HEARTBEAT] / 1000,
            heartbeat_query=parsed[HEARTBEAT_QUERY] or None,
            heartbeat_topic=f"{_heartbeat_prefix(parsed)}.{parsed[PREFIX]}",
            batch=parsed[BATCH],
            status_s=parsed[STATUS_INTERVAL] / 1000,
            max_retries=parsed[MAX_RETRIES],
            retry_wait_s=parsed[RETRY_WAIT] / 1000,
            events=event_keys.settings_of(parsed, version=VERSION),
        )


def filters_of(parsed: Parsed) -> Filters:
    """Parse the lists. Raises ConfigError for an invalid expression."""
    schemas, tables, columns = (
        Choice(include=filters.any_of(parsed[include]), exclude=filters.any_of(parsed[exclude]))
        for include, exclude in (SCHEMAS, TABLES, COLUMNS)
    )
    snapshot = filters.any_of(parsed[SNAPSHOT_TABLES])
    return Filters(
        schemas=schemas,
        tables=tables,
        columns=columns,
        snapshot=snapshot,
        keys=filters.key_rules(parsed[MESSAGE_KEYS]),
    )


def problems(parsed: Parsed) -> list[Value]:
    """Return errors of keys that conflict."""
    return [
        Value(
            name=exclude,
            value=parsed[exclude],
            errors=(f"{include} is given as well: give only one of the two",),
        )
        for include, exclude in (SCHEMAS, TABLES, COLUMNS)
        if parsed.get(include) and parsed.get(exclude)
    ]


def keys() -> tuple[Key, ...]:
    """Return the supported keys; others accept one value, or are refused by name."""
    return (*_where_keys(), *_what_keys(), *_how_keys(), *_pace_keys())


def _heartbeat_prefix(parsed: Parsed) -> str:
    return str(parsed[OLD_HEARTBEAT_PREFIX] or parsed[HEARTBEAT_PREFIX])


def _key(name: str, kind: Kind, default: Any, doc: str, group: str, **more: Any) -> Key:
    importance = more.pop("importance", Importance.MEDIUM)
    return Key(
        name=name, kind=kind, default=default, importance=importance, doc=doc, group=group, **more
    )


def _list(name: str, doc: str, **more: Any) -> Key:
    return _key(name, Kind.LIST, (), doc, WHAT, check=filters.wrong_with, **more)


def _check_slot(value: Any) -> str | None:
    text = value or ""
    is_name = text.isascii() and text == text.lower() and text.replace("_", "").isalnum()
    fits = is_name and len(text) <= 63
    return None if fits else "A slot name has at most 63 lower-case letters, digits and underscores"


def _check_name(value: Any) -> str | None:
    fits = 0 < len((value or "").encode()) <= 63 and "\0" not in value
    return None if fits else "A name has 1 to 63 bytes"


def _check_old_prefix(value: Any) -> str | None:
    return event_keys.check_prefix(value) if value else None


def _where_keys() -> tuple[Key, ...]:
    high = Importance.HIGH
    return (
        _key(
            HOST,
            Kind.STRING,
            REQUIRED,
            "The host of the database.",
            WHERE,
            importance=high,
            check=non_empty,
            targets=lambda host, values: [(host, values[PORT])],
        ),
        _key(PORT, Kind.INT, 5432, "Its port.", WHERE, importance=high, check=in_range(1, 65535)),
        _key(
            USER,
            Kind.STRING,
            REQUIRED,
            "The role to log in as; it needs REPLICATION, and SELECT on the tables.",
            WHERE,
            importance=high,
            check=non_empty,
        ),
        _key(PASSWORD, Kind.PASSWORD, None, "Its password.", WHERE, importance=high),
        _key(
            DATABASE,
            Kind.STRING,
            REQUIRED,
            "The database whose tables are captured.",
            WHERE,
            importance=high,
            check=non_empty,
        ),
        _key(
            SSL_MODE,
            Kind.STRING,
            "prefer",
            "Whether to encrypt the connection, and to check the server's certificate, against "
            "the system's authorities.",
            WHERE,
            check=one_of(*SSL_MODES),
            recommend=lambda _values: list(SSL_MODES),
        ),
        _key(
            QUERY_TIMEOUT,
            Kind.INT,
            600_000,
            f"The timeout of a statement in milliseconds; {MAX_STATEMENT_MS} at most.",
            WHERE,
            importance=Importance.LOW,
            check=in_range(0),
        ),
    )


def _what_keys() -> tuple[Key, ...]:
    modes = [mode.value for mode in Autocreate]
    return (
        _list(
            TABLES[0],
            "Expressions for the whole names of tables, as public\\.orders; all tables where none "
            "is given.",
            importance=Importance.HIGH,
        ),
        _list(TABLES[1], "Expressions for tables that are not captured."),
        _list(SCHEMAS[0], "Expressions for names of schemas.", importance=Importance.HIGH),
        _list(SCHEMAS[1], "Expressions for schemas that are not captured."),
        _list(COLUMNS[0], "Expressions for columns to capture, as public\\.orders\\.id."),
        _list(COLUMNS[1], "Expressions for columns that are not captured."),
        _key(
            MESSAGE_KEYS,
            Kind.STRING,
            None,
            "Key columns of records instead of the primary key, as "
            "public\\.orders:customer,day;public\\.events:id. The replica identity of such a table "
            "must include them, or deletes have no key.",
            WHAT,
            check=filters.wrong_with_keys,
        ),
        _key(
            SLOT,
            Kind.STRING,
            "debezium",
            "The replication slot; created if it does not exist. It keeps the log until the "
            "changes are in the cluster: drop it after you delete the connector.",
            WHAT,
            check=_check_slot,
        ),
        _key(
            PUBLICATION,
            Kind.STRING,
            "dbz_publication",
            "The publication that names the tables whose changes are sent.",
            WHAT,
            check=_check_name,
        ),
        _key(
            AUTOCREATE,
            Kind.STRING,
            Autocreate.ALL_TABLES.value,
            "The action if the publication is missing: all_tables creates one for all tables, as "
            "only superusers may; filtered, one for the captured tables; no_tables, an empty "
            "one; disabled nothing.",
            WHAT,
            check=one_of(*modes),
            recommend=lambda _values: list(modes),
        ),
        _key(
            BY_ROOT,
            Kind.BOOLEAN,
            False,
            "Whether rows of partitions are captured as rows of the partitioned table.",
            WHAT,
            importance=Importance.LOW,
        ),
    )


def _how_keys() -> tuple[Key, ...]:
    modes = [mode.value for mode in SnapshotMode]
    return (
        _key(
            SNAPSHOT_MODE,
            Kind.STRING,
            SnapshotMode.INITIAL.value,
            "The time to read the existing rows: initial, before the first change; initial_only, "
            "and then nothing more; no_data, never; when_needed, also if the log is lost; "
            "always, whenever the task has moved.",
            HOW,
            importance=Importance.HIGH,
            check=one_of(*modes),
            recommend=lambda _values: list(modes),
        ),
        _key(
            SNAPSHOT_TABLES,
            Kind.LIST,
            (),
            "Expressions for the tables whose existing rows are read; all if none is given.",
            HOW,
            check=filters.wrong_with,
        ),
        _key(
            SNAPSHOT_ROWS,
            Kind.INT,
            2048,
            "The most rows to read at a time.",
            HOW,
            importance=Importance.LOW,
            check=in_range(1, 20_000),
        ),
        _key(
            HEARTBEAT,
            Kind.INT,
            0,
            "The interval in milliseconds of records to the heartbeat topic; 0 for never. The "
            "log of idle tables is freed without it, too.",
            HOW,
            check=in_range(0),
        ),
        _key(
            HEARTBEAT_QUERY,
            Kind.STRING,
            None,
            "A statement to execute with each heartbeat.",
            HOW,
            importance=Importance.LOW,
        ),
        _key(
            HEARTBEAT_PREFIX,
            Kind.STRING,
            "__debezium-heartbeat",
            "The beginning of the heartbeat topic's name, before a dot and the prefix.",
            HOW,
            importance=Importance.LOW,
            check=event_keys.check_prefix,
        ),
        _key(
            OLD_HEARTBEAT_PREFIX,
            Kind.STRING,
            None,
            f"Another name of {HEARTBEAT_PREFIX}.",
            HOW,
            importance=Importance.LOW,
            check=_check_old_prefix,
        ),
    )


def _pace_keys() -> tuple[Key, ...]:
    low = Importance.LOW
    return (
        _key(
            BATCH,
            Kind.INT,
            2048,
            "About how many records to read at a time.",
            HOW,
            importance=low,
            check=in_range(1, 20_000),
        ),
        _key(
            STATUS_INTERVAL,
            Kind.INT,
            10_000,
            "The interval in milliseconds in which an idle capture confirms its position, so "
            "that the server can free its log.",
            HOW,
            importance=low,
            check=in_range(100, 30_000),
        ),
        _key(
            SLOT_RETRIES,
            Kind.INT,
            6,
            "The number of retries of a slot that another client reads, before the task fails.",
            HOW,
            importance=low,
            check=in_range(0),
        ),
        _key(
            SLOT_DELAY,
            Kind.LONG,
            10_000,
            "The wait before each such retry in milliseconds.",
            HOW,
            importance=low,
            check=in_range(0, 600_000),
        ),
        _key(
            MAX_RETRIES,
            Kind.INT,
            -1,
            "The number of successive failures to reach the database before the task fails; -1 "
            "for no end.",
            HOW,
            importance=low,
            check=in_range(-1),
        ),
        _key(
            RETRY_WAIT,
            Kind.LONG,
            10_000,
            "The wait between two attempts in milliseconds.",
            HOW,
            importance=low,
            check=in_range(0, 600_000),
        ),
    )
