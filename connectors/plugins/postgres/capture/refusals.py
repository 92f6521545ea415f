"""Debezium's keys that this capture refuses, with the reason, or accepts at one value only.

If such a key were ignored, values meant to be masked would appear, or rows would be read twice.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from connectors.sdk.configs import Importance, Key, Kind
from connectors.sdk.fixed_keys import fixed_key

_SIGNALS: Final = "signals are not supported: delete the offsets to take a snapshot again"
_CERTIFICATES: Final = (
    "a config may not name files of a worker: database.sslmode=verify-full uses the system's CAs"
)
_CLASSES: Final = "a config cannot load classes by name"
_MASKED: Final = "use the transform MaskField, or exclude the column with column.exclude.list"
_TYPES: Final = "schemas do not include column types as parameters"
_LINEAGE: Final = "lineage events are not supported"

EXACT: Final[Mapping[str, str]] = {
    "column.propagate.source.type": _TYPES,
    "datatype.propagate.source.type": _TYPES,
    "converters": _CLASSES,
    "post.processors": _CLASSES,
    "database.initial.statements": "the connector sets up its sessions itself",
    "database.sslcert": _CERTIFICATES,
    "database.sslkey": _CERTIFICATES,
    "database.sslpassword": _CERTIFICATES,
    "database.sslrootcert": _CERTIFICATES,
    "database.sslfactory": _CLASSES,
    "message.prefix.include.list": "messages of pg_logical_emit_message are not captured",
    "message.prefix.exclude.list": "messages of pg_logical_emit_message are not captured",
    "notification.enabled.channels": "use the log of the task",
    "notification.sink.topic.name": "use the log of the task",
    "replica.identity.autoset.values": "tables are not altered: use ALTER TABLE … REPLICA IDENTITY",
    "signal.data.collection": _SIGNALS,
    "snapshot.select.statement.overrides": "a snapshot reads all rows: use table.include.list",
    "snapshot.mode.custom.name": _CLASSES,
    "snapshot.locking.mode.custom.name": _CLASSES,
    "snapshot.query.mode.custom.name": _CLASSES,
}
BEGINNINGS: Final[Mapping[str, str]] = {
    "column.mask.": _MASKED,
    "column.truncate.": "use a transform, or exclude the column with column.exclude.list",
    "snapshot.select.statement.overrides.": EXACT["snapshot.select.statement.overrides"],
    "snapshot.mode.configuration.based.": "name another snapshot.mode",
    "openlineage.integration.": _LINEAGE,
    "signal.kafka.": _SIGNALS,
}
# Key, type, allowed values (the first is the default), why no others.
FIXED: Final[tuple[tuple[str, Kind, tuple[object, ...], str], ...]] = (
    ("plugin.name", Kind.STRING, ("pgoutput",), "it comes with every PostgreSQL"),
    ("snapshot.max.threads", Kind.INT, (1,), "one transaction reads the rows"),
    ("snapshot.locking.mode", Kind.STRING, ("none",), "a snapshot needs no locks"),
    (
        "snapshot.isolation.mode",
        Kind.STRING,
        ("repeatable_read", "serializable"),
        "the snapshot needs one consistent view",
    ),
    ("snapshot.query.mode", Kind.STRING, ("select_all",), "a snapshot reads all columns"),
    ("snapshot.delay.ms", Kind.LONG, (0,), "start the connector later"),
    ("streaming.delay.ms", Kind.LONG, (0,), "streaming begins at once"),
    (
        "snapshot.tables.order.by.row.count",
        Kind.STRING,
        ("disabled",),
        "tables are read in the order of their names",
    ),
    (
        "schema.refresh.mode",
        Kind.STRING,
        ("columns_diff", "columns_diff_exclude_unchanged_toast"),
        "schemas always follow the log",
    ),
    ("provide.transaction.metadata", Kind.BOOLEAN, (False,), "transactions are not reported"),
    (
        "event.processing.failure.handling.mode",
        Kind.STRING,
        ("fail",),
        "a skipped change is lost",
    ),
    ("flush.lsn.source", Kind.BOOLEAN, (True,), "a slot that is never freed fills the disk"),
    ("lsn.flush.mode", Kind.STRING, ("connector",), "a slot that is never freed fills the disk"),
    (
        "slot.drop.on.stop",
        Kind.BOOLEAN,
        (False,),
        "a task does not learn that its connector is gone: drop the slot in the database",
    ),
    ("extended.headers.enabled", Kind.BOOLEAN, (True,), "such headers are not written"),
    ("slot.failover", Kind.BOOLEAN, (False,), "create the slot yourself, and name it in slot.name"),
    ("slot.stream.params", Kind.STRING, (None,), "no parameter of pgoutput applies here"),
    ("database.tcpKeepAlive", Kind.BOOLEAN, (True,), "a dead server must be noticed"),
    ("include.schema.comments", Kind.BOOLEAN, (False,), "schemas do not include comments"),
    ("table.ignore.builtin", Kind.BOOLEAN, (True,), "catalogs are not in the log"),
    ("signal.enabled.channels", Kind.LIST, (("source",), ["source"]), _SIGNALS),
    (
        "topic.naming.strategy",
        Kind.CLASS,
        ("io.debezium.schema.SchemaTopicNamingStrategy",),
        "use the transform RegexRouter",
    ),
    (
        "sourceinfo.struct.maker",
        Kind.CLASS,
        ("io.debezium.connector.postgresql.PostgresSourceInfoStructMaker",),
        _CLASSES,
    ),
    ("guardrail.collections.max", Kind.INT, (0,), "use table.include.list"),
    ("openlineage.integration.enabled", Kind.BOOLEAN, (False,), _LINEAGE),
)
# Keys without a visible effect, accepted with any value: queues and metrics of a JVM.
WITHOUT_EFFECT: Final[tuple[tuple[str, Kind, object], ...]] = (
    ("max.queue.size", Kind.INT, 8192),
    ("max.queue.size.in.bytes", Kind.LONG, 0),
    ("poll.interval.ms", Kind.LONG, 500),
    ("query.fetch.size", Kind.INT, 0),
    ("executor.shutdown.timeout.ms", Kind.LONG, 4000),
    ("connection.validation.timeout.ms", Kind.LONG, 60_000),
    ("snapshot.lock.timeout.ms", Kind.LONG, 10_000),
    ("snapshot.max.threads.multiplier", Kind.INT, 1),
    ("incremental.snapshot.chunk.size", Kind.INT, 1024),
    ("incremental.snapshot.watermarking.strategy", Kind.STRING, "INSERT_INSERT"),
    ("signal.poll.interval.ms", Kind.LONG, 5000),
    ("lsn.flush.timeout.ms", Kind.LONG, 30_000),
    ("lsn.flush.timeout.action", Kind.STRING, "fail"),
    ("xmin.fetch.interval.ms", Kind.LONG, 0),
    ("statistics.metrics.enabled", Kind.BOOLEAN, True),
    ("custom.metric.tags", Kind.LIST, ()),
    ("guardrail.collections.limit.action", Kind.STRING, "warn"),
)


class Refused(Mapping[str, str]):
    """Reasons by key; a key may be a prefix."""

    def __getitem__(self, name: str) -> str:
        if name in EXACT:
            return EXACT[name]
        found = (reason for start, reason in BEGINNINGS.items() if name.startswith(start))
        reason = next(found, None)
        if reason is None or any(name == fixed[0] for fixed in FIXED):
            raise KeyError(name)
        return reason

    def __iter__(self) -> Iterator[str]:
        return iter((*EXACT, *BEGINNINGS))

    def __len__(self) -> int:
        return len(EXACT) + len(BEGINNINGS)


REFUSED: Final = Refused()


def keys() -> tuple[Key, ...]:
    """Return keys of published configs that have no effect here."""
    return (
        *(
            fixed_key(name, kind, allowed[0], why, also=allowed[1:])
            for name, kind, allowed, why in FIXED
        ),
        *(
            Key(
                name=name,
                kind=kind,
                default=default,
                importance=Importance.LOW,
                doc="Accepted, without effect.",
                group="Compatibility",
                visible=lambda _values: False,
            )
            for name, kind, default in WITHOUT_EFFECT
        ),
    )
