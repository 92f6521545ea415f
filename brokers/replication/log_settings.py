"""Converts a topic's configuration to the settings of its logs, and its durability.

Parsing, validation and storage are elsewhere. One instance is shared by all partitions of a topic
and replaced whole when one of its values changes.
"""

from dataclasses import dataclass, field
from typing import Final

from brokers.cluster.topic_configs import Durability, TopicValues
from brokers.cluster.topic_names import INTERNAL_TOPICS
from brokers.protocol.records.batch import TimestampType
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.recompression import Packing
from brokers.protocol.records.validation import ProduceRules
from brokers.storage.log_config import UNLIMITED, LogConfig

# Of flush.messages and flush.ms: never.
NEVER: Final = 2**63 - 1
# Of compression.lz4.level: the fast compressor, as in Kafka.
_FAST_LZ4_LEVEL: Final = 9
# The minimum of LogConfig for one index entry; Kafka takes less and rounds it.
_MIN_INDEX_BYTES: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """`is_synced`: records are readable and acknowledged only once the disk has confirmed them."""

    log: LogConfig = field(default_factory=LogConfig)
    is_synced: bool = True
    # For logs that are not synced: records and milliseconds after which they are flushed.
    flush_messages: int = NEVER
    flush_ms: int = NEVER


def before_metadata(_topic: str) -> LogConfig:
    """Return settings for logs of unknown or deleted topics: their records are never deleted."""
    return _KEEPS_EVERYTHING


def topic_settings(topic: str, values: TopicValues) -> TopicSettings:
    """Return the settings for the values of a topic."""
    stamps = TimestampType.LOG_APPEND_TIME if values.is_log_append_time else _KEEPS_TIMES
    log = LogConfig(
        segment_bytes=values.segment_bytes,
        segment_ms=values.segment_ms,
        segment_jitter_ms=values.segment_jitter_ms,
        segment_index_bytes=max(values.segment_index_bytes, _MIN_INDEX_BYTES),
        index_interval_bytes=values.index_interval_bytes,
        retention_ms=values.retention_ms,
        retention_bytes=values.retention_bytes,
        file_delete_delay_ms=values.file_delete_delay_ms,
        is_deleted=values.is_deleted,
        is_compacted=values.is_compacted,
        delete_retention_ms=values.delete_retention_ms,
        min_cleanable_ratio=values.min_cleanable_dirty_ratio,
        min_compaction_lag_ms=values.min_compaction_lag_ms,
        max_compaction_lag_ms=values.max_compaction_lag_ms,
        is_internal=topic in INTERNAL_TOPICS,
        rules=ProduceRules(
            max_batch_bytes=values.max_message_bytes,
            timestamp_type=stamps,
            timestamp_before_max_ms=values.message_timestamp_before_max_ms,
            timestamp_after_max_ms=values.message_timestamp_after_max_ms,
            are_keys_required=values.is_compacted,
            packing=_packing(values),
        ),
    )
    return TopicSettings(
        log=log,
        is_synced=_is_synced(topic, values),
        flush_messages=values.flush_messages,
        flush_ms=values.flush_ms,
    )


def _is_synced(topic: str, values: TopicValues) -> bool:
    """Tell whether a topic is synced: with one replica, only an operator can disable that.

    A flush after every message applies before the acknowledgement, as in Kafka.
    """
    is_replicated = values.durability is Durability.REPLICATED
    return topic in INTERNAL_TOPICS or not is_replicated or values.flush_messages <= 1


def _packing(values: TopicValues) -> Packing | None:
    """Return codec and level of compression.type; without a level, the codec's default."""
    match values.compression_type:
        case "producer":
            return None
        case "gzip":
            level = values.compression_gzip_level
            return Packing(codec=Compression.GZIP, level=None if level < 0 else level)
        case "lz4":
            level = values.compression_lz4_level
            is_fast = level == _FAST_LZ4_LEVEL
            return Packing(codec=Compression.LZ4, level=None if is_fast else level)
        case "zstd":
            return Packing(codec=Compression.ZSTD, level=values.compression_zstd_level)
        case "snappy":
            return Packing(codec=Compression.SNAPPY)
        case _:
            return Packing(codec=Compression.NONE)


_KEEPS_TIMES: Final = TimestampType.CREATE_TIME
_KEEPS_EVERYTHING: Final = LogConfig(
    retention_ms=UNLIMITED, retention_bytes=UNLIMITED, is_deleted=False
)
