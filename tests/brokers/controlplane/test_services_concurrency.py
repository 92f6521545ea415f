"""Writers beside each other: numbers in the order of commits, nothing twice, nobody stuck."""

import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from threading import Barrier, BrokenBarrierError
from typing import Any, TypeVar

import pytest

from brokers.cluster import levels
from brokers.cluster.decisions import Decision, decide
from brokers.cluster.image import ResourceType
from brokers.cluster.origins import Origin
from brokers.cluster.proposals import (
    Action,
    AllocateProducerIds,
    AlterConfigs,
    ConfigEdit,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    Outcome,
    ProducerIdsResult,
    Proposal,
)
from brokers.cluster.store import Registered
from brokers.protocol.errors import ErrorCode
from tests.brokers.controlplane.host import NOW_MS, new_cluster
from tests.brokers.controlplane.test_services import asking, propose, serving

from brokers.controlplane import audit, models, selectors, services, values  # isort: skip
from brokers.controlplane.reading import read_all, read_news  # isort: skip
from django.db import connections  # isort: skip

pytestmark = pytest.mark.slow

WRITERS = 4
ROUNDS = 8
# How long a writer that has read waits for the others to have read too; one that must not read yet
# stands at a lock, so this is the price of a test that passes.
MEET_S = 0.3

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


def meeting(monkeypatch: pytest.MonkeyPatch, writers: int) -> None:
    """Let writers decide only when all of them have read what they decide on, where they can."""
    barrier = Barrier(writers)

    def decide_together(*args: Any, **kwargs: Any) -> Decision:
        with suppress(BrokenBarrierError):
            barrier.wait(MEET_S)
        return decide(*args, **kwargs)

    monkeypatch.setattr("brokers.controlplane.services.proposals.decide", decide_together)


@pytest.mark.parametrize("name", ["", "1"])
def test_the_first_two_edits_of_a_configuration_both_hold(
    database: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    cluster_id = new_cluster()
    # One broker's calls wait for each other anyway.
    editors = {"log.retention.ms": serving(cluster_id), "log.segment.bytes": serving(cluster_id)}

    def editor(key: str, broker: Registered) -> Callable[[], list[Outcome]]:
        edit = AlterConfigs(
            resource_type=ResourceType.BROKER,
            name=name,
            edits=(ConfigEdit(key=key, value="2000000"),),
        )
        return lambda: propose(cluster_id, asking(edit, broker))

    meeting(monkeypatch, len(editors))
    outcomes = list(chain(*beside_each_other([editor(*each) for each in editors.items()])))

    assert [outcome.message for outcome in outcomes if outcome.error] == []
    held = selectors.configs(cluster_id=cluster_id, resource_type=ResourceType.BROKER, name=name)
    assert sorted(held) == sorted(editors)


def test_two_topics_do_not_both_get_the_last_room(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("brokers.cluster.decisions", "brokers.controlplane.services.proposals"):
        monkeypatch.setattr(f"{module}.MAX_PARTITIONS", 10, raising=False)
    cluster_id = new_cluster()
    creators = {"one": serving(cluster_id), "two": serving(cluster_id)}

    def creator(name: str, broker: Registered) -> Callable[[], list[Outcome]]:
        return lambda: propose(cluster_id, asking(CreateTopic(name=name, partitions=6), broker))

    meeting(monkeypatch, len(creators))
    outcomes = list(chain(*beside_each_other([creator(*each) for each in creators.items()])))

    errors = sorted(outcome.error for outcome in outcomes)
    assert errors == [ErrorCode.NONE, ErrorCode.POLICY_VIOLATION]
    assert models.Cluster.objects.get().partition_count == 6


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

    start = min(given)
    assert sorted(given) == [start + 1000 * number for number in range(WRITERS * ROUNDS)]


def test_brokers_that_come_at_once_get_ids_of_their_own(database: str) -> None:
    cluster_id = new_cluster()

    brokers = beside_each_other([lambda: serving(cluster_id)] * WRITERS)

    assert sorted(broker.broker_id for broker in brokers) == list(range(1, WRITERS + 1))
    assert len({broker.broker_epoch for broker in brokers}) == WRITERS


@pytest.mark.parametrize(
    "action",
    [
        CreateTopic(name="new"),
        CreatePartitions(name="orders", count=4),
        AlterConfigs(
            resource_type=ResourceType.TOPIC,
            name="orders",
            edits=(ConfigEdit(key="retention.ms", value="1000"),),
        ),
        AlterConfigs(
            resource_type=ResourceType.BROKER,
            name="",
            edits=(ConfigEdit(key="num.partitions", value="3"),),
        ),
        DeleteTopic(name="orders"),
    ],
    ids=["create", "partitions", "config", "default", "delete"],
)
def test_of_plans_that_rest_on_the_same_only_one_is_applied(
    database: str, monkeypatch: pytest.MonkeyPatch, action: Action
) -> None:
    cluster_id = new_cluster()
    serving(cluster_id)
    models.Cluster.objects.update(metadata_level=levels.KNOWN_LEVEL)
    propose(cluster_id, asking(CreateTopic(name="orders", partitions=2)))

    def planned() -> Callable[[], list[Outcome]]:
        plan = services.preview(cluster_id=cluster_id, actions=[action], now_ms=NOW_MS)
        return lambda: services.apply_plan(
            cluster_id=cluster_id,
            proposals=plan.proposals,
            origin=Origin(actor="User:alice"),
            now_ms=NOW_MS,
        )

    jobs = [planned(), planned()]
    meeting(monkeypatch, len(jobs))
    outcomes = sorted(outcome.error for (outcome,) in beside_each_other(jobs))

    assert outcomes == [ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION]
    assert audit.verify(cluster_id=cluster_id).faults == ()


def test_the_audit_has_no_gaps_however_many_write_to_it(database: str) -> None:
    cluster_id = new_cluster()
    serving(cluster_id)

    def writer(number: int) -> Callable[[], list[Outcome]]:
        def write() -> list[Outcome]:
            outcomes = []
            for step in range(ROUNDS):
                outcomes += propose(cluster_id, asking(CreateTopic(name=f"t-{number}-{step}")))
                outcomes += propose(cluster_id, asking(DeleteTopic(name=f"gone-{number}-{step}")))
            return outcomes

        return write

    outcomes = beside_each_other([writer(number) for number in range(WRITERS)])

    found = audit.verify(cluster_id=cluster_id)
    assert (found.last, found.faults) == (len(list(chain(*outcomes))), ())
