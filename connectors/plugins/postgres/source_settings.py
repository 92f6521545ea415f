"""Settings of a source of tables: keys with JDBC's names, and their parsed value."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from connectors.plugins.postgres import connection
from connectors.plugins.postgres.sink_settings import QUOTE_OF_AIVEN, QUOTED
from connectors.sdk.checks import each_of, in_range, non_empty, one_of
from connectors.sdk.configs import REQUIRED, Definition, Importance, Key, Kind, Value
from connectors.sdk.connector import Parsed
from connectors.sdk.fixed_keys import fixed_key

MODE: Final = "mode"
INCREMENTING: Final = "incrementing.column.name"
TIMESTAMPS: Final = "timestamp.column.name"
TIMESTAMP_INITIAL: Final = "timestamp.initial"
TIMESTAMP_DELAY: Final = "timestamp.delay.interval.ms"
GRANULARITY: Final = "timestamp.granularity"
NON_NULL: Final = "validate.non.null"
WHITELIST: Final = "table.whitelist"
BLACKLIST: Final = "table.blacklist"
SCHEMA_PATTERN: Final = "schema.pattern"
TABLE_TYPES: Final = "table.types"
QUERY: Final = "query"
TOPIC_PREFIX: Final = "topic.prefix"
POLL_INTERVAL: Final = "poll.interval.ms"
TABLE_POLL_INTERVAL: Final = "table.poll.interval.ms"
MAX_ROWS: Final = "batch.max.rows"
NUMERIC: Final = "numeric.mapping"
QUOTE: Final = "quote.sql.identifiers"
QUALIFY: Final = "table.names.qualify"
ISOLATION: Final = "transaction.isolation.mode"
TASK: Final = "task.number"
TASKS: Final = "task.count"
WHAT: Final = "What to read"
HOW: Final = "How to read it"

# JDBC's kinds of tables -> those of pg_class.
RELATIONS: Final = {
    "TABLE": ("r",),
    "PARTITIONED TABLE": ("p",),
    "VIEW": ("v",),
    "MATERIALIZED VIEW": ("m",),
    "FOREIGN TABLE": ("f",),
}
REFUSED: Final = {
    "catalog.pattern": "a connection sees one database",
    "query.suffix": "write it into the query",
    "numeric.precision.mapping": "use numeric.mapping=precision_only",
    "table.include.list": "use table.whitelist",
    "table.exclude.list": "use table.blacklist",
    "table.monitoring.startup.polling.limit.ms": "tables are looked up by the tasks",
    "timestamp.columns.mapping": "use timestamp.column.name",
    "incrementing.column.mapping": "use incrementing.column.name",
    "db.fetch.size": "use batch.max.rows",
    # Keys of Aiven's connector.
    "timestamp.initial.ms": "use timestamp.initial",
    "incrementing.initial": "rows are read from the lowest number; use a query to leave some out",
    "date.calendar.system": "dates are of the proleptic Gregorian calendar",
}


class Mode(Enum):
    BULK = "bulk"
    INCREMENTING = "incrementing"
    TIMESTAMP = "timestamp"
    BOTH = "timestamp+incrementing"

    @property
    def has_number(self) -> bool:
        return self in (Mode.INCREMENTING, Mode.BOTH)

    @property
    def has_time(self) -> bool:
        return self in (Mode.TIMESTAMP, Mode.BOTH)


class Numeric(Enum):
    NONE = "none"
    PRECISION_ONLY = "precision_only"
    BEST_FIT = "best_fit"
    BEST_FIT_EAGER_DOUBLE = "best_fit_eager_double"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    mode: Mode
    incrementing: str
    timestamps: tuple[str, ...]
    timestamp_initial: int | None
    delay_ms: int
    has_null_check: bool
    whitelist: tuple[str, ...]
    blacklist: tuple[str, ...]
    schema_pattern: str | None
    relations: tuple[str, ...]
    query: str | None
    topic_prefix: str
    poll_s: float
    table_poll_s: float
    max_rows: int
    numeric: Numeric
    task: int
    tasks: int

    @classmethod
    def of(cls, parsed: Parsed) -> "SourceSettings":
        kinds = [kind for word in parsed[TABLE_TYPES] for kind in RELATIONS[word]]
        # JDBC has a kind of its own for partitioned tables; readers treat them like others.
        relations = (*kinds, "p") if "r" in kinds else tuple(kinds)
        return cls(
            mode=Mode(parsed[MODE]),
            incrementing=parsed[INCREMENTING],
            timestamps=tuple(parsed[TIMESTAMPS]),
            timestamp_initial=parsed[TIMESTAMP_INITIAL],
            delay_ms=parsed[TIMESTAMP_DELAY],
            has_null_check=parsed[NON_NULL],
            whitelist=tuple(parsed[WHITELIST]),
            blacklist=tuple(parsed[BLACKLIST]),
            schema_pattern=parsed[SCHEMA_PATTERN] or None,
            relations=relations,
            query=(parsed[QUERY] or "").strip().rstrip(";") or None,
            topic_prefix=parsed[TOPIC_PREFIX],
            poll_s=parsed[POLL_INTERVAL] / 1000,
            table_poll_s=parsed[TABLE_POLL_INTERVAL] / 1000,
            max_rows=parsed[MAX_ROWS],
            numeric=Numeric(parsed[NUMERIC] or "none"),
            task=parsed[TASK],
            tasks=parsed[TASKS],
        )


def definition() -> Definition:
    return Definition(
        (*connection.keys(), *_what_keys(), *_how_keys(), *_pace_keys(), *_fixed_keys())
    )


def problems(parsed: Parsed) -> list[Value]:
    """Return errors of keys that conflict."""
    found: list[Value] = []
    query, whitelist = parsed.get(QUERY), parsed.get(WHITELIST)
    if query and (whitelist or parsed.get(BLACKLIST)):
        key = WHITELIST if whitelist else BLACKLIST
        found.append(_wrong(key, parsed.get(key), f"{QUERY} says already what to read"))
    if whitelist and parsed.get(BLACKLIST):
        found.append(_wrong(BLACKLIST, parsed[BLACKLIST], f"{WHITELIST} is given as well"))
    if parsed.get(MODE) not in {mode.value for mode in Mode}:
        return found
    mode = Mode(parsed[MODE])
    if mode.has_time and not parsed.get(TIMESTAMPS):
        found.append(_wrong(TIMESTAMPS, "", f"{MODE}={mode.value} needs a column of times"))
    if mode.has_number and query and not parsed.get(INCREMENTING):
        found.append(_wrong(INCREMENTING, "", f"{MODE}={mode.value} of a query needs its column"))
    return found


def _wrong(name: str, value: Any, text: str) -> Value:
    return Value(name=name, value=value, errors=(text,))


def _key(name: str, kind: Kind, default: Any, doc: str, **more: Any) -> Key:
    importance = more.pop("importance", Importance.MEDIUM)
    return Key(name=name, kind=kind, default=default, importance=importance, doc=doc, **more)


def _check_numeric(value: Any) -> str | None:
    return None if value is None else one_of(*(kind.value for kind in Numeric))(value)


def _check_initial(value: Any) -> str | None:
    return None if value is None else in_range(-1)(value)


def _what_keys() -> tuple[Key, ...]:
    return (
        _key(
            TOPIC_PREFIX,
            Kind.STRING,
            REQUIRED,
            "The prefix of the topic names, before the name of the table; the whole name where a "
            "query is read.",
            importance=Importance.HIGH,
            check=non_empty,
            group=WHAT,
        ),
        _key(
            WHITELIST,
            Kind.LIST,
            (),
            "Tables to read, as table or schema.table; all where neither these nor a query are "
            "named.",
            importance=Importance.HIGH,
            group=WHAT,
        ),
        _key(BLACKLIST, Kind.LIST, (), "Tables not to read.", group=WHAT),
        _key(
            QUERY,
            Kind.STRING,
            "",
            "A SELECT to read in place of tables; conditions of the mode are put around it.",
            group=WHAT,
        ),
        _key(
            SCHEMA_PATTERN,
            Kind.STRING,
            None,
            "Read tables of schemas like this only, in the words of LIKE.",
            group=WHAT,
        ),
        _key(
            TABLE_TYPES,
            Kind.LIST,
            ("TABLE",),
            f"Kinds of tables to read: {', '.join(RELATIONS)}.",
            importance=Importance.LOW,
            check=each_of(*RELATIONS),
            group=WHAT,
        ),
        _key(
            TABLE_POLL_INTERVAL,
            Kind.LONG,
            60_000,
            "The interval in milliseconds in which new tables are searched for.",
            importance=Importance.LOW,
            check=in_range(1000),
            group=WHAT,
        ),
    )


def _how_keys() -> tuple[Key, ...]:
    modes = [mode.value for mode in Mode]
    return (
        _key(
            MODE,
            Kind.STRING,
            REQUIRED,
            "bulk reads all rows each time; incrementing those with a higher number; timestamp "
            "those changed since; timestamp+incrementing both, which misses the least.",
            importance=Importance.HIGH,
            check=one_of(*modes),
            recommend=lambda _values: list(modes),
            group=HOW,
        ),
        _key(
            INCREMENTING,
            Kind.STRING,
            "",
            "The column whose number rises with each row; of a table the one that has a sequence "
            "where none is named.",
            group=HOW,
        ),
        _key(
            TIMESTAMPS,
            Kind.LIST,
            (),
            "Columns with the time of a row's last change; the first one that is not null counts.",
            group=HOW,
        ),
        _key(
            TIMESTAMP_INITIAL,
            Kind.LONG,
            None,
            "The time to begin at, in milliseconds since 1970; -1 for now, all rows where it is "
            "not given.",
            importance=Importance.LOW,
            check=_check_initial,
            group=HOW,
        ),
        _key(
            TIMESTAMP_DELAY,
            Kind.LONG,
            0,
            "The minimum age in milliseconds of a change to be read: transactions whose commit "
            "order differs from their times have this long to end.",
            check=in_range(0),
            group=HOW,
        ),
    )


def _pace_keys() -> tuple[Key, ...]:
    return (
        _key(
            NON_NULL,
            Kind.BOOLEAN,
            default=True,
            doc="Whether columns of numbers and times must be NOT NULL; rows where they are null "
            "are not read.",
            importance=Importance.LOW,
            group=HOW,
        ),
        _key(
            POLL_INTERVAL,
            Kind.INT,
            5000,
            "The interval in milliseconds in which each table is queried.",
            importance=Importance.HIGH,
            check=in_range(0),
            group=HOW,
        ),
        _key(
            MAX_ROWS,
            Kind.INT,
            100,
            "The most rows that are read at a time.",
            importance=Importance.LOW,
            check=in_range(1, 10_000),
            group=HOW,
        ),
        _key(
            NUMERIC,
            Kind.STRING,
            None,
            "The type of NUMERIC with a precision: none, a decimal; precision_only, an integer "
            "where it has no fraction; best_fit and best_fit_eager_double, a double where it has "
            "one. Without a precision it becomes a text.",
            importance=Importance.LOW,
            check=_check_numeric,
            group=HOW,
        ),
    )


def _fixed_keys() -> tuple[Key, ...]:
    """Return keys with only one allowed value, and those of task configs."""
    return (
        fixed_key(QUOTE, Kind.STRING, "always", QUOTED),
        fixed_key(QUOTE_OF_AIVEN, Kind.BOOLEAN, True, QUOTED),
        fixed_key(QUALIFY, Kind.BOOLEAN, True, "table names include their schema"),
        fixed_key(GRANULARITY, Kind.STRING, "connect_logical", "times are milliseconds"),
        fixed_key(ISOLATION, Kind.STRING, "DEFAULT", "it is the database's own"),
        _key(TASK, Kind.INT, 0, "The number of this task.", is_internal=True),
        _key(TASKS, Kind.INT, 1, "The number of tasks.", is_internal=True),
    )
