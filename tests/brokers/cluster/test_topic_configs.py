"""The table of a topic's keys: Kafka's roster, what each takes, and what has no effect yet."""

from pathlib import Path

import pytest

from brokers.cluster import topic_configs
from brokers.cluster.config_values import LIVE, ConfigType
from brokers.cluster.topic_configs import (
    BEGIN_MARK,
    END_MARK,
    PUBLIC_KEYS,
    ROWS,
    Durability,
    check,
    effective,
    table_of_gaps,
    values,
)
from brokers.protocol.errors import ErrorCode, KafkaError

GAPS = Path(__file__).parents[3] / "docs" / "gaps.md"

# What LogConfig of Apache Kafka 4.3.0 told when it was asked: key, type, default.
KAFKA = """
cleanup.policy LIST delete
compression.gzip.level INT -1
compression.lz4.level INT 9
compression.type STRING producer
compression.zstd.level INT 3
delete.retention.ms LONG 86400000
file.delete.delay.ms LONG 60000
flush.messages LONG 9223372036854775807
flush.ms LONG 9223372036854775807
follower.replication.throttled.replicas LIST
index.interval.bytes INT 4096
leader.replication.throttled.replicas LIST
local.retention.bytes LONG -2
local.retention.ms LONG -2
max.compaction.lag.ms LONG 9223372036854775807
max.message.bytes INT 1048588
message.timestamp.after.max.ms LONG 3600000
message.timestamp.before.max.ms LONG 9223372036854775807
message.timestamp.type STRING CreateTime
min.cleanable.dirty.ratio DOUBLE 0.5
min.compaction.lag.ms LONG 0
min.insync.replicas INT 1
preallocate BOOLEAN false
remote.log.copy.disable BOOLEAN false
remote.log.delete.on.disable BOOLEAN false
remote.storage.enable BOOLEAN false
retention.bytes LONG -1
retention.ms LONG 604800000
segment.bytes INT 1073741824
segment.index.bytes INT 10485760
segment.jitter.ms LONG 0
segment.ms LONG 604800000
unclean.leader.election.enable BOOLEAN false
"""


def refusal(key: str, value: str) -> str:
    with pytest.raises(KafkaError) as refused:
        check(key, value)
    assert refused.value.code is ErrorCode.INVALID_CONFIG
    return refused.value.message


def test_the_public_keys_are_kafkas_with_its_types_and_defaults() -> None:
    lines = [line.split(" ") for line in KAFKA.strip().splitlines()]

    ours = [
        [key, ROWS[key].type.name, *([ROWS[key].default] if ROWS[key].default else [])]
        for key in sorted(PUBLIC_KEYS)
    ]

    assert ours == lines


def test_two_keys_are_shown_only_when_set() -> None:
    assert set(ROWS) - set(PUBLIC_KEYS) == {"samsa.durability", "internal.segment.bytes"}


@pytest.mark.parametrize("key", ROWS)
def test_the_default_of_every_key_is_accepted(key: str) -> None:
    default = ROWS[key].default

    if default is not None:
        check(key, default)


@pytest.mark.parametrize("key", ROWS)
def test_every_key_has_a_sentence(key: str) -> None:
    assert ROWS[key].sentence.endswith(".")


def test_the_keys_without_a_synonym_are_kafkas() -> None:
    assert {key for key, row in ROWS.items() if not row.synonyms} == {
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
    }


# A value other than the default that Kafka takes.
OTHER = {
    ConfigType.BOOLEAN: "true",
    ConfigType.INT: "5",
    ConfigType.LONG: "5",
    ConfigType.DOUBLE: "0.25",
}
OTHER_OF_KEY = {
    "cleanup.policy": "compact",
    "compression.type": "gzip",
    "follower.replication.throttled.replicas": "*",
    "internal.segment.bytes": "4096",
    "leader.replication.throttled.replicas": "0:1",
    "message.timestamp.type": "LogAppendTime",
    "samsa.durability": "synced",
    "segment.bytes": "1048576",
}


@pytest.mark.parametrize("key", ROWS)
def test_another_value_is_accepted_where_it_has_an_effect_only(key: str) -> None:
    row = ROWS[key]
    value = OTHER_OF_KEY.get(key) or OTHER[row.type]

    if row.effect == LIVE:
        check(key, value)
    else:
        message = refusal(key, value)
        assert key in message
        assert row.effect in message


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("segment.bytes", "1048575", "below 1048576"),
        ("segment.ms", "0", "below 1"),
        ("retention.ms", "-2", "below -1"),
        ("retention.ms", "a week", "whole number"),
        ("cleanup.policy", "none", "'none'"),
        ("cleanup.policy", "delete,", "empty item"),
        ("message.timestamp.type", "createtime", "not one of CreateTime, LogAppendTime"),
        ("min.insync.replicas", "0", "below 1"),
        ("flush.messages", "0", "below 1"),
        ("max.message.bytes", "-1", "below 0"),
        ("index.interval.bytes", "3000000000", "32 bits"),
        ("samsa.durability", "sometimes", "auto, synced, replicated"),
        ("compression.gzip.level", "0", "between 1 and 9"),
        ("delete.retention.ms", "-1", "below 0"),
        ("min.cleanable.dirty.ratio", "1.1", "between 0 and 1"),
        ("min.cleanable.dirty.ratio", "-0.1", "between 0 and 1"),
        ("min.compaction.lag.ms", "-1", "below 0"),
        ("max.compaction.lag.ms", "0", "below 1"),
    ],
)
def test_a_value_that_a_key_does_not_take_is_refused(key: str, value: str, reason: str) -> None:
    message = refusal(key, value)

    assert key in message
    assert reason in message


def test_an_unknown_key_is_refused_in_kafkas_words() -> None:
    assert refusal("nope", "1") == "Unknown topic config name: nope"
    assert refusal("message.format.version", "3.0").startswith("Unknown topic config name")


def test_a_refusal_repeats_no_more_than_is_needed() -> None:
    assert len(refusal("x" * 100_000, "1")) < 200
    assert len(refusal("retention.ms", "9" * 100_000)) < 300


def test_defaults_mean_what_kafka_means() -> None:
    topic = values({})

    assert topic.cleanup_policy == ("delete",)
    assert topic.is_deleted
    assert not topic.is_compacted
    assert topic.durability is Durability.AUTO
    assert topic.segment_bytes == 1024**3
    assert topic.retention_bytes == -1
    assert topic.flush_ms == 2**63 - 1
    assert not topic.is_log_append_time


def test_set_values_are_read() -> None:
    topic = values(
        {
            "cleanup.policy": "compact, delete",
            "message.timestamp.type": "LogAppendTime",
            "retention.bytes": "-7",
            "retention.ms": " +5 ",
            "samsa.durability": "replicated",
            "segment.bytes": "2000000",
            "segment.index.bytes": "4",
        }
    )

    assert topic.is_deleted
    assert topic.is_compacted
    assert topic.is_log_append_time
    assert topic.retention_bytes == -1
    assert topic.retention_ms == 5
    assert topic.durability is Durability.REPLICATED
    assert topic.segment_bytes == 2_000_000
    assert topic.segment_index_bytes == 12


def test_an_empty_policy_keeps_everything() -> None:
    check("cleanup.policy", "")

    topic = values({"cleanup.policy": ""})

    assert not topic.is_deleted
    assert not topic.is_compacted


def test_tests_may_have_small_segments() -> None:
    assert values({"internal.segment.bytes": "4096"}).segment_bytes == 4096


def test_a_topic_inherits_what_it_does_not_set() -> None:
    broker = {"log.retention.ms": "7", "message.max.bytes": "9", "log.cleanup.policy": "compact"}

    found = effective({"retention.ms": "5"}, broker)

    assert found["retention.ms"] == "5"
    assert found["max.message.bytes"] == "9"
    assert found["cleanup.policy"] == "compact"
    assert found["segment.ms"] == "604800000"
    assert "internal.segment.bytes" not in found
    assert values(found).max_message_bytes == 9


@pytest.mark.parametrize(
    ("broker", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, "7200000"),
        ({"log.retention.minutes": "3", "log.retention.hours": "2"}, "180000"),
        ({"log.retention.ms": "4", "log.retention.minutes": "3"}, "4"),
        ({"log.retention.hours": "-1"}, "-1"),
        ({}, "604800000"),
    ],
)
def test_milliseconds_take_precedence_over_hours_and_minutes(
    broker: dict[str, str], retention_ms: str
) -> None:
    assert effective({}, broker)["retention.ms"] == retention_ms


def test_the_list_of_gaps_names_each_key_without_effect() -> None:
    table = table_of_gaps()

    for row in ROWS.values():
        assert (f"| `{row.key}` |" in table) is (row.effect != LIVE)


def test_the_page_of_gaps_has_the_list_as_it_is() -> None:
    page = GAPS.read_text(encoding="utf-8")
    _, _, rest = page.partition(BEGIN_MARK)

    assert BEGIN_MARK + rest.partition(END_MARK)[0] + END_MARK + "\n" == table_of_gaps(), (
        f"print it with: python -m {topic_configs.__name__}"
    )
