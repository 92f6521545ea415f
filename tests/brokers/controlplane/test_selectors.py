"""What pages are told of the clusters, from the database alone."""

import pytest

from brokers.cluster.image import ResourceType
from brokers.cluster.proposals import CreatePartitions, CreateTopic
from tests.brokers.controlplane.host import NOW_MS, new_cluster
from tests.brokers.controlplane.test_services import asking, propose, register, serving

from brokers.controlplane import selectors, services  # isort: skip
from django.db import connections  # isort: skip
from django.test.utils import CaptureQueriesContext  # isort: skip


def test_an_empty_console_has_no_clusters(database: str) -> None:
    assert selectors.clusters() == []
    assert selectors.cluster(cluster_id="unknown") is None


def test_a_cluster_is_summed_up(database: str) -> None:
    cluster_id = new_cluster()
    broker = serving(cluster_id)
    register(cluster_id)
    propose(cluster_id, asking(CreateTopic(name="orders", partitions=3), broker))

    (summary,) = selectors.clusters()

    assert (summary.brokers, summary.serving_brokers) == (2, 1)
    assert (summary.topics, summary.partitions) == (1, 3)
    assert selectors.cluster(cluster_id=cluster_id) == summary


def test_topics_come_with_what_was_set(database: str) -> None:
    cluster_id = new_cluster()
    broker = serving(cluster_id)
    configured = CreateTopic(name="b", partitions=2, configs=(("retention.ms", "5"),))
    propose(
        cluster_id,
        asking(configured, broker),
        asking(CreateTopic(name="a", partitions=1), broker),
        asking(CreatePartitions(name="a", count=4), broker),
    )

    topics = selectors.every_topic(cluster_id=cluster_id)

    assert {t.name: (t.partitions, t.replication_factor) for t in topics.values()} == {
        "a": (4, 1),
        "b": (2, 1),
    }
    assert (dict(topics["a"].configs), dict(topics["b"].configs)) == ({}, {"retention.ms": "5"})
    assert selectors.configs(cluster_id=cluster_id, resource_type=ResourceType.TOPIC, name="b") == {
        "retention.ms": "5"
    }


def test_all_topics_come_in_a_fixed_number_of_queries(database: str) -> None:
    cluster_id = new_cluster()
    broker = serving(cluster_id)
    configured = CreateTopic(name="b", partitions=2, configs=(("retention.ms", "5"),))
    propose(cluster_id, asking(configured, broker))
    few = selectors.every_topic(cluster_id=cluster_id)
    before = selectors.position(cluster_id=cluster_id)
    propose(cluster_id, *(asking(CreateTopic(name=f"t{n}"), broker) for n in range(30)))

    with CaptureQueriesContext(connections["cluster"]) as asked:
        many = selectors.every_topic(cluster_id=cluster_id)

    assert many["b"] == few["b"]
    assert (len(many), len(asked)) == (31, 5)
    assert selectors.position(cluster_id=cluster_id) != before
    assert selectors.position(cluster_id="unknown") is None


def test_partitions_of_a_fenced_broker_count_as_leaderless(database: str) -> None:
    cluster_id = new_cluster()
    broker = serving(cluster_id)
    propose(cluster_id, asking(CreateTopic(name="orders", partitions=3), broker))
    services.fence_broker(
        cluster_id=cluster_id,
        broker_id=broker.broker_id,
        broker_epoch=broker.broker_epoch,
        now_ms=NOW_MS,
    )

    (topic,) = selectors.every_topic(cluster_id=cluster_id).values()

    assert topic.leaderless == 3
    assert [b.is_fenced for b in selectors.brokers(cluster_id=cluster_id)] == [True]


def test_one_topic_comes_with_its_partitions(database: str) -> None:
    cluster_id = new_cluster()
    broker = serving(cluster_id)
    propose(cluster_id, asking(CreateTopic(name="orders", partitions=3), broker))

    topic = selectors.topic(cluster_id=cluster_id, name="orders")

    assert topic is not None
    assert [state.leader for state in topic.partitions] == [broker.broker_id] * 3
    for name in ("unknown", "", "a\0b", "x" * 300):
        assert selectors.topic(cluster_id=cluster_id, name=name) is None


def test_the_newest_changes_come_first(database: str) -> None:
    cluster_id = new_cluster()
    broker = serving(cluster_id)
    propose(cluster_id, asking(CreateTopic(name="orders"), broker))

    changes = selectors.recent_changes(cluster_id=cluster_id, limit=2)

    assert [(change.version, change.actor) for change in changes] == [
        (3, "User:alice"),
        (2, "agent"),
    ]
    assert changes[0].summary == "topic created: orders"


def test_more_than_a_page_is_a_bug(database: str) -> None:
    with pytest.raises(AssertionError):
        selectors.topic_names(cluster_id="any", contains="", limit=selectors.MAX_ROWS + 1)


def test_what_has_no_leader_is_counted_in_the_whole_cluster(database: str) -> None:
    cluster_id = new_cluster()
    gone = serving(cluster_id)
    propose(cluster_id, *(asking(CreateTopic(name=n, partitions=2), gone) for n in "dcba"))
    before = selectors.leaderless(cluster_id=cluster_id, named=3)
    stays = serving(cluster_id)
    assert services.fence_broker(
        cluster_id=cluster_id,
        broker_id=gone.broker_id,
        broker_epoch=gone.broker_epoch,
        now_ms=NOW_MS,
    )
    propose(cluster_id, asking(CreateTopic(name="led", partitions=5), stays))

    after = selectors.leaderless(cluster_id=cluster_id, named=3)

    assert (before.partitions, before.topics, before.named) == (0, 0, ())
    assert (after.partitions, after.topics, after.named) == (8, 4, ("a", "b", "c"))
