"""Which brokers get the partitions of a topic."""

from collections import Counter

import pytest

from brokers.cluster.placement import place
from brokers.protocol.errors import ErrorCode, KafkaError


def test_partitions_go_around_from_the_start() -> None:
    assert place({3, 1, 2}, 4, 1, start=1) == ((2,), (3,), (1,), (2,))


def test_leaders_are_spread_evenly() -> None:
    placed = place(range(1, 8), 100, 1, start=12345)

    loads = Counter(replicas[0] for replicas in placed)
    assert max(loads.values()) - min(loads.values()) <= 1


def test_more_than_one_replica_is_not_served_yet() -> None:
    with pytest.raises(KafkaError, match="replication factor 3 is not served") as refusal:
        place({1, 2, 3}, 1, 3, start=0)

    assert refusal.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_without_a_broker_there_is_no_place() -> None:
    with pytest.raises(KafkaError, match="no broker") as refusal:
        place((), 1, 1, start=0)

    assert refusal.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
