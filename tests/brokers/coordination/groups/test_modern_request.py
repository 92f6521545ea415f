"""Requests that no group could answer."""

from typing import Any

import pytest

from brokers.coordination.groups.modern_request import check
from brokers.coordination.groups.settings import MAX_ID_BYTES, MAX_SUBSCRIBED_TOPICS
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)


def request(**said: Any) -> ConsumerGroupHeartbeatRequest:
    plain = {
        "group_id": "g",
        "member_id": "m",
        "rebalance_timeout_ms": 1,
        "topic_partitions": [],
        "subscribed_topic_names": ["t"],
    }
    return ConsumerGroupHeartbeatRequest(**{**plain, **said})


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ({}, 1),
        ({"member_id": ""}, 0),
        ({"subscribed_topic_names": None, "subscribed_topic_regex": ""}, 1),
        ({"member_epoch": 3, "topic_partitions": None, "subscribed_topic_names": None}, 0),
        ({"member_epoch": -2, "instance_id": "i"}, 1),
        ({"server_assignor": "range"}, 1),
    ],
)
def test_a_right_request_passes(said: dict[str, Any], version: int) -> None:
    check(request(**said), version)


@pytest.mark.parametrize(
    ("said", "version", "why"),
    [
        ({"member_id": ""}, 1, "MemberId can't be empty."),
        ({"member_id": " ", "member_epoch": 1}, 0, "MemberId can't be empty."),
        ({"member_id": "", "member_epoch": -1}, 0, "MemberId can't be empty."),
        ({"group_id": " "}, 1, "GroupId can't be empty."),
        ({"group_id": "g" * (MAX_ID_BYTES + 1)}, 1, f"GroupId has {MAX_ID_BYTES + 1} bytes"),
        ({"instance_id": ""}, 1, "InstanceId can't be empty."),
        ({"rack_id": ""}, 1, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, 1, "RebalanceTimeoutMs must be provided"),
        ({"topic_partitions": None}, 1, "TopicPartitions must be empty"),
        ({"topic_partitions": [TopicPartitions()]}, 1, "TopicPartitions must be empty"),
        ({"subscribed_topic_names": None}, 1, "Either SubscribedTopicNames"),
        ({"member_epoch": -2}, 1, "InstanceId can't be null."),
        ({"member_epoch": -3}, 1, "MemberEpoch is invalid: -3"),
        ({"subscribed_topic_names": ["t"] * (MAX_SUBSCRIBED_TOPICS + 1)}, 1, "are allowed"),
    ],
)
def test_a_wrong_request_is_refused_with_the_reason(
    said: dict[str, Any], version: int, why: str
) -> None:
    with pytest.raises(KafkaError, match=why) as refused:
        check(request(**said), version)

    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_an_unknown_assignor_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(KafkaError, match="Supported assignors: uniform, range") as refused:
        check(request(server_assignor="sticky"), 1)

    assert refused.value.code is ErrorCode.UNSUPPORTED_ASSIGNOR
