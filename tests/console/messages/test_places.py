"""Where a topic's records are, as the database says."""

import pytest

from console.messages.places import NoSuchTopic, places_of
from console.messages.question import BadQuestion, Question
from tests.console import cluster_rows


def asked(topic: str = "orders", *partitions: int) -> Question:
    return Question(cluster=cluster_rows.CLUSTER_ID, topic=topic, partitions=partitions)


def test_partitions_are_told_with_their_leaders() -> None:
    shown = cluster_rows.cluster()
    cluster_rows.broker(shown, 1)
    cluster_rows.broker(shown, 2)
    cluster_rows.topic(shown, "orders", partitions=3, leader=2)

    found = places_of(asked())

    assert found.partitions == [0, 1, 2]
    assert {leader.id for leader in found.leaders.values()} == {2}
    assert found.bootstrap == "127.0.0.1:9092,127.0.0.1:9093"
    assert found.dark == {}


def test_a_partition_whose_leader_is_away_is_dark() -> None:
    shown = cluster_rows.cluster()
    cluster_rows.broker(shown, 1, is_fenced=True)
    cluster_rows.topic(shown, "orders", partitions=1)
    cluster_rows.topic(shown, "lost", partitions=1, leader=9)

    assert places_of(asked()).dark == {
        0: "broker 1, which is away, leads partition 0 of orders",
    }
    assert places_of(asked("lost")).dark == {0: "no broker leads partition 0 of lost"}


def test_only_the_partitions_that_are_named_are_told() -> None:
    shown = cluster_rows.cluster()
    cluster_rows.broker(shown, 1)
    cluster_rows.topic(shown, "orders", partitions=3)

    assert places_of(asked("orders", 2)).partitions == [2]
    with pytest.raises(BadQuestion, match="orders has no partition 3"):
        places_of(asked("orders", 0, 3))


def test_a_topic_that_is_not_there_is_none() -> None:
    cluster_rows.cluster()

    with pytest.raises(NoSuchTopic, match="no topic 'orders'"):
        places_of(asked())


def test_a_topic_with_too_many_partitions_has_to_be_asked_for_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("console.messages.places.MAX_PARTITIONS", 2)
    shown = cluster_rows.cluster()
    cluster_rows.broker(shown, 1)
    cluster_rows.topic(shown, "orders", partitions=3)

    with pytest.raises(BadQuestion, match="3 partitions"):
        places_of(asked())
