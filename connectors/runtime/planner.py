"""Decides which tasks to queue, move, free or mark, from the rows at one moment.

Pure: rows and a time in, actions out. Sticky, so that expensive resources stay in one worker; fair,
since each worker serves its queue in order; and stateless, so that any process can plan next. An
action has no effect if the state has changed since the decision.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, TypeAlias

from connectors.runtime.pools import PLAIN, pool_of

# A queued message counts as lost if its worker has done nothing for this long.
LOST: Final = timedelta(seconds=5)
# Messages of a queue are taken in order; clocks and transactions blur it by this much.
BLUR: Final = timedelta(seconds=2)
# Asking for tasks may include a check of the other side, after a slice that runs already.
PREPARED_WITHIN: Final = timedelta(seconds=20)
# A running preparation is visible in its row; one that hangs is killed with its process after a
# minute, and the next process has started by then.
PREPARED_ONCE_BEGUN: Final = timedelta(seconds=90)
# A task counts as not running if it is late by two turns: at least this, and its pool's turn for
# each task of its worker.
LATE: Final = timedelta(seconds=20)
# A task that ended its process this often in a row, without making anything durable, is not run
# again.
MAX_CRASHES: Final = 5
# A task that was killed with its process has blocked its worker for a minute. It waits this long,
# and a worker tries one suspect in this time, so it loses at most a sixth of its time.
AFTER_HANG: Final = timedelta(minutes=5)
# A worker with this many tasks more than another one gives one away.
UNEVEN: Final = 2
POISON: Final = (
    "The process of its worker ended {count} times in a row while this task ran, and nothing was"
    " made durable: look for lack of memory, or a crash in a client library, in the worker's log;"
    " restart the task when the cause is gone"
)
HANGING: Final = (
    "The task hung {count} times in a row, and its worker's process was killed each time: check"
    " that the external system answers, and set timeouts in the config; restart the task when the"
    " cause is fixed"
)
POISON_OF_PREPARATION: Final = (
    "The worker's process ended {count} times in a row while the connector created its task"
    " configs: look for a crash in a client library, or lack of memory, in the worker's log;"
    " restart the connector when the cause is fixed"
)

STARTED: Final = "STARTED"
STOPPED: Final = "STOPPED"
PAUSED: Final = "PAUSED"
RUNNING: Final = "RUNNING"
FAILED: Final = "FAILED"
UNASSIGNED: Final = "UNASSIGNED"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    id: int
    generation: int
    state: str
    worker: str = ""
    assigned: str = ""
    leased_until: datetime | None = None
    queued_at: datetime | None = None
    served_at: datetime | None = None
    slice_ended_at: datetime | None = None
    due_at: datetime | None = None
    crashes: int = 0
    hung_at: datetime | None = None

    def is_leased(self, now: datetime) -> bool:
        return self.leased_until is not None and self.leased_until > now


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorRow:
    id: int
    target: str
    state: str
    generation: int
    planned_generation: int
    pool: str = PLAIN
    worker: str = ""
    planning_since: datetime | None = None
    preparing_at: datetime | None = None
    crashes: int = 0
    due_at: datetime | None = None
    tasks: tuple[TaskRow, ...] = ()

    def is_suspect(self, task: TaskRow) -> bool:
        """Return whether a task has hung, or is suspect since another of its connector has."""
        if task.hung_at is not None:
            return True
        has_hung = any(other.hung_at is not None for other in self.tasks)
        return has_hung and task.slice_ended_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Free:
    """Remove an expired lease."""

    task: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    task: int
    trace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Queue a task for a worker."""

    task: int
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """Empty the queue of a worker whose messages seem to be lost."""

    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """Have a worker ask a connector for its tasks."""

    connector: int
    generation: int
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailConnector:
    connector: int
    generation: int
    trace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTasks:
    connector: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TellConnector:
    connector: int
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TellTask:
    task: int
    state: str


Action: TypeAlias = (
    Free | Fail | Queue | Purge | Prepare | FailConnector | RemoveTasks | TellConnector | TellTask
)


def plan(
    connectors: Sequence[ConnectorRow],
    workers: Iterable[str],
    now: datetime,
    *,
    pools: Mapping[str, Iterable[str]] = MappingProxyType({}),
) -> list[Action]:
    """Return the actions to take now.

    `workers` are those of the plain pool, `pools` has those of the other pools.
    """
    floors = {
        pool: _Floor(
            [connector for connector in connectors if connector.pool == pool],
            sorted(set(pools.get(pool, ()) if pool else workers)),
            now,
            turn=pool_of(pool).turn,
        )
        for pool in {PLAIN, *pools, *(connector.pool for connector in connectors)}
    }
    actions: list[Action] = [
        Free(task=task.id)
        for connector in connectors
        for task in connector.tasks
        if task.leased_until is not None and not task.is_leased(now)
    ]
    for connector in connectors:
        actions += _of_connector(connector, floors[connector.pool], floors[PLAIN], now)
    return [purge for pool in sorted(floors) for purge in floors[pool].purges()] + actions


class _Floor:
    """The workers of a pool: their tasks, and whether their messages arrive."""

    def __init__(
        self,
        connectors: Sequence[ConnectorRow],
        workers: list[str],
        now: datetime,
        *,
        turn: timedelta,
    ) -> None:
        self.workers = workers
        self.turn = turn
        self._now = now
        tasks = [task for connector in connectors for task in connector.tasks]
        self._loads = Counter(dict.fromkeys(workers, 0))
        self._loads.update(task.assigned for task in tasks if task.assigned in self._loads)
        self._served: dict[str, datetime] = {}
        self._active: dict[str, datetime] = {}
        self._at_work: set[str] = set()
        for task in tasks:
            _raise(self._served, task.worker, task.served_at)
            _raise(self._active, task.worker, task.slice_ended_at)
            if task.is_leased(now):
                self._at_work.add(task.worker)
        # The suspects of each worker, queued or running, and when one last hung there.
        self._trials: dict[str, set[int]] = defaultdict(set)
        self._hung: dict[str, datetime] = {}
        for connector in connectors:
            for task in connector.tasks:
                _raise(self._hung, task.worker, task.hung_at)
                if connector.is_suspect(task) and (task.queued_at or task.is_leased(now)):
                    self._trials[task.assigned].add(task.id)
        self._first_queued: dict[str, datetime] = {}
        for task in tasks:
            if task.queued_at is not None:
                known = self._first_queued.get(task.assigned, task.queued_at)
                self._first_queued[task.assigned] = min(known, task.queued_at)

    def size(self, worker: str) -> int:
        return self._loads[worker]

    def is_deaf(self, worker: str) -> bool:
        """Return whether a worker takes none of its messages."""
        first = self._first_queued.get(worker)
        if first is None or worker in self._at_work or worker not in self._loads:
            return False
        last = max(first, self._active.get(worker, first))
        return self._now - last > LOST

    def is_lost(self, task: TaskRow) -> bool:
        """Return whether the message of a queued task is lost."""
        assert task.queued_at is not None
        if task.assigned not in self._loads or self.is_deaf(task.assigned):
            return True
        served = self._served.get(task.assigned)
        return served is not None and task.queued_at < served - BLUR

    def purges(self) -> list[Action]:
        return [Purge(worker=worker) for worker in self.workers if self.is_deaf(worker)]

    def choose(self, task: TaskRow) -> str:
        """Return the worker for a task: its current one, unless that is gone or has many more."""
        least = min(self.workers, key=lambda worker: (self._loads[worker], worker))
        here = task.assigned
        if here in self._loads and self._loads[here] - self._loads[least] < UNEVEN:
            return here
        if here in self._loads:
            self._loads[here] -= 1
        self._loads[least] += 1
        return least

    def try_out(self, task: TaskRow, worker: str) -> bool:
        """Return whether a worker may try a suspect now, and count it if so."""
        hung = self._hung.get(worker)
        if self._trials[worker] - {task.id} or (hung and self._now - hung < AFTER_HANG):
            return False
        self._trials[worker].add(task.id)
        return True

    def any(self, preferred: str) -> str:
        if preferred in self._loads and not self.is_deaf(preferred):
            return preferred
        return min(self.workers, key=lambda worker: (self._loads[worker], worker))


def _raise(times: dict[str, datetime], name: str, time: datetime | None) -> None:
    if time is not None and name:
        times[name] = max(time, times.get(name, time))


def _of_connector(
    connector: ConnectorRow, floor: _Floor, plain: _Floor, now: datetime
) -> Iterator[Action]:
    is_busy = any(task.is_leased(now) for task in connector.tasks)
    if connector.target == STOPPED:
        # A running slice notices it, and ends first.
        if connector.tasks and not is_busy:
            yield RemoveTasks(connector=connector.id)
        yield from _told(connector, STOPPED)
        return
    if connector.planned_generation < connector.generation:
        if is_busy:
            return
        yield from _prepared(connector, plain, now)
        return
    if connector.state != FAILED:
        wanted = PAUSED if connector.target == PAUSED else RUNNING
        yield from _told(connector, wanted if floor.workers else UNASSIGNED)
    for task in connector.tasks:
        if task.generation == connector.generation:
            yield from _of_task(task, connector, floor, now)


def _told(connector: ConnectorRow, state: str) -> Iterator[Action]:
    if connector.state != state:
        yield TellConnector(connector=connector.id, state=state)


def _prepared(connector: ConnectorRow, floor: _Floor, now: datetime) -> Iterator[Action]:
    if connector.crashes >= MAX_CRASHES:
        trace = POISON_OF_PREPARATION.format(count=connector.crashes)
        yield FailConnector(connector=connector.id, generation=connector.generation, trace=trace)
    elif not floor.workers:
        yield from _told(connector, UNASSIGNED)
    elif _is_to_be_asked(connector, floor, now):
        yield Prepare(
            connector=connector.id,
            generation=connector.generation,
            worker=floor.any(connector.worker),
        )


def _is_to_be_asked(connector: ConnectorRow, floor: _Floor, now: datetime) -> bool:
    since, begun = connector.planning_since, connector.preparing_at
    if connector.due_at is not None and connector.due_at > now:
        return False
    if since is None or connector.worker not in floor.workers:
        return True
    if begun is not None:
        return now - begun > PREPARED_ONCE_BEGUN
    return now - since > PREPARED_WITHIN


def _of_task(
    task: TaskRow, connector: ConnectorRow, floor: _Floor, now: datetime
) -> Iterator[Action]:
    if task.is_leased(now) or task.state == FAILED:
        return
    if connector.target == PAUSED:
        if task.state != PAUSED:
            yield TellTask(task=task.id, state=PAUSED)
        return
    if task.crashes >= MAX_CRASHES:
        reason = POISON if task.hung_at is None else HANGING
        yield Fail(task=task.id, trace=reason.format(count=task.crashes))
        return
    if task.state == PAUSED or (task.state == RUNNING and _is_waiting(task, floor, now)):
        yield TellTask(task=task.id, state=UNASSIGNED)
    if not floor.workers or (task.due_at is not None and task.due_at > now):
        return
    if task.queued_at is None or floor.is_lost(task):
        worker = floor.choose(task)
        if not connector.is_suspect(task) or floor.try_out(task, worker):
            yield Queue(task=task.id, worker=worker)


def _is_waiting(task: TaskRow, floor: _Floor, now: datetime) -> bool:
    """Return whether a task that should run does not: no worker takes it, or it is a suspect."""
    is_held_back = task.hung_at is not None and task.queued_at is None
    return is_held_back or _is_late(task, floor, now)


def _is_late(task: TaskRow, floor: _Floor, now: datetime) -> bool:
    """Return whether a task that should run has not run for two turns."""
    since = max(
        (time for time in (task.slice_ended_at, task.due_at) if time is not None), default=None
    )
    if task.assigned not in floor.workers or since is None:
        return True
    return now - since > LATE + floor.turn * floor.size(task.assigned)
