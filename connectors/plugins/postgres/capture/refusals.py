"""Keys of Debezium that this capture does not serve: with the reason, or at one value only.

A key that was ignored would have values told that somebody wanted masked, or rows read twice.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from connectors.sdk.configs import Importance, Key, Kind
from connectors.sdk.fixed_keys import fixed_key

_SIGNALS: Final = "there are no signals: a snapshot is taken again where offsets are deleted"
_CERTIFICATES: Final = (
    "a config names no file of a worker: database.sslmode=verify-full asks the system's authorities"
)
_CLASSES: Final = "no class is loaded because a config names it"
_MASKED: Final = "use the transform MaskField, or take the column out with column.exclude.list"
_TYPES: Final = "types of columns are not told as parameters"
_LINEAGE: Final = "lineage is not told"

EXACT: Final[Mapping[str, str]] = {
    "column.propagate.source.type": _TYPES,
    "datatype.propagate.source.type": _TYPES,
    "converters": _CLASSES,
    "post.processors": _CLASSES,
    "database.initial.statements": "sessions are set up so that values are read right",
    "database.sslcert": _CERTIFICATES,
    "database.sslkey": _CERTIFICATES,
    "database.sslpassword": _CERTIFICATES,
    "database.sslrootcert": _CERTIFICATES,
    "database.sslfactory": _CLASSES,
    "message.prefix.include.list": "messages of pg_logical_emit_message are not told",
    "message.prefix.exclude.list": "messages of pg_logical_emit_message are not told",
    "notification.enabled.channels": "use the log of the task",
    "notification.sink.topic.name": "use the log of the task",
    "replica.identity.autoset.values": "tables are not changed: use ALTER TABLE … REPLICA IDENTITY",
    "signal.data.collection": _SIGNALS,
    "snapshot.select.statement.overrides": "all rows of a table are read: use table.include.list",
    "snapshot.mode.custom.name": _CLASSES,
    "snapshot.locking.mode.custom.name": _CLASSES,
    "snapshot.query.mode.custom.name": _CLASSES,
}
BEGINNINGS: Final[Mapping[str, str]] = {
    "column.mask.": _MASKED,
    "column.truncate.": "use a transform, or take the column out with column.exclude.list",
    "snapshot.select.statement.overrides.": EXACT["snapshot.select.statement.overrides"],
    "snapshot.mode.configuration.based.": "name another snapshot.mode",
    "openlineage.integration.": _LINEAGE,
    "signal.kafka.": _SIGNALS,
}
# Key, type, the values it may have (the first is its default), why there are no others.
FIXED: Final[tuple[tuple[str, Kind, tuple[object, ...], str], ...]] = (
    ("plugin.name", Kind.STRING, ("pgoutput",), "it comes with every PostgreSQL"),
    ("snapshot.max.threads", Kind.INT, (1,), "one transaction reads the rows"),
    ("snapshot.locking.mode", Kind.STRING, ("none",), "a snapshot needs no locks"),
    (
        "snapshot.isolation.mode",
        Kind.STRING,
        ("repeatable_read", "serializable"),
        "rows are read as of one moment",
    ),
    ("snapshot.query.mode", Kind.STRING, ("select_all",), "all columns are read"),
    ("snapshot.delay.ms", Kind.LONG, (0,), "start the connector later"),
    ("streaming.delay.ms", Kind.LONG, (0,), "changes are read at once"),
    (
        "snapshot.tables.order.by.row.count",
        Kind.STRING,
        ("disabled",),
        "tables are read by their names",
    ),
    (
        "schema.refresh.mode",
        Kind.STRING,
        ("columns_diff", "columns_diff_exclude_unchanged_toast"),
        "schemas are always those of the log",
    ),
    ("provide.transaction.metadata", Kind.BOOLEAN, (False,), "transactions are not told"),
    (
        "event.processing.failure.handling.mode",
        Kind.STRING,
        ("fail",),
        "a change that is passed over is lost",
    ),
    ("flush.lsn.source", Kind.BOOLEAN, (True,), "a slot that is never freed fills the disk"),
    ("lsn.flush.mode", Kind.STRING, ("connector",), "a slot that is never freed fills the disk"),
    (
        "slot.drop.on.stop",
        Kind.BOOLEAN,
        (False,),
        "a task does not learn that its connector is gone: drop the slot in the database",
    ),
    ("extended.headers.enabled", Kind.BOOLEAN, (True,), "such headers are not told"),
    ("slot.failover", Kind.BOOLEAN, (False,), "make the slot yourself, and name it in slot.name"),
    ("slot.stream.params", Kind.STRING, (None,), "pgoutput has none that matter here"),
    ("database.tcpKeepAlive", Kind.BOOLEAN, (True,), "a dead server must be noticed"),
    ("include.schema.comments", Kind.BOOLEAN, (False,), "comments are not told"),
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
# Keys that change nothing that anybody sees, so any value will do: queues and figures of a JVM.
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
    """Reasons by key, where a key may stand for all that begin like it."""

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
    """Return the keys that a published config may carry, and that change nothing here."""
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
                doc="Taken, and without effect here.",
                group="Compatibility",
                visible=lambda _values: False,
            )
            for name, kind, default in WITHOUT_EFFECT
        ),
    )
