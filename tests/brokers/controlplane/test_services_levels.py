"""The metadata level of a cluster in rows: when it rises, who holds it back, what it refuses."""

import pytest

from brokers.cluster import levels
from brokers.cluster.changes import PartitionsAdded
from brokers.cluster.proposals import CreatePartitions
from brokers.cluster.store import Registered, Registration
from brokers.protocol.errors import ErrorCode, KafkaError
from tests.brokers.controlplane.host import NOW_MS, new_cluster
from tests.brokers.controlplane.test_services import asking, propose, topic
from tests.contracts.keeper import new_id

from brokers.controlplane import models, selectors, services  # isort: skip


@pytest.fixture
def cluster_id(database: str) -> str:
    return new_cluster()


@pytest.fixture
def second_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this code know a second level, whose records and actions are those of new partitions."""
    monkeypatch.setattr(levels, "KNOWN_LEVEL", 2)
    monkeypatch.setitem(levels.ACTION_LEVELS, CreatePartitions, 2)
    monkeypatch.setitem(levels.RECORD_LEVELS, PartitionsAdded, 2)


def start_agent(cluster_id: str, agent_id: str) -> models.Agent:
    return services.start_agent(
        cluster_id=cluster_id, agent_id=agent_id, host=agent_id, boot_id="", now_ms=NOW_MS
    )


def register(cluster_id: str, level: int, *, broker_id: int = -1) -> Registered:
    registered = services.register_broker(
        cluster_id=cluster_id,
        registration=Registration(
            incarnation=new_id(),
            host="127.0.0.1",
            port=9092,
            broker_id=broker_id,
            metadata_level=level,
        ),
        agent_id="agent-1",
        process="",
        now_ms=NOW_MS,
    )
    services.unfence_broker(
        cluster_id=cluster_id,
        broker_id=registered.broker_id,
        broker_epoch=registered.broker_epoch,
        now_ms=NOW_MS,
    )
    return registered


def level_of(cluster_id: str) -> int:
    return models.Cluster.objects.get(cluster_id=cluster_id).metadata_level


def test_a_cluster_begins_at_the_first_level_and_is_raised_by_its_first_agent(
    cluster_id: str,
) -> None:
    assert level_of(cluster_id) == levels.FIRST_LEVEL
    start_agent(cluster_id, "one")
    register(cluster_id, levels.KNOWN_LEVEL)
    assert level_of(cluster_id) == levels.KNOWN_LEVEL
    assert selectors.held_back_by(cluster_id=cluster_id) == []


@pytest.mark.usefixtures("second_level")
def test_the_level_rises_once_the_last_one_that_held_it_back_knows_it(cluster_id: str) -> None:
    models.Agent.objects.create(
        cluster=models.Cluster.objects.get(), agent_id="old", host="h", boot_id="", started_at_ms=0
    )
    register(cluster_id, 1)
    register(cluster_id, 2)
    start_agent(cluster_id, "new")
    assert level_of(cluster_id) == 1
    assert selectors.held_back_by(cluster_id=cluster_id) == [
        "the agent of h knows 1",
        "broker 1 at 127.0.0.1:9092 knows 1",
    ]

    start_agent(cluster_id, "old")
    assert level_of(cluster_id) == 1

    register(cluster_id, 2, broker_id=1)
    assert level_of(cluster_id) == 2


@pytest.mark.usefixtures("second_level")
def test_an_action_above_the_level_is_refused_with_those_who_hold_it_back(cluster_id: str) -> None:
    register(cluster_id, 1)
    start_agent(cluster_id, "one")
    propose(cluster_id, asking(topic("grows")))

    (refused,) = propose(cluster_id, asking(CreatePartitions(name="grows", count=4)))
    register(cluster_id, 2, broker_id=1)
    (accepted,) = propose(cluster_id, asking(CreatePartitions(name="grows", count=4)))

    assert refused.error is ErrorCode.UNSUPPORTED_VERSION
    assert "CreatePartitions needs metadata level 2 and the cluster is at 1" in refused.message
    assert "broker 1 at 127.0.0.1:9092 knows 1" in refused.message
    assert not accepted.error


@pytest.mark.usefixtures("second_level")
def test_a_record_above_the_level_is_not_written_whoever_makes_it(
    cluster_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(levels.ACTION_LEVELS, CreatePartitions, 1)
    register(cluster_id, 1)
    start_agent(cluster_id, "one")
    propose(cluster_id, asking(topic("grows")))
    version = models.Cluster.objects.get().version

    with pytest.raises(KafkaError, match="PartitionsAdded needs metadata level 2"):
        propose(cluster_id, asking(CreatePartitions(name="grows", count=4)))

    assert models.Cluster.objects.get().version == version


@pytest.mark.usefixtures("second_level")
def test_who_knows_less_than_the_cluster_does_not_join_it(
    cluster_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_agent(cluster_id, "one")
    register(cluster_id, 2)
    assert level_of(cluster_id) == 2

    with pytest.raises(KafkaError, match="broker 2 knows metadata level 1") as of_broker:
        register(cluster_id, 1)
    monkeypatch.setattr(levels, "KNOWN_LEVEL", 1)
    with pytest.raises(KafkaError, match="the agent of two knows metadata level 1"):
        start_agent(cluster_id, "two")

    assert of_broker.value.code is ErrorCode.UNSUPPORTED_VERSION
    assert models.Broker.objects.count() == 1
    assert models.Agent.objects.count() == 1


def test_a_level_that_no_row_can_hold_is_refused(cluster_id: str) -> None:
    with pytest.raises(KafkaError, match="the metadata level 32768 of a broker"):
        register(cluster_id, levels.MAX_LEVEL + 1)
