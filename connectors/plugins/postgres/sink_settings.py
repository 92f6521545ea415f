"""Settings of a sink into tables: keys with JDBC's names, and their parsed value."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from connectors.plugins.postgres import connection, placeholders
from connectors.plugins.postgres.placeholders import PLACEHOLDER, Placeholder
from connectors.sdk.checks import in_range, non_empty, one_of
from connectors.sdk.configs import Definition, Importance, Key, Kind, Value
from connectors.sdk.connector import Parsed
from connectors.sdk.fixed_keys import fixed_key

INSERT_MODE: Final = "insert.mode"
BATCH_SIZE: Final = "batch.size"
DELETE_ENABLED: Final = "delete.enabled"
TRUNCATE_ENABLED: Final = "truncate.enabled"
TABLE_FORMAT: Final = "table.name.format"
PK_MODE: Final = "pk.mode"
PK_FIELDS: Final = "pk.fields"
WHITELIST: Final = "fields.whitelist"
AUTO_CREATE: Final = "auto.create"
AUTO_EVOLVE: Final = "auto.evolve"
MAX_RETRIES: Final = "max.retries"
RETRY_BACKOFF: Final = "retry.backoff.ms"
OFFSETS_TABLE: Final = "offsets.table"
OFFSETS_NAME: Final = "offsets.name"
# A key of every sink, which `validate` receives too.
TOPICS: Final = "topics"
QUOTE: Final = "quote.sql.identifiers"
# Aiven's keys that Confluent's connector lacks.
QUOTE_OF_AIVEN: Final = "sql.quote.identifiers"
NORMALIZE: Final = "table.name.normalize"
QUOTED: Final = "names are quoted, so their upper and lower case counts"
DATA: Final = "Records into rows"
TABLES: Final = "Tables"
RETRIES: Final = "Retries"

TOPIC: Final = "${topic}"
SCHEMA_AND_TABLE: Final = 2
# PostgreSQL truncates longer names, so two of them may be the same table.
MAX_NAME_BYTES: Final = 63
# JDBC's names for the columns with a record's place.
KAFKA_FIELDS: Final = ("__connect_topic", "__connect_partition", "__connect_offset")

REFUSED: Final = {
    "pk.mode.record_header": "keys from headers are not served",
    "table.types": "rows go into tables only",
    "date.timezone": "dates have no time zone here",
    "timestamp.precision.mode": "columns of times are timestamptz",
    "timestamp.fields.list": "schemas say which fields are times",
    "mssql.use.merge.holdlock": "this is PostgreSQL",
    "replace.null.with.default": "it is a key of the converter",
    "trim.sensitive.log": "no value of a record is logged",
    "topics.to.tables.mapping": "use the transform RegexRouter to rename topics",
}


class InsertMode(Enum):
    INSERT = "insert"
    UPSERT = "upsert"
    UPDATE = "update"


class PkMode(Enum):
    NONE = "none"
    KAFKA = "kafka"
    RECORD_KEY = "record_key"
    RECORD_VALUE = "record_value"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    insert_mode: InsertMode
    pk_mode: PkMode
    pk_fields: tuple[str, ...]
    whitelist: frozenset[str]
    table_format: str
    has_deletes: bool
    has_truncations: bool
    can_create: bool
    can_evolve: bool
    batch_size: int
    max_retries: int
    retry_wait_s: float
    offsets_table: str
    offsets_name: str
    placeholder: Placeholder

    @classmethod
    def of(cls, parsed: Parsed, *, connector: str) -> "SinkSettings":
        return cls(
            insert_mode=InsertMode(parsed[INSERT_MODE]),
            pk_mode=PkMode(parsed[PK_MODE]),
            pk_fields=tuple(parsed[PK_FIELDS]),
            whitelist=frozenset(parsed[WHITELIST]),
            table_format=parsed[TABLE_FORMAT],
            has_deletes=parsed[DELETE_ENABLED],
            has_truncations=parsed[TRUNCATE_ENABLED],
            can_create=parsed[AUTO_CREATE],
            can_evolve=parsed[AUTO_EVOLVE],
            batch_size=parsed[BATCH_SIZE],
            max_retries=parsed[MAX_RETRIES],
            retry_wait_s=parsed[RETRY_BACKOFF] / 1000,
            offsets_table=parsed[OFFSETS_TABLE],
            offsets_name=parsed[OFFSETS_NAME] or connector,
            placeholder=Placeholder(parsed[PLACEHOLDER]),
        )


def definition() -> Definition:
    return Definition((*connection.keys(), *_data_keys(), *_table_keys(), *_retry_keys()))


def problems(parsed: Parsed) -> list[Value]:
    """Return errors of keys that conflict."""
    mode, pk_mode = parsed.get(INSERT_MODE), parsed.get(PK_MODE)
    fields = parsed.get(PK_FIELDS) or []
    found: list[Value] = []
    if mode in ("upsert", "update") and pk_mode == "none":
        found.append(_wrong(PK_MODE, pk_mode, f"{INSERT_MODE}={mode} needs a primary key"))
    if parsed.get(DELETE_ENABLED) and pk_mode != "record_key":
        found.append(_wrong(PK_MODE, pk_mode, f"{DELETE_ENABLED}=true needs record_key"))
    if pk_mode == "kafka" and len(fields) not in (0, len(KAFKA_FIELDS)):
        wanted = "name three columns, for topic, partition and offset, or none"
        found.append(_wrong(PK_FIELDS, fields, wanted))
    table_format, offsets = parsed.get(TABLE_FORMAT), parsed.get(OFFSETS_TABLE)
    if table_format and offsets:
        # The topics of a pattern are not known yet; each record is checked instead.
        topics = parsed.get(TOPICS) or [] if TOPIC in table_format else [""]
        wrongs = (offsets_problem(topic, table_format, offsets) for topic in topics)
        found += [_wrong(TABLE_FORMAT, table_format, wrong) for wrong in wrongs if wrong]
    return found


def offsets_problem(topic: str, table_format: str, offsets_table: str) -> str | None:
    """Return an error if a topic's table is, or may be, the table of offsets."""
    name = table_format.replace(TOPIC, topic)
    table, offsets = name.split("."), offsets_table.split(".")
    if _cut(table[-1]) != _cut(offsets[-1]):
        return None
    # A name without a schema may be in any schema.
    has_schemas = len(table) == len(offsets) == SCHEMA_AND_TABLE
    if has_schemas and _cut(table[0]) != _cut(offsets[0]):
        return None
    return (
        f"{name} is the table of the sink's offsets, and records may not go there: name another"
        f" one in {TABLE_FORMAT} or in {OFFSETS_TABLE}"
    )


def _cut(name: str) -> str:
    return name.encode(errors="replace")[:MAX_NAME_BYTES].decode(errors="ignore")


def _wrong(name: str, value: Any, text: str) -> Value:
    return Value(name=name, value=value, errors=(text,))


def _key(name: str, kind: Kind, default: Any, doc: str, **more: Any) -> Key:
    importance = more.pop("importance", Importance.MEDIUM)
    return Key(name=name, kind=kind, default=default, importance=importance, doc=doc, **more)


def _choice(name: str, default: Enum, doc: str) -> Key:
    words = [member.value for member in type(default)]
    return _key(
        name,
        Kind.STRING,
        default.value,
        doc,
        importance=Importance.HIGH,
        check=one_of(*words),
        group=DATA,
        recommend=lambda _values: list(words),
    )


def _data_keys() -> tuple[Key, ...]:
    return (
        _choice(
            INSERT_MODE,
            InsertMode.INSERT,
            "The statement for a record: insert adds a row; upsert adds it or replaces the one "
            "with the same key; update changes rows that are there.",
        ),
        _choice(
            PK_MODE,
            PkMode.NONE,
            "The source of a row's primary key: none; kafka, the record's topic, partition and "
            "offset; record_key; record_value.",
        ),
        _key(
            PK_FIELDS,
            Kind.LIST,
            (),
            "Names of the key's columns: for kafka three or none; for record_key one where the key "
            "is a single value, else fields of it, all where none is named; likewise for "
            "record_value.",
            group=DATA,
        ),
        _key(
            DELETE_ENABLED,
            Kind.BOOLEAN,
            default=False,
            doc="Whether a record without a value deletes the row with its key.",
            group=DATA,
        ),
        _key(
            TRUNCATE_ENABLED,
            Kind.BOOLEAN,
            default=False,
            doc="Whether the event of a TRUNCATE, as a capture writes it, empties the table. Give "
            "the topic one partition: an event has no key, and there is no order between "
            "partitions.",
            group=DATA,
        ),
        _key(
            WHITELIST,
            Kind.LIST,
            (),
            "The fields of the value that become columns; all where none is named.",
            group=DATA,
        ),
        _key(
            PLACEHOLDER,
            Kind.STRING,
            placeholders.DEFAULT,
            "The text that a capture writes for a large value that an update left unchanged, as "
            "its own key of this name says. Columns with it are left out of the statement: the "
            "row keeps the value that it has.",
            check=non_empty,
            group=DATA,
        ),
        _key(
            BATCH_SIZE,
            Kind.INT,
            3000,
            "The most rows of one statement.",
            check=in_range(1, 100_000),
            group=DATA,
        ),
    )


def _table_keys() -> tuple[Key, ...]:
    return (
        _key(
            TABLE_FORMAT,
            Kind.STRING,
            TOPIC,
            "The table, with ${topic} for the record's topic; schema.table names both.",
            check=non_empty,
            group=TABLES,
        ),
        _key(
            AUTO_CREATE,
            Kind.BOOLEAN,
            default=False,
            doc="Whether a table that is missing is made, from the schema of the first record.",
            group=TABLES,
        ),
        _key(
            AUTO_EVOLVE,
            Kind.BOOLEAN,
            default=False,
            doc="Whether columns that are missing are added.",
            group=TABLES,
        ),
        fixed_key(QUOTE, Kind.STRING, "always", QUOTED),
        fixed_key(QUOTE_OF_AIVEN, Kind.BOOLEAN, True, QUOTED),
        fixed_key(NORMALIZE, Kind.BOOLEAN, False, "tables have the names of their topics"),
        _key(
            OFFSETS_TABLE,
            Kind.STRING,
            "samsa_connect_offsets",
            "The table in which the connector keeps how far it has written, in the same "
            "transactions as the rows; made where it is missing.",
            importance=Importance.LOW,
            check=non_empty,
            group=TABLES,
        ),
        _key(
            OFFSETS_NAME,
            Kind.STRING,
            None,
            "The name of this connector in that table; its own unless given. Connectors of the "
            "same name in two clusters that write to one database need two names.",
            importance=Importance.LOW,
            check=non_empty,
            group=TABLES,
        ),
    )


def _retry_keys() -> tuple[Key, ...]:
    return (
        _key(
            MAX_RETRIES,
            Kind.INT,
            -1,
            "The number of successive retries of a batch before the task fails; -1 for no end.",
            check=in_range(-1),
            group=RETRIES,
        ),
        _key(
            RETRY_BACKOFF,
            Kind.INT,
            3000,
            "The wait before each retry in milliseconds.",
            check=in_range(0, 600_000),
            group=RETRIES,
        ),
    )
