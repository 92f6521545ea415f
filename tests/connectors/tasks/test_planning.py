"""The planner's decisions become rows and messages."""

import threading
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.conf import settings

from connectors import registry
from connectors.models import Connector, Task, Worker
from connectors.tasks import beat, database_time, planning, preparation, processes, workers
from tests.connectors.tasks.rows import CLUSTER, add_connector, add_task, again, taken
from tests.extras import requires

pytestmark = [
    pytest.mark.usefixtures("database"),
    pytest.mark.parametrize(
        "database",
        ["sqlite", pytest.param("postgres", marks=[pytest.mark.slow, requires("postgresql")])],
        indirect=True,
    ),
]


class Sent:
    """The queues of workers, as lists."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, int, datetime]] = []
        self.prepares: list[tuple[str, int, int]] = []
        self.purges: list[str] = []
        self.is_away = False

    def run(self, worker: str, task: int, ticket: datetime) -> None:
        if self.is_away:
            raise ConnectionError("Valkey is away")
        self.runs.append((worker, task, ticket))

    def prepare(self, worker: str, connector: int, generation: int) -> None:
        self.prepares.append((worker, connector, generation))

    def purge(self, worker: str) -> None:
        self.purges.append(worker)


def add_worker(name: str = "w1") -> processes.Process:
    process = processes.Process(number=1, began=5)
    workers.register(CLUSTER, name, process, is_new=True)
    return process


def test_a_connector_gets_its_tasks_and_they_get_a_worker() -> None:
    row = add_connector(
        state="UNASSIGNED",
        planned_generation=0,
        config={"name": "c", "topic": "t", "quickstart": "orders"},
    )
    add_worker()
    sent = Sent()

    planning.plan(CLUSTER, sent)
    [(worker, connector, generation)] = sent.prepares
    preparation.prepare(worker, connector, generation)
    planning.plan(CLUSTER, sent)

    row.refresh_from_db()
    assert (row.state, row.planned_generation, row.trace) == ("RUNNING", 1, "")
    [task] = Task.objects.all()
    assert sent.runs == [("w1", task.pk, task.queued_at)]


def test_a_connector_that_cannot_say_its_tasks_fails_with_the_reason() -> None:
    row = add_connector(plugin="nobody.knows", planned_generation=0, worker="w1")

    preparation.prepare("w1", row.pk, 1)

    row.refresh_from_db()
    assert (row.state, row.planned_generation) == ("FAILED", 1)
    assert row.trace.startswith("ConfigError: this worker has no connector nobody.knows")


def test_what_a_reference_stands_for_is_in_no_trace(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "connect.d").mkdir()
    (tmp_path / "connect.d" / "db").write_text("hunter2")
    monkeypatch.setattr(settings, "SAMSA_SECRETS", tmp_path)
    row = add_connector(
        planned_generation=0,
        worker="w1",
        config={"topic": "t", "quickstart": "orders", "iterations": "${secret:db}"},
    )

    preparation.prepare("w1", row.pk, 1)

    row.refresh_from_db()
    assert row.state == "FAILED"
    assert "for configuration iterations" in row.trace
    assert "hunter2" not in row.trace


def test_a_connector_that_does_not_answer_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*_: object, **__: object) -> None:
        threading.Event().wait()

    plugin = registry.plugins()["samsa.datagen"]
    monkeypatch.setattr(plugin, "task_configs", hang)
    monkeypatch.setattr(preparation, "ANSWER_S", 0.1)
    row = add_connector(planned_generation=0, worker="w1")

    preparation.prepare("w1", row.pk, 1)

    row.refresh_from_db()
    assert row.state == "FAILED"
    assert "has not said its tasks within" in row.trace


def test_a_new_life_of_a_task_has_no_lower_epoch() -> None:
    row = add_connector(
        planned_generation=0, worker="w1", config={"topic": "t", "quickstart": "orders"}
    )
    task = add_task(row, epoch=10**15, state="FAILED", trace="old", generation=0)

    preparation.prepare("w1", row.pk, 1)

    renewed = again(task)
    assert (renewed.epoch, renewed.state, renewed.trace) == (10**15, "UNASSIGNED", "")


def test_a_message_that_did_not_leave_is_sent_again() -> None:
    task = add_task(add_connector())
    add_worker()
    sent = Sent()
    sent.is_away = True

    planning.plan(CLUSTER, sent)
    sent.is_away = False
    long_ago = database_time.now() - timedelta(seconds=30)
    Task.objects.update(queued_at=long_ago)
    planning.plan(CLUSTER, sent)

    assert sent.purges == ["w1"]
    assert [number for _, number, _ in sent.runs] == [task.pk]


def test_a_stopped_connector_loses_its_tasks_and_gets_them_back() -> None:
    row = add_connector(target="STOPPED")
    add_task(row)
    add_worker()
    sent = Sent()

    planning.plan(CLUSTER, sent)
    tasks_when_stopped = Task.objects.count()
    Connector.objects.update(target="STARTED")
    planning.plan(CLUSTER, sent)

    assert tasks_when_stopped == 0
    assert [connector for _, connector, _ in sent.prepares] == [row.pk]


def test_a_worker_whose_process_ended_is_forgotten_and_its_leases_freed() -> None:
    process = add_worker()
    task = add_task(add_connector())
    taken(task)

    workers.bury("w1", process)

    assert not Worker.objects.exists()
    assert again(task).leased_until is None


def test_a_worker_that_is_back_under_its_name_is_not_buried() -> None:
    add_worker()

    workers.bury("w1", processes.Process(number=1, began=4))

    assert Worker.objects.count() == 1


def test_a_silent_worker_is_forgotten_and_its_leases_are_left_to_end() -> None:
    add_worker()
    task = add_task(add_connector())
    taken(task)
    Worker.objects.update(seen_at=database_time.now() - timedelta(seconds=60))

    workers.bury_silent(CLUSTER)

    assert not Worker.objects.exists()
    assert again(task).leased_until is not None


def test_one_of_two_beats_plans() -> None:
    assert [beat.hold(CLUSTER, holder) for holder in ("a", "b", "a", "b")] == [
        True,
        False,
        True,
        False,
    ]
