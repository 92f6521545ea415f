"""What a topic's configuration means to its logs."""

import pytest

from brokers.cluster.topic_configs import effective, values
from brokers.protocol.records.batch import TimestampType
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.recompression import Packing
from brokers.protocol.records.validation import ProduceRules
from brokers.replication.log_settings import TopicSettings, before_metadata, topic_settings
from brokers.storage.log_config import LogConfig


def settings(topic: str = "t", **configs: str) -> TopicSettings:
    given = {key.replace("_", "."): value for key, value in configs.items()}
    return topic_settings(topic, values(effective(given, {})))


def test_nothing_set_is_kafkas_default_and_synced() -> None:
    found = settings()

    assert found.is_synced
    assert found.log == LogConfig()


def test_what_is_set_reaches_the_log() -> None:
    found = settings(
        retention_ms="1000",
        retention_bytes="5000000",
        segment_bytes="2000000",
        segment_ms="60000",
        max_message_bytes="1234",
        message_timestamp_type="LogAppendTime",
        file_delete_delay_ms="7",
        flush_ms="500",
    )

    log = found.log
    assert (log.retention_ms, log.retention_bytes) == (1000, 5_000_000)
    assert (log.segment_bytes, log.segment_ms, log.file_delete_delay_ms) == (2_000_000, 60_000, 7)
    assert log.rules.max_batch_bytes == 1234
    assert log.rules.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert found.flush_ms == 500


@pytest.mark.parametrize(
    ("configs", "packing"),
    [
        ({}, None),
        ({"compression_type": "producer"}, None),
        ({"compression_type": "uncompressed"}, Packing(codec=Compression.NONE)),
        ({"compression_type": "snappy"}, Packing(codec=Compression.SNAPPY)),
        ({"compression_type": "gzip"}, Packing(codec=Compression.GZIP)),
        (
            {"compression_type": "gzip", "compression_gzip_level": "9"},
            Packing(codec=Compression.GZIP, level=9),
        ),
        # Kafka's default level of lz4 means the fast compressor.
        ({"compression_type": "lz4"}, Packing(codec=Compression.LZ4)),
        (
            {"compression_type": "lz4", "compression_lz4_level": "12"},
            Packing(codec=Compression.LZ4, level=12),
        ),
        ({"compression_type": "zstd"}, Packing(codec=Compression.ZSTD, level=3)),
    ],
)
def test_the_compression_of_a_topic_reaches_the_log(
    configs: dict[str, str], packing: Packing | None
) -> None:
    assert settings(**configs).log.rules.packing == packing


def test_a_compacted_topic_wants_keys_and_is_not_deleted() -> None:
    log = settings(cleanup_policy="compact").log

    assert (log.is_compacted, log.is_deleted, log.rules.are_keys_required) == (True, False, True)
    assert (
        LogConfig(is_compacted=True, is_deleted=False, rules=ProduceRules(are_keys_required=True))
        == log
    )
    both = settings(cleanup_policy="compact,delete").log
    assert (both.is_compacted, both.is_deleted) == (True, True)


def test_what_compaction_is_told_reaches_the_log() -> None:
    log = settings(
        cleanup_policy="compact",
        delete_retention_ms="11",
        min_cleanable_dirty_ratio="0.25",
        min_compaction_lag_ms="12",
        max_compaction_lag_ms="13",
    ).log

    assert (log.delete_retention_ms, log.min_cleanable_ratio) == (11, 0.25)
    assert (log.min_compaction_lag_ms, log.max_compaction_lag_ms) == (12, 13)


@pytest.mark.parametrize(
    ("topic", "configs", "is_synced"),
    [
        ("t", {"samsa.durability": "auto"}, True),
        ("t", {"samsa.durability": "synced"}, True),
        ("t", {"samsa.durability": "replicated"}, False),
        ("t", {"samsa.durability": "auto", "min.insync.replicas": "2"}, True),
        ("t", {"samsa.durability": "replicated", "flush.messages": "1"}, True),
        ("t", {"samsa.durability": "replicated", "flush.messages": "2"}, False),
        ("__consumer_offsets", {"samsa.durability": "replicated"}, True),
    ],
)
def test_only_an_operators_word_makes_a_single_replica_live_without_its_disk(
    topic: str, configs: dict[str, str], is_synced: bool
) -> None:
    assert topic_settings(topic, values(effective(configs, {}))).is_synced == is_synced


def test_nothing_is_deleted_of_a_log_whose_topic_is_not_known() -> None:
    config = before_metadata("t")

    assert (config.is_deleted, config.retention_ms, config.retention_bytes) == (False, -1, -1)
