"""What the planner decides, row by row, and a model of workers that it drives for long."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from connectors.runtime.planner import (
    AFTER_HANG,
    LOST,
    MAX_CRASHES,
    PREPARED_ONCE_BEGUN,
    Action,
    ConnectorRow,
    Fail,
    FailConnector,
    Free,
    Prepare,
    Purge,
    Queue,
    TaskRow,
    TellConnector,
    TellTask,
    plan,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def task(number: int = 1, **fields: object) -> TaskRow:
    known: dict[str, object] = {"id": number, "generation": 1, "state": "RUNNING"}
    known |= {"assigned": "w1", "worker": "w1", "slice_ended_at": after(-1)}
    return TaskRow(**{**known, **fields})  # type: ignore[arg-type]


def connector(*tasks: TaskRow, **fields: object) -> ConnectorRow:
    known: dict[str, object] = {"id": 1, "target": "STARTED", "state": "RUNNING"}
    known |= {"generation": 1, "planned_generation": 1}
    return ConnectorRow(tasks=tasks, **{**known, **fields})  # type: ignore[arg-type]


def planned(row: ConnectorRow, *workers: str) -> list[Action]:
    return plan([row], workers, NOW)


def test_a_new_connector_is_asked_for_its_tasks_by_one_worker() -> None:
    row = connector(state="UNASSIGNED", planned_generation=0)

    assert planned(row, "w2", "w1") == [Prepare(connector=1, generation=1, worker="w1")]


def test_a_pool_runs_its_tasks_and_the_plain_workers_ask_for_them() -> None:
    new = connector(state="UNASSIGNED", planned_generation=0, pool="spark")
    ready = connector(task(assigned=""), pool="spark")

    assert plan([new], ["w1"], NOW, pools={"spark": ["s1"]}) == [
        Prepare(connector=1, generation=1, worker="w1")
    ]
    assert Queue(task=1, worker="s1") in plan([ready], ["w1"], NOW, pools={"spark": ["s1"]})


def test_tasks_of_a_pool_without_workers_wait_and_say_so() -> None:
    ready = connector(task(assigned="w1"), pool="spark")

    found = plan([ready], ["w1"], NOW)

    assert TellConnector(connector=1, state="UNASSIGNED") in found
    assert TellTask(task=1, state="UNASSIGNED") in found
    assert not [action for action in found if isinstance(action, Queue)]


def test_a_task_is_late_after_two_turns_of_its_pool() -> None:
    light = connector(task(slice_ended_at=after(-60), queued_at=after(-60), served_at=after(-60)))
    heavy = replace(light, pool="spark")
    told = TellTask(task=1, state="UNASSIGNED")

    assert told in plan([light], ["w1"], NOW)
    assert told not in plan([heavy], [], NOW, pools={"spark": ["w1"]})


def test_a_connector_is_asked_again_where_its_worker_is_gone_or_silent() -> None:
    asked = connector(planned_generation=0, worker="w1", planning_since=after(-1))
    long_ago = replace(asked, planning_since=after(-60))

    assert planned(asked, "w1") == []
    assert planned(asked, "w2") == [Prepare(connector=1, generation=1, worker="w2")]
    assert planned(long_ago, "w1") == [Prepare(connector=1, generation=1, worker="w1")]


def test_a_new_generation_waits_for_the_slices_of_the_old_one() -> None:
    row = connector(task(leased_until=after(5)), generation=2)

    assert planned(row, "w1") == []


def test_a_task_that_is_due_goes_to_the_queue_of_its_worker() -> None:
    assert planned(connector(task()), "w1", "w2") == [Queue(task=1, worker="w1")]


@pytest.mark.parametrize(
    "fields",
    [
        {"leased_until": after(3)},
        {"due_at": after(3)},
        {"queued_at": after(-1)},
        {"state": "FAILED"},
    ],
)
def test_a_task_that_runs_or_waits_or_has_failed_is_left_alone(fields: dict[str, object]) -> None:
    assert planned(connector(task(1, **fields)), "w1") == []


def test_an_expired_lease_is_freed() -> None:
    row = connector(task(leased_until=after(-1), due_at=after(9)))

    assert planned(row, "w1") == [Free(task=1)]


def test_a_task_whose_worker_is_gone_moves_and_says_so() -> None:
    row = connector(task(assigned="gone", worker="gone", queued_at=after(-1)))

    assert planned(row, "w1") == [
        TellTask(task=1, state="UNASSIGNED"),
        Queue(task=1, worker="w1"),
    ]


def test_without_workers_nothing_is_called_running() -> None:
    assert planned(connector(task())) == [
        TellConnector(connector=1, state="UNASSIGNED"),
        TellTask(task=1, state="UNASSIGNED"),
    ]


def test_a_message_that_was_overtaken_is_sent_again() -> None:
    lost = task(1, queued_at=after(-9))
    served = task(2, served_at=after(-3), leased_until=after(9))

    assert planned(connector(lost, served), "w1") == [Queue(task=1, worker="w1")]


def test_the_messages_of_a_worker_that_takes_none_are_sent_again() -> None:
    deaf = [task(n, queued_at=after(-9), slice_ended_at=after(-9)) for n in (1, 2)]

    assert planned(connector(*deaf), "w1") == [
        Purge(worker="w1"),
        Queue(task=1, worker="w1"),
        Queue(task=2, worker="w1"),
    ]


def test_a_long_slice_does_not_make_the_messages_behind_it_lost() -> None:
    waiting = task(1, queued_at=after(-20), slice_ended_at=after(-20))
    running = task(2, leased_until=after(10), served_at=after(-21))

    assert planned(connector(waiting, running), "w1") == []


def test_a_paused_connector_keeps_its_tasks() -> None:
    row = connector(task(), target="PAUSED")

    assert planned(row, "w1") == [
        TellConnector(connector=1, state="PAUSED"),
        TellTask(task=1, state="PAUSED"),
    ]


def test_a_resumed_task_runs_again() -> None:
    row = connector(task(state="PAUSED"), state="PAUSED")

    assert planned(row, "w1") == [
        TellConnector(connector=1, state="RUNNING"),
        TellTask(task=1, state="UNASSIGNED"),
        Queue(task=1, worker="w1"),
    ]


def test_a_task_that_ends_its_worker_again_and_again_fails() -> None:
    [action] = planned(connector(task(crashes=MAX_CRASHES)), "w1")

    assert isinstance(action, Fail)
    assert "ended 5 times" in action.trace


def test_a_task_that_has_to_be_ended_again_and_again_fails_with_what_to_look_for() -> None:
    [action] = planned(connector(task(crashes=MAX_CRASHES, hung_at=after(-1))), "w1")

    assert isinstance(action, Fail)
    assert "hung 5 times" in action.trace


def test_a_task_that_hung_is_told_not_to_run_and_waits() -> None:
    row = connector(task(crashes=1, hung_at=after(-1), due_at=after(299)))

    assert planned(row, "w1") == [TellTask(task=1, state="UNASSIGNED")]


def test_a_worker_tries_one_suspect_in_the_time_that_a_hang_costs() -> None:
    """Of a connector that has hung, tasks that have shown nothing yet are suspects as well."""
    over = NOW - AFTER_HANG
    hung = task(1, crashes=1, hung_at=over, due_at=NOW, state="UNASSIGNED")
    unproven = task(2, slice_ended_at=None, worker="", state="UNASSIGNED")
    proven = task(3)

    now_due = planned(connector(hung, unproven, proven), "w1")
    too_soon = planned(connector(replace(hung, hung_at=after(-200)), unproven, proven), "w1")
    tried = replace(hung, leased_until=after(5))
    while_tried = planned(connector(tried, unproven, proven), "w1")

    assert now_due == [Queue(task=1, worker="w1"), Queue(task=3, worker="w1")]
    assert too_soon == while_tried == [Queue(task=3, worker="w1")]


def test_a_hanging_connector_takes_a_sixth_of_its_worker_at_most() -> None:
    """Ten tasks hang for a minute each time; after the first, others wait one minute in six."""
    rows = [replace(task(n), slice_ended_at=None, worker="", state="UNASSIGNED") for n in range(10)]
    now, hangs = NOW, 0
    # As after the first hang: its siblings' messages are void.
    rows[0] = replace(rows[0], worker="w1", hung_at=now, crashes=1, due_at=now + AFTER_HANG)
    for _ in range(600):
        now += timedelta(seconds=6)
        for action in plan([connector(*rows)], ["w1"], now):
            if isinstance(action, Queue):
                now += timedelta(minutes=1)
                hangs += 1
                rows[action.task] = replace(
                    rows[action.task], worker="w1", hung_at=now, due_at=now + AFTER_HANG
                )

    assert timedelta(minutes=hangs) <= (now - NOW) / 6 + timedelta(minutes=1)
    assert hangs > 10


def test_a_connector_that_ends_the_processes_that_ask_it_fails() -> None:
    row = connector(planned_generation=0, crashes=MAX_CRASHES, state="UNASSIGNED")

    [action] = planned(row, "w1")

    assert isinstance(action, FailConnector)
    assert "ended 5 times in a row while the connector created" in action.trace


def test_a_connector_is_not_asked_while_it_is_asked_or_waits_after_a_crash() -> None:
    begun = connector(
        planned_generation=0, worker="w1", planning_since=after(-60), preparing_at=after(-60)
    )
    forgotten = replace(begun, preparing_at=NOW - PREPARED_ONCE_BEGUN - timedelta(seconds=1))
    waiting = connector(planned_generation=0, worker="gone", crashes=1, due_at=after(5))

    assert planned(begun, "w1") == []
    assert planned(begun, "w2") == planned(forgotten, "w2")
    assert planned(forgotten, "w1") == [Prepare(connector=1, generation=1, worker="w1")]
    assert planned(waiting, "w1") == []


def test_a_failed_connector_stays_failed() -> None:
    assert planned(connector(state="FAILED"), "w1") == []


def test_a_new_worker_gets_its_part_one_task_after_the_other() -> None:
    rows = [connector(*(task(n) for n in range(6)))]

    queued = [action for action in plan(rows, ["w1", "w2"], NOW) if isinstance(action, Queue)]

    assert (
        sorted(action.worker for action in queued) == ["w1"] * 4 + ["w2"] * 2
        or sorted(action.worker for action in queued) == ["w1"] * 3 + ["w2"] * 3
    )


@pytest.mark.parametrize("seed", range(20))
def test_workers_that_come_and_go_and_lose_messages_run_every_task(seed: int) -> None:
    """Whatever happens, a quiet minute later every task has run within twenty seconds."""
    chance = random.Random(seed)
    model = _Model(tasks=chance.randint(1, 12), chance=chance)
    for _ in range(120):
        model.step(has_trouble=True)
    model.come_to_rest()
    for _ in range(60):
        model.step(has_trouble=False)

    assert all(model.now - ended < timedelta(seconds=20) for ended in model.ended())
    assert {row.assigned for row in model.rows} <= model.workers


class _Model:
    """Workers that take one message a second each; messages may be lost, and workers die."""

    def __init__(self, *, tasks: int, chance: random.Random) -> None:
        self.now = NOW
        self.workers = {"w1", "w2"}
        self.queues: dict[str, list[tuple[int, datetime]]] = {}
        self.rows = [TaskRow(id=n, generation=1, state="UNASSIGNED") for n in range(tasks)]
        self._chance = chance

    def ended(self) -> list[datetime]:
        return [row.slice_ended_at or NOW for row in self.rows]

    def come_to_rest(self) -> None:
        self.workers |= {"w1"}

    def step(self, *, has_trouble: bool) -> None:
        self.now += timedelta(seconds=1)
        if has_trouble and self._chance.random() < 0.1:
            name = self._chance.choice(["w1", "w2", "w3"])
            self.workers ^= {name}
            self.queues.pop(name, None)
        if has_trouble and self._chance.random() < 0.1:
            self.queues.clear()
        for action in plan([connector(*self.rows)], self.workers, self.now):
            self._apply(action)
        for worker in self.workers:
            self._serve(worker)

    def _apply(self, action: Action) -> None:
        match action:
            case Queue(task=number, worker=worker):
                self._change(number, assigned=worker, queued_at=self.now)
                self.queues.setdefault(worker, []).append((number, self.now))
            case Purge(worker=worker):
                self.queues.pop(worker, None)
            case TellTask(task=number, state=state):
                self._change(number, state=state)
            case Free(task=number):
                self._change(number, leased_until=None)
            case _:
                pass

    def _serve(self, worker: str) -> None:
        queue = self.queues.get(worker, [])
        while queue:
            number, ticket = queue.pop(0)
            row = self.rows[number]
            if row.assigned == worker and row.queued_at == ticket:
                self._change(
                    number,
                    worker=worker,
                    state="RUNNING",
                    served_at=ticket,
                    queued_at=None,
                    slice_ended_at=self.now,
                )
                return

    def _change(self, number: int, **fields: object) -> None:
        self.rows[number] = replace(self.rows[number], **fields)  # type: ignore[arg-type]


def test_what_is_lost_is_noticed_within_seconds() -> None:
    assert timedelta(seconds=10) >= LOST
