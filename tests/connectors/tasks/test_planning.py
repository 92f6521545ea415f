"""The planner's decisions become rows and messages."""

import base64
import json
import threading
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from connectors import database_time, registry, selectors
from connectors.models import Connector, LogLine, Task, Worker
from connectors.runtime import planner
from connectors.runtime.ports import Ending, SliceEnd
from connectors.sdk.configs import Secret
from connectors.tasks import (
    beat,
    configs,
    leases,
    planning,
    preparation,
    processes,
    workers,
)
from gateway.access.grants import Rights
from tests.connectors.tasks.rows import CLUSTER, add_connector, add_task, again, queued, taken
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


def test_unknown_key_is_in_the_log_once_for_each_config() -> None:
    config = {"name": "c", "topic": "t", "quickstart": "orders", "iteration": "5"}
    row = add_connector(planned_generation=0, worker="w1", config=config)

    for _ in range(2):
        preparation.prepare("w1", row.pk, 1)

    [line] = LogLine.objects.all()
    assert (line.level, line.task) == ("WARN", None)
    assert line.text.endswith("no config iteration, so it has no effect: did you mean iterations?")


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


@pytest.mark.parametrize(
    "told",
    [
        {"my.password": "hunter2"},
        {"note": "postgresql://u:hunter2@h/d"},
        {"header": "Basic " + base64.b64encode(b"u:hunter2").decode()},
        {"made": Secret("its own")},
    ],
)
def test_secrets_that_a_plugin_tells_its_tasks_are_sealed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: dict[str, Any]
) -> None:
    (tmp_path / "connect.d").mkdir()
    (tmp_path / "connect.d" / "db").write_text("hunter2")
    monkeypatch.setattr(settings, "SAMSA_SECRETS", tmp_path)
    plugin = registry.plugins()["samsa.datagen"]
    monkeypatch.setattr(plugin, "task_configs", lambda *_, **__: [{**told, "open": "x"}])
    config = {"topic": "t", "quickstart": "orders", "note": "${secret:db}"}
    row = add_connector(planned_generation=0, worker="w1", config=config)

    preparation.prepare("w1", row.pk, 1)

    [task] = Task.objects.all()
    assert "hunter2" not in json.dumps(task.config)
    assert selectors.status(CLUSTER, "c", reader=Rights()).tasks[0].config["open"] == "x"
    assert "[hidden]" in selectors.status(CLUSTER, "c", reader=Rights()).tasks[0].config.values()
    clear = configs.clear(
        plugin=row.plugin, stored=row.config, own=task.config, cluster=CLUSTER, name="c"
    )
    [(key, text)] = told.items()
    assert clear.parsed[key] == (text.reveal() if isinstance(text, Secret) else text)
    assert clear.parsed[key] in clear.secrets


def test_a_plugin_that_tells_its_tasks_no_texts_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = registry.plugins()["samsa.datagen"]
    monkeypatch.setattr(plugin, "task_configs", lambda *_, **__: [{"port": 5432}])
    config = {"topic": "t", "quickstart": "orders"}
    row = add_connector(planned_generation=0, worker="w1", config=config)

    preparation.prepare("w1", row.pk, 1)

    row.refresh_from_db()
    assert "returns a task's port as a int, not a text" in row.trace


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


def test_a_task_that_failed_after_the_planner_looked_stays_failed() -> None:
    task = add_task(add_connector(), state="PAUSED")
    add_worker()
    decided = planner.plan(planning.rows(CLUSTER), ["w1"], database_time.now())
    Task.objects.update(state="FAILED", trace="why")

    for action in decided:
        planning._apply(action, database_time.now())  # noqa: SLF001 - between the two of a round

    assert again(task).state == "FAILED"


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


def begin_preparation(row: Connector, *, seconds_ago: float) -> None:
    began = database_time.now() - timedelta(seconds=seconds_ago)
    Connector.objects.filter(pk=row.pk).update(
        worker="w1", planning_since=began, preparing_at=began
    )


def let_wait_end() -> None:
    past = database_time.now() - timedelta(seconds=1)
    Connector.objects.update(due_at=past)


def test_a_connector_that_ends_whoever_asks_it_for_tasks_fails_after_five_times() -> None:
    row = add_connector(planned_generation=0, state="UNASSIGNED")
    waiting = add_connector("waiting", planned_generation=0, worker="w1")
    process = add_worker()
    sent = Sent()

    for _ in range(planner.MAX_CRASHES):
        begin_preparation(row, seconds_ago=1)
        workers.bury("w1", process)
        process = add_worker()
        planning.plan(CLUSTER, sent)
        too_soon = [connector for _, connector, _ in sent.prepares]
        let_wait_end()
    planning.plan(CLUSTER, sent)

    row.refresh_from_db()
    assert row.pk not in too_soon
    assert (row.state, row.planned_generation, row.crashes) == ("FAILED", 1, 0)
    assert "ended 5 times in a row" in row.trace
    waiting.refresh_from_db()
    assert waiting.crashes == 0
    said = LogLine.objects.filter(connector=row).first()
    assert said is not None
    assert said.text.endswith("ended while it ran the question for its tasks, try 1")


def test_a_connector_says_while_its_code_is_asked_and_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = add_connector(planned_generation=0, worker="w1", crashes=2)
    seen: list[datetime | None] = []

    def look(*_: object, **__: object) -> list[dict[str, str]]:
        seen.append(Connector.objects.get().preparing_at)
        return [{}]

    plugin = registry.plugins()["samsa.datagen"]
    monkeypatch.setattr(plugin, "task_configs", look)
    Connector.objects.update(config={"topic": "t", "quickstart": "orders"})
    preparation.prepare("w1", row.pk, 1)

    row.refresh_from_db()
    assert seen[0] is not None
    assert (row.preparing_at, row.crashes, row.planned_generation) == (None, 0, 1)


def test_a_task_whose_process_had_to_be_ended_waits_and_lets_others_run() -> None:
    connector = add_connector()
    hung, sibling = add_task(connector), add_task(connector, 1)
    process = add_worker()
    taken(hung)
    queued(sibling)
    Task.objects.filter(pk=hung.pk).update(taken_at=database_time.now() - timedelta(seconds=61))

    workers.bury("w1", process)

    row = again(hung)
    assert row.due_at is not None
    assert row.due_at > database_time.now() + timedelta(minutes=4)
    assert (row.crashes, row.hung_at is None, row.leased_until) == (1, False, None)
    assert again(sibling).queued_at is None
    [line] = LogLine.objects.all()
    assert line.text.startswith("the task did not return within 60 s, so the process of worker")


def test_a_slice_that_ends_takes_the_suspicion_away() -> None:
    task = add_task(add_connector(), crashes=2, hung_at=database_time.now())

    leases.release(
        taken(task), SliceEnd(ending=Ending.BUSY), leases.Told(figures={}, topics=frozenset())
    )

    assert (again(task).crashes, again(task).hung_at) == (0, None)


def test_a_task_of_a_worker_that_just_ended_is_tried_again_soon() -> None:
    process = add_worker()
    task = add_task(add_connector())
    taken(task)

    workers.bury("w1", process)

    row = again(task)
    assert (row.leased_until, row.crashes, row.hung_at) == (None, 1, None)
    assert row.due_at is not None
    assert row.due_at < database_time.now() + timedelta(seconds=10)


def test_one_of_two_beats_plans() -> None:
    assert [beat.hold(CLUSTER, holder) for holder in ("a", "b", "a", "b")] == [
        True,
        False,
        True,
        False,
    ]
