"""Commands of stories about connectors: the planner's rows, and the slices of a task.

Workers, queues and the database are left out: rows change as `connectors.tasks` changes them, and
the cluster of a slice is one in memory, whose clock moves when a task waits.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from connectors.runtime import planner, sink_slice, source_slice
from connectors.runtime.planner import ConnectorRow, TaskRow
from connectors.runtime.ports import SliceEnd, TaskSpec, Verdict
from connectors.runtime.record_parts import bare
from connectors.sdk.errors import RecordError, RetriableError
from connectors.sdk.records import Place, SinkRecord, TopicPartition
from gateway.kafka.values import Delivered, NewRecord
from tests.fakes.slice_plugins import list_sink, list_source, plain_steps
from tests.fakes.slice_ports import FakeClock, FakeInlet, FakeOffsets, FakePorts, FakeWire
from tests.stories.script import Commands, Milliseconds, counted

NAME: Final = "shop"
STARTED_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)
LEASE: Final = timedelta(seconds=15)
# How long a task rests whose process has died.
AFTER_CRASH: Final = timedelta(seconds=2)
AT_ONCE: Final = Milliseconds(0)


def commands(_folder: Path) -> Commands:
    rows, slices = Rows(), Slices()
    return {
        "worker": rows.worker,
        "worker-ends": rows.worker_ends,
        "connector": rows.connector,
        "target": rows.target,
        "plan": rows.plan,
        "prepared": rows.prepared,
        "take": rows.take,
        "release": rows.release,
        "crash": rows.crash,
        "wait": rows.wait,
        "config": slices.config,
        "produce": slices.produce,
        "source-values": slices.source_values,
        "sink-refuses": slices.sink_refuses,
        "sink-is-away": slices.sink_is_away,
        "lose-lease": slices.lose_lease,
        "run-sink": slices.run_sink,
        "run-source": slices.run_source,
        "topic": slices.topic,
    }


class Rows:
    """The rows of one connector and its tasks, and the workers that are there."""

    def __init__(self) -> None:
        self._now = STARTED_AT
        self._workers: list[str] = []
        self._row: ConnectorRow | None = None

    @property
    def _connector(self) -> ConnectorRow:
        assert self._row is not None, "a story makes its connector first"
        return self._row

    def worker(self, name: str) -> Iterator[str]:
        self._workers.append(name)
        yield f"worker {name} is there"

    def worker_ends(self, name: str) -> Iterator[str]:
        """End a worker; a lease that it had expires by itself."""
        self._workers.remove(name)
        yield f"worker {name} is gone"

    def connector(self) -> Iterator[str]:
        """Create the connector, or give it another config: a new generation."""
        if self._row is None:
            self._row = ConnectorRow(
                id=1, target="STARTED", state="UNASSIGNED", generation=1, planned_generation=0
            )
        else:
            self._row = replace(self._row, generation=self._row.generation + 1)
        yield f"generation {self._row.generation}, planned {self._row.planned_generation}"

    def target(self, state: str) -> Iterator[str]:
        """Have the connector STARTED, PAUSED or STOPPED, as a user asks for."""
        self._row = replace(self._connector, target=state)
        yield f"the connector is to be {state}"

    def plan(self) -> Iterator[str]:
        """Plan once, and apply the actions."""
        actions = planner.plan([self._connector], self._workers, self._now)
        for action in actions:
            yield self._applied(action)
        if not actions:
            yield "nothing to do"

    def prepared(self, *, tasks: int) -> Iterator[str]:
        """Have the worker that was asked answer with the configs of so many tasks."""
        generation = self._connector.generation
        rows = tuple(
            TaskRow(id=number, generation=generation, state="UNASSIGNED") for number in range(tasks)
        )
        self._row = replace(
            self._connector,
            tasks=rows,
            planned_generation=generation,
            planning_since=None,
            state="RUNNING",
        )
        yield f"generation {generation} has tasks {', '.join(str(row.id) for row in rows)}"

    def take(self, task: int) -> Iterator[str]:
        """Have the task's worker take its message, and the lease with it."""
        row = self._task(task)
        assert row.queued_at is not None, f"task {task} is not in a queue"
        self._change(
            task,
            worker=row.assigned,
            state="RUNNING",
            leased_until=self._now + LEASE,
            served_at=row.queued_at,
            queued_at=None,
        )
        yield f"{row.assigned} runs task {task}, leased for {LEASE.seconds} s"

    def release(self, task: int, *, wait: Milliseconds = AT_ONCE) -> Iterator[str]:
        """End a slice; the task has nothing to do for a while."""
        due = self._now + timedelta(milliseconds=wait) if wait else None
        self._change(task, leased_until=None, slice_ended_at=self._now, crashes=0, due_at=due)
        yield f"task {task} is free" + (f", due in {wait / 1000:g} s" if wait else "")

    def crash(self, task: int, *, times: int = 1) -> Iterator[str]:
        """End the process of the worker during a slice; its next process notices it."""
        crashes = self._task(task).crashes + times
        self._change(task, leased_until=None, crashes=crashes, due_at=self._now + AFTER_CRASH)
        yield f"task {task} has ended its process {counted(crashes, 'time')} in a row"

    def wait(self, time: Milliseconds) -> Iterator[str]:
        self._now += timedelta(milliseconds=time)
        yield "time passes"

    def _task(self, number: int) -> TaskRow:
        return next(row for row in self._connector.tasks if row.id == number)

    def _change(self, number: int, **fields: Any) -> None:
        self._row = replace(
            self._connector,
            tasks=tuple(
                replace(row, **fields) if row.id == number else row for row in self._connector.tasks
            ),
        )

    def _applied(self, action: planner.Action) -> str:
        """Change the rows as `connectors.tasks.planning` does; say what was done."""
        match action:
            case planner.Queue(task=task, worker=worker):
                self._change(task, assigned=worker, queued_at=self._now)
                return f"queue task {task} for {worker}"
            case planner.Free(task=task):
                self._change(task, leased_until=None)
                return f"remove the expired lease of task {task}"
            case planner.Fail(task=task, trace=trace):
                self._change(task, state="FAILED")
                return f"task {task} is FAILED: {trace.partition(':')[0]}"
            case planner.TellTask(task=task, state=state):
                self._change(task, state=state)
                return f"task {task} is {state}"
            case planner.Purge(worker=worker):
                return f"empty the queue of {worker}"
            case _:
                return self._applied_to_connector(action)

    def _applied_to_connector(self, action: planner.Action) -> str:
        match action:
            case planner.Prepare(worker=worker, generation=generation):
                self._row = replace(self._connector, worker=worker, planning_since=self._now)
                return f"ask {worker} for the tasks of generation {generation}"
            case planner.TellConnector(state=state):
                self._row = replace(self._connector, state=state)
                return f"the connector is {state}"
            case planner.RemoveTasks():
                planned = self._connector.generation - 1
                self._row = replace(self._connector, tasks=(), planned_generation=planned)
                return "remove the tasks"
            case _:
                raise AssertionError(f"no story has words for {action}")


class Slices:
    """A cluster in memory, and one task that reads or writes it in slices."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._fakes = FakePorts()
        self._fakes.wire = NotedWire(self._fakes.clock, self._lines)
        self._fakes.offsets = NotedOffsets(self._lines)
        self._config: dict[str, str] = {"topics": "orders"}
        self._values: tuple[str, ...] = ()
        self._refused: set[str] = set()
        self._away_puts, self._away_s = 0, 0.0
        self._retries = 0
        self._began = 0.0

    def config(self, *pairs: str) -> Iterator[str]:
        self._config |= {key: value for key, _, value in (pair.partition("=") for pair in pairs)}
        yield from pairs

    def produce(self, *values: str) -> Iterator[str]:
        """Append records to the topic orders, as any producer does."""
        self._fakes.wire.add("orders", *(value.encode() for value in values))
        self._lines.clear()
        yield f"orders has {counted(len(self._fakes.wire.values('orders')), 'record')}"

    def source_values(self, *values: str) -> Iterator[str]:
        """Add to what the source's system has."""
        self._values += values
        yield f"the source has {len(self._values)} values"

    def sink_refuses(self, *values: str) -> Iterator[str]:
        self._refused |= set(values)
        yield f"the target refuses {', '.join(values)}"

    def sink_is_away(self, puts: int, *, wait: Milliseconds = AT_ONCE) -> Iterator[str]:
        """Have the target refuse so many puts for now; it may say how long it will be away."""
        self._away_puts, self._away_s = puts, wait / 1000
        yield f"the target is away for {counted(puts, 'put')}"

    def lose_lease(self) -> Iterator[str]:
        """Have another worker get the task while the next slice runs."""
        self._fakes.lease.verdicts = [Verdict.KEEP, Verdict.KEEP, Verdict.LOST]
        yield "another worker gets the task during the next slice"

    def run_sink(self) -> Iterator[str]:
        spec = TaskSpec(
            connector=NAME,
            plugin=list_sink(put=self._put, flush=self._flush),
            config=self._config,
            retries=self._retries,
        )
        self._began = self._fakes.clock.now
        yield from self._ended(sink_slice.run(spec, self._fakes.ports, plain_steps))

    def run_source(self) -> Iterator[str]:
        plugin = list_source(self._values, before_poll=self._poll)
        spec = TaskSpec(connector=NAME, plugin=plugin, config={}, retries=self._retries)
        yield from self._ended(source_slice.run(spec, self._fakes.ports, plain_steps))

    def topic(self, name: str) -> Iterator[str]:
        """Show the records of a topic; of dead letters also where and why they failed."""
        for record in (record for log in self._fakes.wire.logs.get(name, []) for record in log):
            headers = {key: (value or b"").decode() for key, value in record.headers}
            stage = headers.get("__connect.errors.stage")
            why = headers.get("__connect.errors.exception.message", "")
            value = (record.value or b"").decode()
            yield value if stage is None else f"{value}: {stage}, {why}"
        if not self._fakes.wire.values(name):
            yield "no records"

    # -- the task --------------------------------------------------------------------------------

    def _poll(self, at: int) -> None:
        if at < len(self._values):
            self._lines.append(f"poll from {at}")

    def _put(self, records: list[SinkRecord]) -> None:
        passed_s = self._fakes.clock.now - self._began
        said = f"put {', '.join(str(record.value) for record in records)} after {passed_s:.1f} s"
        if self._away_puts:
            self._away_puts -= 1
            self._lines.append(f"{said}: the target is away")
            raise RetriableError("the target is away", wait_s=self._away_s or None)
        for index, record in enumerate(records):
            if record.value in self._refused:
                self._lines.append(f"{said}: {record.value} is refused")
                raise RecordError(f"{record.value} is refused", index=index)
        self._lines.append(said)

    def _flush(self) -> None:
        self._lines.append("flush")

    def _ended(self, end: SliceEnd) -> Iterator[str]:
        lines = list(self._lines)
        self._lines.clear()
        self._fakes.lease.verdicts = [Verdict.KEEP]
        self._retries = end.retries
        # A slice flushes at its end, whether there is something to flush or not.
        yield from (
            line for line, before in zip(lines, ["", *lines], strict=False) if line != before
        )
        wait = f", again in {end.wait_s:.1f} s" if end.wait_s else ""
        yield f"the slice ends: {end.ending.value}{wait}"
        if end.trace:
            yield f"trace: {bare(end.trace).splitlines()[0]}"


class NotedWire(FakeWire):
    """Notes what a slice sends and commits."""

    def __init__(self, clock: FakeClock, lines: list[str]) -> None:
        super().__init__(clock, orders=1)
        self.lines = lines

    def put(self, topic: str, record: NewRecord) -> Delivered:
        self.lines.append(f"send {(record.value or b'').decode()} to {topic}")
        return super().put(topic, record)

    def inlet(self, group: str, overrides: Mapping[str, str]) -> FakeInlet:
        del overrides
        return NotedInlet(self, group)


class NotedInlet(FakeInlet):
    def __init__(self, wire: NotedWire, group: str) -> None:
        super().__init__(wire, group)
        self._lines = wire.lines

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        for place, offset in offsets.items():
            self._lines.append(f"commit {place.topic} {place.partition} at {offset}")
        super().commit(offsets)


class NotedOffsets(FakeOffsets):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def store(self, offsets: Sequence[tuple[Place, Place]]) -> None:
        super().store(offsets)
        self._lines.extend(f"store offset {offset['at']}" for _, offset in offsets)
