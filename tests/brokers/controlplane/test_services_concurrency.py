"""Writers beside each other: numbers in the order of commits, nothing twice, nobody stuck."""

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import TypeVar

import pytest

from brokers.cluster.image import ResourceType
from brokers.cluster.proposals import (
    AllocateProducerIds,
    AlterConfigs,
    ConfigEdit,
    CreateTopic,
    DeleteTopic,
    Outcome,
    ProducerIdsResult,
    Proposal,
)
from brokers.protocol.errors import ErrorCode
from tests.brokers.controlplane.host import NOW_MS, new_cluster
from tests.brokers.controlplane.test_services import asking, propose, serving

from brokers.controlplane import models, services, values  # isort: skip
from brokers.controlplane.reading import read_all, read_news  # isort: skip
from django.db import connections  # isort: skip

pytestmark = pytest.mark.slow

WRITERS = 4
ROUNDS = 8

T = TypeVar("T")


def beside_each_other(jobs: list[Callable[[], T]]) -> list[T]:
    """Run every job in a thread, and so over a connection, of its own."""

    def run(job: Callable[[], T]) -> T:
        try:
            return job()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))


def test_changes_are_numbered_without_gaps_and_lead_to_the_rows(database: str) -> None:
    cluster_id = new_cluster()
    broker = serving(cluster_id)
    history = read_all(cluster_id=cluster_id)

    def writer(number: int) -> Callable[[], list[Outcome]]:
        def write() -> list[Outcome]:
            outcomes: list[Outcome] = []
            for turn in range(ROUNDS):
                mine, ours = f"w{number}-{turn}", f"shared-{turn}"
                edit = AlterConfigs(
                    resource_type=ResourceType.BROKER,
                    name="",
                    edits=(ConfigEdit(key="log.retention.ms", value=str(number + turn)),),
                )
                outcomes += propose(
                    cluster_id,
                    asking(CreateTopic(name=mine, partitions=2), broker),
                    asking(CreateTopic(name=ours, partitions=1), broker),
                    asking(edit, broker),
                )
                outcomes += propose(cluster_id, asking(DeleteTopic(name=mine), broker))
            return outcomes

        return write

    outcomes = list(chain(*beside_each_other([writer(number) for number in range(WRITERS)])))
    for entry in read_news(cluster_id=cluster_id, after=history.position).entries:
        history.append(entry)

    refused = [outcome.error for outcome in outcomes if outcome.error]
    assert refused == [ErrorCode.TOPIC_ALREADY_EXISTS] * (WRITERS - 1) * ROUNDS
    assert history.image == values.image(models.Cluster.objects.get())
    assert len(history.image.topics) == ROUNDS
    assert models.Cluster.objects.get().partition_count == ROUNDS


def test_one_proposal_by_several_agents_is_done_once(database: str) -> None:
    cluster_id = new_cluster()
    broker = serving(cluster_id)
    for turn in range(ROUNDS):
        wanted = [
            asking(CreateTopic(name=f"t{turn}"), broker),
            asking(DeleteTopic(name=f"t{turn - 1}"), broker),
            asking(AllocateProducerIds(), broker),
        ][: 3 if turn else 1]

        def ask(proposals: list[Proposal] = wanted) -> list[Outcome]:
            return services.propose(cluster_id=cluster_id, proposals=proposals, now_ms=NOW_MS)

        answers = beside_each_other([ask] * WRITERS)

        assert all(answer == answers[0] for answer in answers)
        assert not any(outcome.error for outcome in answers[0])


def test_producer_ids_are_never_given_twice(database: str) -> None:
    cluster_id = new_cluster()

    def allocate() -> list[int]:
        blocks = []
        for _ in range(ROUNDS):
            (outcome,) = propose(
                cluster_id,
                Proposal(id=secrets.token_bytes(16), action=AllocateProducerIds(), actor="User:a"),
            )
            assert isinstance(outcome.result, ProducerIdsResult)
            blocks.append(outcome.result.first)
        return blocks

    given = list(chain(*beside_each_other([allocate] * WRITERS)))

    assert sorted(given) == [1000 * number for number in range(WRITERS * ROUNDS)]


def test_brokers_that_come_at_once_get_ids_of_their_own(database: str) -> None:
    cluster_id = new_cluster()

    brokers = beside_each_other([lambda: serving(cluster_id)] * WRITERS)

    assert sorted(broker.broker_id for broker in brokers) == list(range(1, WRITERS + 1))
    assert len({broker.broker_epoch for broker in brokers}) == WRITERS
