"""Plans applied to brokers that do not do as they are asked, and what the audit keeps of it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from django.db import OperationalError, connections

from brokers.cluster.origins import Origin
from brokers.controlplane import audit, services
from brokers.controlplane.services import GroupChangeKind
from console.group_changes.applying import UNKNOWN_OUTCOME, Result, apply
from console.group_changes.plans import LISTED_PARTITIONS, GroupPlan, digest_of
from gateway.kafka.errors import KafkaFailure, failure
from gateway.kafka.group_view import GroupView
from gateway.kafka.values import GroupState, Member, Partition, Place, Topic
from tests.builders.group_plans import group_plan
from tests.console import cluster_rows

ORIGIN = Origin(actor="User:alice", address="192.0.2.7", session="5e55")
FIRST, SECOND = (Place(topic="orders", partition=index) for index in (0, 1))


@dataclass
class MadeUpBrokers:
    """Brokers that tell what a test says and refuse what it names."""

    committed: dict[Place, int] = field(default_factory=lambda: {FIRST: 40, SECOND: 40})
    state: GroupState = GroupState.EMPTY
    members: tuple[Member, ...] = ()
    held: tuple[int, int] = (0, 100)
    refused: dict[Place, KafkaFailure] = field(default_factory=dict)
    failure: KafkaFailure | None = None
    calls: int = 0
    # Entries of the audit that there were when the call was made.
    noted_before: int = 0

    def view(self, group: str) -> GroupView:
        return GroupView(
            name=group, state=self.state, members=self.members, committed=self.committed
        )

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        one = (Partition(index=0, leader=1, replicas=(1,), isr=(1,)),)
        return {
            name: Topic(name=name, id="id-1", is_internal=False, partitions=one) for name in names
        }

    def bounds(self, places: Iterable[Place]) -> dict[Place, tuple[int, int]]:
        return dict.fromkeys(places, self.held)

    def carry_out(self, plan: GroupPlan) -> dict[Place, KafkaFailure]:
        self.calls += 1
        self.noted_before = len(entries())
        if self.failure is not None:
            raise self.failure
        return self.refused


@pytest.fixture(autouse=True)
def cluster() -> None:
    cluster_rows.cluster()


def applied(brokers: MadeUpBrokers, plan: GroupPlan) -> Result:
    return apply(brokers, plan, origin=ORIGIN, now_ms=cluster_rows.NOW_MS)


def entries() -> list[audit.Entry]:
    return audit.entries(cluster_id=cluster_rows.CLUSTER_ID)


def test_the_audit_hears_of_a_change_before_the_brokers_do() -> None:
    brokers = MadeUpBrokers()

    result = applied(brokers, group_plan(2))

    done, begun = entries()
    assert brokers.noted_before == 1
    assert (result.entry, begun.outcome, done.outcome) == (begun.number, "BEGUN", "NONE")
    assert not begun.is_refused
    refused_only = audit.Filter(is_refused=True)
    assert not audit.entries(cluster_id=cluster_rows.CLUSTER_ID, which=refused_only)


def test_what_brokers_refuse_in_part_is_told_and_kept_in_part() -> None:
    refusal = failure("TOPIC_AUTHORIZATION_FAILED", f"group billing, {SECOND}")

    result = applied(MadeUpBrokers(refused={SECOND: refusal}), group_plan(2))

    done, _ = entries()
    assert result.refused == {SECOND: refusal}
    assert done.outcome == "TOPIC_AUTHORIZATION_FAILED"
    assert "1 of 2 partitions were refused, the others were changed" in done.message
    assert (done.before, done.after) == ({"orders 0": "40"}, {"orders 0": "17"})


@pytest.mark.parametrize(
    ("name", "is_unknown"),
    [("REQUEST_TIMED_OUT", True), ("BROKER_NOT_AVAILABLE", True), ("NON_EMPTY_GROUP", False)],
)
def test_a_call_that_failed_says_whether_anybody_knows_what_was_done(
    name: str, is_unknown: bool
) -> None:
    result = applied(MadeUpBrokers(failure=failure(name, "group billing")), group_plan())

    done, _ = entries()
    assert result.is_unknown is is_unknown
    assert (done.outcome, done.after) == (name, {})
    assert ("the result is unknown" in done.message) is is_unknown


@pytest.mark.parametrize("name", sorted(UNKNOWN_OUTCOME))
def test_a_call_of_several_that_nobody_answered_is_not_told_as_refused(name: str) -> None:
    silent = failure(name, "group billing")

    result = applied(MadeUpBrokers(refused={SECOND: silent}), group_plan(2))

    assert result.is_partly_unknown
    done = entries()[0]
    assert "or got no answer, and may have been changed as well" in done.message


def test_a_plan_is_carried_out_once_also_where_the_group_comes_back_to_what_it_had() -> None:
    brokers, plan = MadeUpBrokers(), group_plan(2)
    applied(brokers, plan)
    applied(brokers, group_plan(1, group="other"))

    again = applied(brokers, plan)

    [sentence] = again.moved
    assert "a change of group billing, entry 1 of the audit, was begun after" in sentence
    assert brokers.calls == 2
    assert entries()[0].outcome == "INVALID_UPDATE_VERSION"
    newer = group_plan(2, made_at_ms=cluster_rows.NOW_MS + 1)
    assert not applied(brokers, newer).moved
    assert brokers.calls == 3


def test_nothing_is_done_where_the_audit_takes_no_entry() -> None:
    with connections["cluster"].cursor() as cursor:
        cursor.execute("ALTER TABLE controlplane_auditentry RENAME TO elsewhere")
    brokers = MadeUpBrokers()

    with pytest.raises(OperationalError):
        applied(brokers, group_plan(2))

    assert brokers.calls == 0


def test_an_outcome_that_could_not_be_written_is_no_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(**_asked: object) -> int:
        raise OperationalError("the disk is full")

    monkeypatch.setattr(services, "note_outcome", away)

    result = applied(MadeUpBrokers(), group_plan(2))

    assert result.failure is None
    assert not result.is_noted
    assert [entry.outcome for entry in entries()] == ["BEGUN"]


def test_an_offset_that_retention_has_overtaken_refuses_the_plan() -> None:
    brokers = MadeUpBrokers(held=(18, 100))

    result = applied(brokers, group_plan(1))

    assert result.moved == (
        "topic orders, partition 0: offset 17 is outside of its current offsets, 18 to 100",
    )
    assert brokers.calls == 0
    assert [entry.outcome for entry in entries()] == ["INVALID_UPDATE_VERSION"]


def test_offsets_that_a_user_may_not_see_refuse_the_deletion_once_they_have_moved() -> None:
    plan = group_plan(
        1, kind=GroupChangeKind.DELETE_GROUP, topic_ids={}, digest=digest_of({FIRST: 40, SECOND: 1})
    )

    result = applied(MadeUpBrokers(), plan)

    assert result.moved == ("group billing has committed offsets that the plan does not show",)


def test_an_offset_of_the_topic_that_came_since_refuses_its_deletion() -> None:
    result = applied(MadeUpBrokers(), group_plan(1, kind=GroupChangeKind.DELETE_OFFSETS))

    assert result.moved == (f"{SECOND}: committed is 40; it was nothing",)


def test_many_partitions_that_have_moved_are_named_so_far_and_counted() -> None:
    plan = group_plan(30)

    result = applied(MadeUpBrokers(committed={}), plan)

    assert len(result.moved) == 21
    assert result.moved[-1] == "10 more partitions have moved"


def test_the_audit_of_many_partitions_has_a_line_for_each_topic() -> None:
    count = LISTED_PARTITIONS + 1
    committed = {Place(topic="orders", partition=index): 40 for index in range(count)}

    applied(MadeUpBrokers(committed=committed), group_plan(count))

    done, _ = entries()
    assert list(done.after) == ["orders"]
    assert done.after["orders"].startswith("0: 17, 1: 17, ")
    assert done.after["orders"].endswith(f"{count - 1}: 17")
