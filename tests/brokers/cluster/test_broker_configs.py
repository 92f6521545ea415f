"""The table of brokers' keys: what can be set while they run, for one or for all."""

import pytest

from brokers.cluster import topic_configs
from brokers.cluster.broker_configs import ROWS, check, defaults
from brokers.cluster.config_values import LIVE
from brokers.protocol.errors import ErrorCode, KafkaError


def refusal(key: str, value: str, *, is_default: bool = True) -> str:
    with pytest.raises(KafkaError) as refused:
        check(key, value, is_default=is_default)
    # Kafka's code for brokers, where topics have INVALID_CONFIG.
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    return refused.value.message


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_every_key_has_a_sentence_and_a_default_that_it_takes(row: object) -> None:
    assert isinstance(row, type(ROWS["node.id"]))

    assert row.sentence.endswith(".")
    if row.default is not None:
        assert row.wrong(row.default) is None


def test_what_topics_fall_back_to_can_be_set_where_it_has_its_effect() -> None:
    for topic_row in topic_configs.ROWS.values():
        if topic_row.is_hidden:
            continue
        for synonym in topic_row.synonyms:
            is_settable = synonym.is_dynamic and topic_row.effect == LIVE
            assert ROWS[synonym.key].is_dynamic is is_settable


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("log.retention.ms", "5"),
        ("message.max.bytes", "1000"),
        ("min.insync.replicas", "2"),
        ("log.cleanup.policy", "compact"),
        ("num.partitions", "3"),
        ("default.replication.factor", "1"),
        ("compression.type", "gzip"),
    ],
)
def test_keys_with_effect_are_set_for_all_brokers(key: str, value: str) -> None:
    check(key, value, is_default=True)


def test_a_broker_may_differ_but_in_what_holds_for_the_cluster() -> None:
    check("log.retention.ms", "5", is_default=False)

    assert "whole cluster" in refusal("num.partitions", "3", is_default=False)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("nope", "1", "Unknown broker config name: nope"),
        ("log.dirs", "/tmp", "when it is started"),  # noqa: S108 - nothing is written there
        ("log.retention.hours", "2", "when it is started"),
        ("log.retention.ms", "soon", "whole number"),
        ("default.replication.factor", "3", "no effect"),
        ("compression.type", "brotli", "none of uncompressed"),
    ],
)
def test_other_keys_are_refused_with_the_reason(key: str, value: str, reason: str) -> None:
    assert reason in refusal(key, value)


def test_the_nearest_layer_wins() -> None:
    assert defaults({"a": "1", "b": "1", "c": "1"}, {"b": "2", "c": "2"}, {"c": "3"}) == {
        "a": "1",
        "b": "2",
        "c": "3",
    }
