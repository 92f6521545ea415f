"""Lists configs that Kafka 4.3's brokers take while they run, and that have no effect here.

Tools and infrastructure definitions set them on any cluster, so each valid value is accepted,
stored and shown; docs/gaps.md has the list. A key that protects, exposes or deletes something does
not belong here: it is refused instead, see `foreign_configs`.
"""

import sys
from typing import Final

from brokers.cluster.config_values import ConfigRow, ConfigType, Rule, at_least

# The marks of the list in docs/gaps.md.
BEGIN_MARK: Final = "<!-- broker configs without effect: begin -->"
END_MARK: Final = "<!-- broker configs without effect: end -->"

_BOOLEAN, _STRING, _INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
_LONG, _DOUBLE = ConfigType.LONG, ConfigType.DOUBLE
_POSITIVE: Final = at_least(1)
_ANY_RATE: Final = at_least(0)
_NEVER: Final = str(2**63 - 1)

_ONE_LOOP: Final = "a broker has one event loop"
_CLEANER: Final = "one process cleans one log at a time, within a limit of memory of its own"
_NO_REPLICAS: Final = "replication is not part of this release"
_NO_TIERS: Final = "tiered storage is not part of this release"
_NO_TRANSACTIONS: Final = "transactions are not served by this release"
_NO_SHARES: Final = "share groups are not part of this release"
_NO_STREAMS: Final = "streams groups are not part of this release"
_BUFFERS: Final = "coordinators keep no buffer between two batches"
_LIMITS: Final = "the limits are max.connections and max.connections.per.ip"


def _row(
    key: str, kind: ConfigType, default: str | None, rule: Rule | None, effect: str, sentence: str
) -> ConfigRow:
    return ConfigRow(
        key=key,
        type=kind,
        default=default,
        rule=rule,
        effect=effect,
        sentence=sentence,
        is_dynamic=True,
        is_idle=True,
        # Kafka shows these three only where they are set.
        is_hidden=default is None,
    )


# Key, type, default, rule, why it has no effect, sentence.
# fmt: off
ROWS: Final = (
    _row("background.threads", _INT, "10", _POSITIVE, _ONE_LOOP,
         "The threads for background work."),
    _row("follower.fetch.last.tiered.offset.enable", _BOOLEAN, "false", None, _NO_TIERS,
         "Whether a new follower begins behind the tiered part of a log."),
    _row("follower.replication.throttled.rate", _LONG, None, _ANY_RATE, _NO_REPLICAS,
         "The bytes a second at which followers fetch throttled replicas."),
    _row("group.coordinator.cached.buffer.max.bytes", _INT, "1048588", at_least(524_288), _BUFFERS,
         "The largest buffer that a group coordinator keeps for its next batch."),
    _row("group.share.assignment.interval.ms", _INT, "1000", _ANY_RATE, _NO_SHARES,
         "The least time between two assignments of a share group."),
    _row("group.streams.assignment.interval.ms", _INT, "1000", _ANY_RATE, _NO_STREAMS,
         "The least time between two assignments of a streams group."),
    _row("leader.replication.throttled.rate", _LONG, None, _ANY_RATE, _NO_REPLICAS,
         "The bytes a second at which leaders serve throttled replicas."),
    _row("log.cleaner.dedupe.buffer.size", _LONG, "134217728", None, _CLEANER,
         "The memory of all cleaner threads for the keys of a log."),
    _row("log.cleaner.io.buffer.load.factor", _DOUBLE, "0.9", None, _CLEANER,
         "How full the map of keys may get."),
    _row("log.cleaner.io.buffer.size", _INT, "524288", _ANY_RATE, _CLEANER,
         "The memory of all cleaner threads for input and output."),
    _row("log.cleaner.io.max.bytes.per.second", _DOUBLE, "1.7976931348623157E308", None, _CLEANER,
         "The bytes a second that cleaning reads and writes."),
    _row("log.cleaner.threads", _INT, "1", _ANY_RATE, _CLEANER,
         "The threads that clean logs."),
    _row("max.connection.creation.rate", _INT, "2147483647", _ANY_RATE, _LIMITS,
         "How many connections a second are accepted."),
    _row("max.connections.per.ip.overrides", _STRING, "", None, _LIMITS,
         "Other limits of connections for single addresses, as address:number."),
    _row("num.io.threads", _INT, "8", _POSITIVE, _ONE_LOOP, "The threads that serve requests."),
    _row("num.network.threads", _INT, "3", _POSITIVE, _ONE_LOOP,
         "The threads that read requests and send responses."),
    _row("num.recovery.threads.per.data.dir", _INT, "2", _POSITIVE, _ONE_LOOP,
         "The threads that recover logs at the start."),
    _row("num.replica.fetchers", _INT, "1", _POSITIVE, _NO_REPLICAS,
         "The threads that fetch from each leader."),
    _row("remote.fetch.max.wait.ms", _INT, "500", _POSITIVE, _NO_TIERS,
         "How long a fetch waits for remote storage."),
    _row("remote.list.offsets.request.timeout.ms", _LONG, "30000", _POSITIVE, _NO_TIERS,
         "How long a search for an offset waits for remote storage."),
    _row("remote.log.index.file.cache.total.size.bytes", _LONG, "1073741824", _POSITIVE, _NO_TIERS,
         "The disk space for indexes of remote segments."),
    _row("remote.log.manager.copier.thread.pool.size", _INT, "10", _POSITIVE, _NO_TIERS,
         "The threads that copy segments to remote storage."),
    _row("remote.log.manager.copy.max.bytes.per.second", _LONG, _NEVER, _POSITIVE, _NO_TIERS,
         "The bytes a second that are copied to remote storage."),
    _row("remote.log.manager.expiration.thread.pool.size", _INT, "10", _POSITIVE, _NO_TIERS,
         "The threads that delete segments from remote storage."),
    _row("remote.log.manager.fetch.max.bytes.per.second", _LONG, _NEVER, _POSITIVE, _NO_TIERS,
         "The bytes a second that are read from remote storage."),
    _row("remote.log.manager.follower.thread.pool.size", _INT, "2", _POSITIVE, _NO_TIERS,
         "The threads that follow remote segments for followers."),
    _row("remote.log.reader.threads", _INT, "10", _POSITIVE, _NO_TIERS,
         "The threads that read from remote storage."),
    _row("replica.alter.log.dirs.io.max.bytes.per.second", _LONG, None, _ANY_RATE, _NO_REPLICAS,
         "The bytes a second at which replicas move between the log dirs of a broker."),
    _row("share.coordinator.cached.buffer.max.bytes", _INT, "1048588", at_least(524_288),
         _NO_SHARES, "The largest buffer that a share coordinator keeps for its next batch."),
    _row("transaction.partition.verification.enable", _BOOLEAN, "true", None, _NO_TRANSACTIONS,
         "Whether a transactional batch is checked against its transaction."),
)
# fmt: on


def table_of_gaps() -> str:
    """Return the keys as Markdown, between their marks."""
    lines = [
        BEGIN_MARK,
        "| broker config | default | why it has no effect |",
        "|---|---|---|",
        *(
            f"| `{row.key}` | {f'`{row.default}`' if row.default else 'none'} | {row.effect} |"
            for row in ROWS
        ),
        END_MARK,
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(table_of_gaps())
