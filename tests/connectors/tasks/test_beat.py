"""The process that plans: it asks for itself only while there are connectors."""

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError

from connectors import wanted
from connectors.models import Connector
from connectors.runtime.pools import PLAIN, SPARK
from connectors.tasks import beat, planning
from tests.connectors.tasks.rows import CLUSTER, add_connector, add_task

pytestmark = pytest.mark.usefixtures("database")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(beat, "time", made)
    return made


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(settings, "SAMSA_HOME", tmp_path)
    wanted.note()
    return tmp_path / wanted.MARKS[PLAIN]


def planner() -> beat.Planner:
    silent: Any = None
    return beat.Planner(CLUSTER, silent)


def test_the_mark_goes_a_calm_time_after_the_last_connector(mark: Path, clock: Clock) -> None:
    add_connector(target="STOPPED", state="STOPPED")
    one = planner()
    one.round(0)
    clock.now += 10 * beat.CALM_S
    one.round(0)
    assert mark.exists()

    Connector.objects.all().delete()
    clock.now += beat.CALM_S - 1
    one.round(0)
    assert mark.exists()
    clock.now += beat.LOOK_S
    one.round(0)
    assert not mark.exists()


def test_the_mark_of_a_pool_goes_where_no_connector_needs_it(mark: Path, clock: Clock) -> None:
    wanted.note(SPARK)
    of_spark = mark.parent / wanted.MARKS[SPARK]
    add_connector()
    one = planner()
    clock.now += beat.CALM_S + beat.LOOK_S

    one.round(0)

    assert (mark.exists(), of_spark.exists()) == (True, False)


def test_a_process_that_ends_without_any_connector_is_not_wanted_again(mark: Path) -> None:
    add_connector()
    planner().close()
    assert mark.exists()

    Connector.objects.all().delete()
    planner().close()
    assert not mark.exists()


def test_a_connector_that_is_made_meanwhile_keeps_the_mark(
    mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([True, False])
    monkeypatch.setattr(wanted, "is_empty", lambda *_: next(answers))

    assert not wanted.take_back(CLUSTER)
    assert mark.exists()


def test_a_database_that_is_away_keeps_the_mark(
    mark: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: str) -> bool:
        raise OperationalError("the database is away")

    monkeypatch.setattr(wanted, "is_empty", away)

    planner().close()
    assert mark.exists()


def test_a_connector_that_waits_for_its_tasks_is_looked_at_soon(mark: Path, clock: Clock) -> None:
    del mark
    one = planner()
    one.round(0)
    assert one.wait_s == beat.TICK_S

    add_connector(planned_generation=0)
    one.round(0)
    assert one.wait_s == beat.SOON_S
    # No worker runs, or its tasks cannot be made: nothing is gained by hurry any more.
    clock.now += beat.SOON_FOR_S + 1
    one.round(0)
    assert one.wait_s == beat.TICK_S
    Connector.objects.all().delete()
    one.round(0)
    add_connector(planned_generation=0)
    one.round(0)
    assert one.wait_s == beat.SOON_S


@pytest.mark.parametrize(
    ("task", "waits"),
    [
        ({"state": "UNASSIGNED", "queued_at": None}, True),
        ({"state": "RUNNING", "queued_at": None}, False),
        ({"state": "FAILED", "queued_at": None}, False),
    ],
)
def test_a_task_waits_until_it_is_queued_first(task: dict[str, Any], waits: bool) -> None:
    add_task(add_connector(), **task)

    assert planning.has_waiting(CLUSTER) is waits
