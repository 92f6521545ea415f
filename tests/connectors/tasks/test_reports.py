"""Reports of a worker about the engine of its tasks: seldom, and until it is stopped."""

from datetime import timedelta
from typing import Any

import pytest

from connectors import database_time, worker_reports
from connectors.models import WorkerReport
from connectors.runtime.pools import PLAIN, SPARK
from connectors.tasks import processes, reports, workers
from connectors.tasks.reports import Reporter
from tests.connectors.tasks.rows import CLUSTER

pytestmark = pytest.mark.usefixtures("database")
NAME = "connect-spark.1.here"


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The facts that the plugin reports, which a test changes."""
    found: dict[str, Any] = {"stage": "none", "memory_bytes": 1, "streams": []}
    monkeypatch.setattr(reports, "TELLINGS", {SPARK: lambda: dict(found)})
    return found


def reporter(pool: str = SPARK) -> Reporter:
    return Reporter(cluster=CLUSTER, worker=NAME, pool=pool)


def register() -> None:
    workers.register(CLUSTER, NAME, processes.this_one(1), is_new=True, pool=SPARK)


def test_what_has_not_changed_is_not_written_again_for_a_while(
    told: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = reporter()
    one.say()
    first = WorkerReport.objects.get().told_at
    one.say()
    assert WorkerReport.objects.get().told_at == first

    told["stage"] = "running"
    one.say()
    assert WorkerReport.objects.get().told["stage"] == "running"
    second = WorkerReport.objects.get().told_at
    monkeypatch.setattr(reports, "EVERY_S", 0.0)
    one.say()
    assert WorkerReport.objects.get().told_at > second > first


def test_a_worker_that_is_stopped_says_so(told: dict[str, Any]) -> None:
    told["stage"] = "running"
    one = reporter()
    one.say()
    one.end()

    said = WorkerReport.objects.get().told
    assert (said["stage"], said["is_stopped"], said["memory_bytes"]) == ("ended", True, None)


def test_a_worker_of_no_engine_and_one_that_never_said_anything_write_no_row(
    told: dict[str, Any],
) -> None:
    plain = reporter(PLAIN)
    plain.say()
    plain.end()
    reporter().end()

    assert not WorkerReport.objects.exists()
    assert told


def test_a_report_is_believed_while_its_worker_is_there(told: dict[str, Any]) -> None:
    register()
    reporter().say()
    (alive,) = worker_reports.reports(CLUSTER, SPARK)
    workers.bury(NAME, processes.this_one(1))
    (gone,) = worker_reports.reports(CLUSTER, SPARK)
    register()
    late = database_time.now() - timedelta(minutes=1)
    WorkerReport.objects.update(told_at=late)
    (silent,) = worker_reports.reports(CLUSTER, SPARK)

    assert (alive.is_silent, gone.is_silent, silent.is_silent) == (False, True, True)
    assert gone.told == told
    assert silent.told_at == late


def test_reports_of_workers_that_were_long_ago_go_with_the_next_one(told: dict[str, Any]) -> None:
    reporter().say()
    old = database_time.now() - reports.KEPT - timedelta(days=1)
    WorkerReport.objects.update(name="another", told_at=old)

    reporter().say()

    assert [row.name for row in WorkerReport.objects.all()] == [NAME]
    assert told
