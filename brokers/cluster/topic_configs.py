"""Defines every configuration key of a topic: Kafka 4.3's set and one of Samsa's own.

The table is the only definition of a key; validation, DescribeConfigs, forms and the list of keys
without effect all read it. Any key may be set to its default, since tools replay whole sets;
another value of a key without effect is refused with the reason, because a topic that ignores its
settings is worse than one that refuses them.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from brokers.cluster.config_values import (
    LIVE,
    MAX_INT64,
    ConfigRow,
    ConfigType,
    ConfigValue,
    Rule,
    Synonym,
    at_least,
    between,
    items_of,
    one_of,
    parse,
    throttled_replicas,
)
from brokers.protocol.errors import ErrorCode, KafkaError

# The marks of the list of keys without effect in docs/gaps.md.
BEGIN_MARK: Final = "<!-- topic configs without effect: begin -->"
END_MARK: Final = "<!-- topic configs without effect: end -->"

INTERNAL_SEGMENT_BYTES: Final = "internal.segment.bytes"
# The longest key that a message repeats; Kafka's longest has 39 characters.
_SHOWN: Final = 100
# An index file smaller than one entry of the time index could not be written.
_LEAST_INDEX_BYTES: Final = 12


class Durability(Enum):
    """When a record counts as written."""

    AUTO = "auto"  # replicated if there are many replicas on different hosts, else synced
    SYNCED = "synced"  # once it is on the disk
    REPLICATED = "replicated"  # Kafka's rules: once all in-sync replicas have it in memory


_NO_TIERS: Final = "tiered storage is not part of this release"
_NO_REPLICAS: Final = "replication is not part of this release"


# Keys that fall back to no broker's key.
_OF_TOPICS_ONLY: Final = frozenset(
    {
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
    }
)


def _row(
    key: str,
    kind: ConfigType,
    default: str | None,
    rule: Rule | None,
    effect: str,
    sentence: str,
    *synonyms: Synonym,
) -> ConfigRow:
    return ConfigRow(
        key=key,
        type=kind,
        default=default,
        rule=rule,
        effect=effect,
        sentence=sentence,
        synonyms=() if key in _OF_TOPICS_ONLY else synonyms or (Synonym(key=f"log.{key}"),),
        is_hidden=key in {"samsa.durability", INTERNAL_SEGMENT_BYTES},
    )


def _fixed(key: str, scale: int = 1) -> Synonym:
    return Synonym(key=key, scale=scale, is_dynamic=False)


_MINUTE, _HOUR = 60_000, 3_600_000
_NEVER = str(MAX_INT64)
_BOOLEAN, _STRING, _INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
_LONG, _DOUBLE, _LIST = ConfigType.LONG, ConfigType.DOUBLE, ConfigType.LIST

# key, type, default, rule, effect, sentence, broker's keys where they are not `log.` + key.
# fmt: off
_TABLE: Final = (
    _row("cleanup.policy", _LIST, "delete", items_of("compact", "delete"), LIVE,
         "How old segments are cleaned: delete them, compact them to the last record of each "
         "key, or both; empty keeps them."),
    _row("compression.gzip.level", _INT, "-1", between(1, 9, also=-1), LIVE,
         "The level at which brokers compress for compression.type=gzip; -1 is the default.",
         Synonym(key="compression.gzip.level")),
    _row("compression.lz4.level", _INT, "9", between(1, 17), LIVE,
         "The level at which brokers compress for compression.type=lz4.",
         Synonym(key="compression.lz4.level")),
    _row("compression.type", _STRING, "producer",
         one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"), LIVE,
         "The codec of stored batches. Brokers recompress batches that have another one; producer "
         "keeps what arrives.",
         Synonym(key="compression.type")),
    _row("compression.zstd.level", _INT, "3", between(-131_072, 22), LIVE,
         "The level at which brokers compress for compression.type=zstd.",
         Synonym(key="compression.zstd.level")),
    _row("delete.retention.ms", _LONG, "86400000", at_least(0), LIVE,
         "How long a compacted topic keeps the marker of a deleted key.",
         Synonym(key="log.cleaner.delete.retention.ms")),
    _row("file.delete.delay.ms", _LONG, "60000", at_least(0), LIVE,
         "How long the files of a deleted segment stay for readers that still hold them.",
         Synonym(key="log.segment.delete.delay.ms")),
    _row("flush.messages", _LONG, _NEVER, at_least(1), LIVE,
         "Flush the log after this number of records, if durability is replicated.",
         Synonym(key="log.flush.interval.messages")),
    _row("flush.ms", _LONG, _NEVER, at_least(0), LIVE,
         "Flush the log after this time, if durability is replicated.",
         Synonym(key="log.flush.interval.ms"), _fixed("log.flush.scheduler.interval.ms")),
    _row("follower.replication.throttled.replicas", _LIST, "", throttled_replicas, _NO_REPLICAS,
         "The followers whose replication is throttled, as partition:broker, or * for all."),
    _row("index.interval.bytes", _INT, "4096", at_least(0), LIVE,
         "The approximate number of log bytes between two index entries."),
    _row(INTERNAL_SEGMENT_BYTES, _INT, None, at_least(61), LIVE,
         "For tests: segment.bytes below its minimum; at least the size of a batch header.",
         _fixed(INTERNAL_SEGMENT_BYTES)),
    _row("leader.replication.throttled.replicas", _LIST, "", throttled_replicas, _NO_REPLICAS,
         "The leaders whose replication is throttled, as partition:broker, or * for all."),
    _row("local.retention.bytes", _LONG, "-2", at_least(-2), _NO_TIERS,
         "How much of a tiered partition stays on the broker; -2 follows retention.bytes."),
    _row("local.retention.ms", _LONG, "-2", at_least(-2), _NO_TIERS,
         "How long a tiered segment stays on the broker; -2 follows retention.ms."),
    _row("max.compaction.lag.ms", _LONG, _NEVER, at_least(1), LIVE,
         "The maximum time until a record can be compacted.",
         Synonym(key="log.cleaner.max.compaction.lag.ms")),
    _row("max.message.bytes", _INT, "1048588", at_least(0), LIVE,
         "The maximum size of a record batch, as compressed.",
         Synonym(key="message.max.bytes")),
    _row("message.timestamp.after.max.ms", _LONG, "3600000", at_least(0), LIVE,
         "How far a record's timestamp may be ahead of the broker's clock."),
    _row("message.timestamp.before.max.ms", _LONG, _NEVER, at_least(0), LIVE,
         "How far a record's timestamp may be behind the broker's clock."),
    _row("message.timestamp.type", _STRING, "CreateTime", one_of("CreateTime", "LogAppendTime"),
         LIVE, "The source of record timestamps: the producer (CreateTime) or the broker on "
         "append."),
    _row("min.cleanable.dirty.ratio", _DOUBLE, "0.5", between(0, 1), LIVE,
         "The minimum uncleaned share of a log for compaction to begin.",
         Synonym(key="log.cleaner.min.cleanable.ratio")),
    _row("min.compaction.lag.ms", _LONG, "0", at_least(0), LIVE,
         "The minimum time before a record can be compacted.",
         Synonym(key="log.cleaner.min.compaction.lag.ms")),
    _row("min.insync.replicas", _INT, "1", at_least(1), LIVE,
         "The minimum number of in-sync replicas for a write with acks=all.",
         Synonym(key="min.insync.replicas")),
    _row("preallocate", _BOOLEAN, "false", None, "a growing file takes some megabytes ahead anyway",
         "Whether the file of a new segment is preallocated to its full size."),
    _row("remote.log.copy.disable", _BOOLEAN, "false", None, _NO_TIERS,
         "Whether tiered data becomes read-only."),
    _row("remote.log.delete.on.disable", _BOOLEAN, "false", None, _NO_TIERS,
         "Whether tiered data is deleted when tiering is switched off."),
    _row("remote.storage.enable", _BOOLEAN, "false", None, _NO_TIERS,
         "Whether old segments move to remote storage."),
    _row("retention.bytes", _LONG, "-1", None, LIVE,
         "Delete the oldest segments of a partition above this size; -1 is no limit."),
    _row("retention.ms", _LONG, "604800000", at_least(-1), LIVE,
         "Delete segments whose newest record is older than this; -1 is no limit.",
         Synonym(key="log.retention.ms"), _fixed("log.retention.minutes", _MINUTE),
         _fixed("log.retention.hours", _HOUR)),
    _row("samsa.durability", _STRING, "auto", one_of("auto", "synced", "replicated"), LIVE,
         "When a record counts as written: synced is on the disk, replicated is in the memory of "
         "all in-sync replicas, auto is replicated only where replicas fail independently.",
         _fixed("samsa.durability")),
    _row("segment.bytes", _INT, "1073741824", at_least(1_048_576), LIVE,
         "Close a segment and begin the next one at this size."),
    _row("segment.index.bytes", _INT, "10485760", at_least(4), LIVE,
         "Close a segment when its index reaches this size.",
         Synonym(key="log.index.size.max.bytes")),
    _row("segment.jitter.ms", _LONG, "0", at_least(0), LIVE,
         "Close segments earlier by a random time up to this, so that not all close at once.",
         Synonym(key="log.roll.jitter.ms"), _fixed("log.roll.jitter.hours", _HOUR)),
    _row("segment.ms", _LONG, "604800000", at_least(1), LIVE,
         "Close a segment after this time even if it is not full.",
         Synonym(key="log.roll.ms"), _fixed("log.roll.hours", _HOUR)),
    _row("unclean.leader.election.enable", _BOOLEAN, "false", None, _NO_REPLICAS,
         "Whether a replica that is out of sync may lead, at the price of lost records.",
         Synonym(key="unclean.leader.election.enable")),
)
# fmt: on

ROWS: Final[Mapping[str, ConfigRow]] = MappingProxyType({row.key: row for row in _TABLE})

# All that Kafka 4.3 shows for a topic.
PUBLIC_KEYS: Final = tuple(row.key for row in _TABLE if not row.is_hidden)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicValues:
    """The typed values of a topic's keys; -1 stands for no limit."""

    cleanup_policy: tuple[str, ...]
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    compression_zstd_level: int
    delete_retention_ms: int
    durability: Durability
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    index_interval_bytes: int
    max_compaction_lag_ms: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    is_log_append_time: bool
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    segment_jitter_ms: int
    segment_ms: int

    @property
    def is_deleted(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy


def check(key: str, value: str) -> None:
    """Refuse an unknown key, an invalid value, and a value that would have no effect."""
    row = ROWS.get(key)
    if row is None:
        raise _invalid(f"Unknown topic config name: {key[:_SHOWN]}")
    wrong = row.wrong(value)
    if wrong is not None:
        raise _invalid(f"{key}: {value[:_SHOWN]!r} {wrong}")
    if row.effect != LIVE and not row.is_default(value):
        raise _invalid(
            f"{key}={value[:_SHOWN]} would have no effect: {row.effect}; "
            f"leave it at its default, {row.default!r}"
        )


def check_together(configs: Mapping[str, str]) -> None:
    """Refuse values of a topic that contradict each other, though each is valid by itself."""
    least, most = (_whole(configs, f"{bound}.compaction.lag.ms") for bound in ("min", "max"))
    if least > most:
        raise _invalid(
            f"min.compaction.lag.ms is {least} and max.compaction.lag.ms is {most}: records could "
            "never be compacted in time; set the first to no more than the second"
        )


def effective(configs: Mapping[str, str], broker_defaults: Mapping[str, str]) -> Mapping[str, str]:
    """Return every key's value: the topic's, else the broker's, else the default.

    `broker_defaults` are broker keys with their settings, see `broker_configs.defaults`. Keys
    without a value are left out.
    """
    found: dict[str, str] = {}
    for row in _TABLE:
        value = configs.get(row.key)
        if value is None:
            value = _inherited(row, broker_defaults)
        if value is not None:
            found[row.key] = value
    return MappingProxyType(found)


def values(configs: Mapping[str, str]) -> TopicValues:
    """Return the typed values of accepted configurations; a missing key has its default."""
    segment_bytes = _whole(configs, "segment.bytes")
    if INTERNAL_SEGMENT_BYTES in configs:
        segment_bytes = _whole(configs, INTERNAL_SEGMENT_BYTES)
    policy = _value(configs, "cleanup.policy")
    assert isinstance(policy, tuple)
    ratio = _value(configs, "min.cleanable.dirty.ratio")
    assert isinstance(ratio, float)
    return TopicValues(
        cleanup_policy=policy,
        compression_gzip_level=_whole(configs, "compression.gzip.level"),
        compression_lz4_level=_whole(configs, "compression.lz4.level"),
        compression_type=str(_value(configs, "compression.type")),
        compression_zstd_level=_whole(configs, "compression.zstd.level"),
        delete_retention_ms=_whole(configs, "delete.retention.ms"),
        durability=Durability(_value(configs, "samsa.durability")),
        file_delete_delay_ms=_whole(configs, "file.delete.delay.ms"),
        flush_messages=_whole(configs, "flush.messages"),
        flush_ms=_whole(configs, "flush.ms"),
        index_interval_bytes=_whole(configs, "index.interval.bytes"),
        max_compaction_lag_ms=_whole(configs, "max.compaction.lag.ms"),
        max_message_bytes=_whole(configs, "max.message.bytes"),
        message_timestamp_after_max_ms=_whole(configs, "message.timestamp.after.max.ms"),
        message_timestamp_before_max_ms=_whole(configs, "message.timestamp.before.max.ms"),
        is_log_append_time=_value(configs, "message.timestamp.type") == "LogAppendTime",
        min_cleanable_dirty_ratio=ratio,
        min_compaction_lag_ms=_whole(configs, "min.compaction.lag.ms"),
        min_insync_replicas=_whole(configs, "min.insync.replicas"),
        # Kafka takes every negative number as no limit.
        retention_bytes=max(-1, _whole(configs, "retention.bytes")),
        retention_ms=_whole(configs, "retention.ms"),
        segment_bytes=segment_bytes,
        segment_index_bytes=max(_LEAST_INDEX_BYTES, _whole(configs, "segment.index.bytes")),
        segment_jitter_ms=_whole(configs, "segment.jitter.ms"),
        segment_ms=_whole(configs, "segment.ms"),
    )


def table_of_gaps() -> str:
    """Return the keys without effect as Markdown, between their marks."""
    lines = [
        BEGIN_MARK,
        "| topic config | accepted | why nothing else |",
        "|---|---|---|",
        *(
            f"| `{row.key}` | {f'`{row.default}`' if row.default else 'empty'} | {row.effect} |"
            for row in _TABLE
            if row.effect != LIVE
        ),
        END_MARK,
    ]
    return "\n".join(lines) + "\n"


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)


def _inherited(row: ConfigRow, broker_defaults: Mapping[str, str]) -> str | None:
    for synonym in row.synonyms:
        set_to = broker_defaults.get(synonym.key)
        if set_to is None:
            continue
        # For log.retention.minutes and the like, -1 means no limit in any unit.
        if synonym.scale != 1 and (number := int(set_to)) >= 0:
            return str(number * synonym.scale)
        return set_to
    return row.default


def _value(configs: Mapping[str, str], key: str) -> ConfigValue:
    row = ROWS[key]
    text = configs.get(key, row.default)
    assert text is not None, f"{key} has neither value nor default"
    return parse(row.type, text)


def _whole(configs: Mapping[str, str], key: str) -> int:
    value = _value(configs, key)
    assert isinstance(value, int), f"{key} is {value!r}"
    return value


if __name__ == "__main__":
    sys.stdout.write(table_of_gaps())
