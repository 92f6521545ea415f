"""Leases: one owner at a time, a fence that rises, and slices that hear what is wanted."""

from datetime import timedelta

import pytest
from django.db import connections

from connectors import database_time
from connectors.models import Connector, Task
from connectors.runtime.ports import Ending, LeaseLost, SliceEnd, Verdict
from connectors.sdk.errors import RetriableError
from connectors.tasks import leases
from connectors.tasks.leases import Told
from connectors.tasks.source_offsets import StoredOffsets
from tests.connectors.tasks.rows import add_connector, add_task, again, expire, queued, taken
from tests.extras import requires

pytestmark = [
    pytest.mark.usefixtures("database"),
    pytest.mark.parametrize(
        "database",
        ["sqlite", pytest.param("postgres", marks=[pytest.mark.slow, requires("postgresql")])],
        indirect=True,
    ),
]
BUSY = SliceEnd(ending=Ending.BUSY)
NOTHING = Told(figures={}, topics=frozenset())


def test_a_task_is_taken_once_for_a_ticket() -> None:
    task = add_task(add_connector())
    ticket = queued(task)

    first, second = leases.take("w1", task.pk, ticket), leases.take("w1", task.pk, ticket)

    assert first is not None
    assert second is None
    assert again(task).state == "RUNNING"


@pytest.mark.parametrize("change", [{"target": "PAUSED"}, {"target": "STOPPED"}, {"generation": 2}])
def test_a_task_that_is_not_to_run_is_not_taken(change: dict[str, object]) -> None:
    task = add_task(add_connector())
    ticket = queued(task)
    Connector.objects.update(**change)

    assert leases.take("w1", task.pk, ticket) is None


def test_the_epoch_rises_when_the_owner_changes_and_only_then() -> None:
    task = add_task(add_connector(), worker="w1")

    same = taken(task, "w1")
    expire(task)
    other = taken(task, "w2")

    assert (same.epoch, other.epoch) == (7, 8)


def test_whoever_lost_the_lease_neither_renews_nor_stores_nor_gives_back() -> None:
    task = add_task(add_connector(), worker="w1")
    old = taken(task, "w1")
    expire(task)
    new = taken(task, "w2")

    assert leases.verdict(old) is Verdict.LOST
    assert not leases.renew(old, NOTHING)
    assert leases.release(old, BUSY, NOTHING) is None
    with pytest.raises(LeaseLost):
        StoredOffsets(old).store([({"a": 1}, {"at": 1})])
    assert again(task).worker == "w2"
    assert leases.verdict(new) is Verdict.KEEP


def test_whoever_has_let_the_lease_run_out_stores_nothing_though_nobody_took_it() -> None:
    task = add_task(add_connector())
    held = taken(task)
    StoredOffsets(held).store([({"a": 1}, {"at": 1})])
    expire(task)

    with pytest.raises(LeaseLost):
        StoredOffsets(held).store([({"a": 1}, {"at": 2})])
    Task.objects.update(leased_until=None)
    with pytest.raises(LeaseLost):
        StoredOffsets(held).store([({"a": 1}, {"at": 3})])

    assert StoredOffsets(held).read({"a": 1}) == {"at": 1}


def test_offsets_come_back_whatever_the_order_of_a_places_keys() -> None:
    offsets = StoredOffsets(taken(add_task(add_connector())))

    offsets.store([({"a": 1, "b": 2}, {"at": 1}), ({"c": 1}, {"at": 5})])
    offsets.store([({"b": 2, "a": 1}, {"at": 2})])

    assert offsets.read({"a": 1, "b": 2}) == {"at": 2}
    assert offsets.read({"c": 1}) == {"at": 5}
    assert offsets.read({"d": 1}) is None


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({"target": "PAUSED"}, Verdict.STOP),
        ({"generation": 2}, Verdict.STOP),
        ({}, Verdict.KEEP),
    ],
)
def test_a_slice_hears_what_is_wanted(change: dict[str, object], wanted: Verdict) -> None:
    held = taken(add_task(add_connector()))
    if change:
        Connector.objects.update(**change)

    assert leases.verdict(held) is wanted


def test_a_slice_yields_when_another_task_waits_for_its_worker() -> None:
    connector = add_connector()
    held = taken(add_task(connector))
    other = add_task(connector, 1)

    before = leases.verdict(held)
    queued(other)

    assert (before, leases.verdict(held)) == (Verdict.KEEP, Verdict.YIELD)


def test_a_busy_task_goes_on_at_once_and_an_idle_one_waits() -> None:
    task = add_task(add_connector())

    busy = leases.release(taken(task), BUSY, NOTHING)
    idle = leases.release(taken(task), SliceEnd(ending=Ending.IDLE, wait_s=5.0), NOTHING)

    assert busy is not None
    assert idle is None
    due_at = again(task).due_at
    assert due_at is not None
    assert due_at > database_time.now() + timedelta(seconds=3)


def test_a_failed_slice_fails_its_task_with_the_trace() -> None:
    task = add_task(add_connector())

    leases.release(taken(task), SliceEnd(ending=Ending.FAILED, trace="why"), NOTHING)

    assert (again(task).state, again(task).trace) == ("FAILED", "why")


def test_a_slice_tells_its_topics_and_figures() -> None:
    task = add_task(add_connector())
    held = taken(task)

    leases.renew(held, Told(figures={"records_read": 10}, topics=frozenset({"b"})))
    while_it_runs = again(task).figures, Connector.objects.get().topics
    leases.release(held, BUSY, Told(figures={"records_read": 20}, topics=frozenset({"b", "a"})))

    assert while_it_runs == ({"records_read": 10}, ["b"])
    assert again(task).figures == taken(task).figures == {"records_read": 20}
    assert Connector.objects.get().topics == ["a", "b"]


def test_a_slice_knows_how_long_its_task_has_waited() -> None:
    task = add_task(add_connector())
    first = taken(task)
    leases.release(first, BUSY, NOTHING)
    Task.objects.update(slice_ended_at=database_time.now() - timedelta(seconds=5))
    second = taken(task)
    leases.release(second, BUSY, NOTHING)
    Task.objects.update(slice_ended_at=database_time.now() - timedelta(hours=5))

    assert first.waited_s == 0.0
    assert second.waited_s >= 5.0
    assert taken(task).waited_s == leases.MAX_WAITED_S


def test_a_database_that_does_not_answer_is_a_reason_to_try_again() -> None:
    offsets = StoredOffsets(taken(add_task(add_connector())))
    with connections["connect"].cursor() as cursor:
        cursor.execute("ALTER TABLE connectors_sourceoffset RENAME TO elsewhere")

    with pytest.raises(RetriableError, match="does not answer"):
        offsets.read({"a": 1})
    with pytest.raises(RetriableError, match="does not answer"):
        offsets.store([({"a": 1}, {"at": 1})])
