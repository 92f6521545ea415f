"""One slice of a job: its engine reads and writes; this module handles time, lease and group.

The job's own checkpoint holds its progress; the group's offsets are for lag monitoring.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from connectors.runtime import figures
from connectors.runtime.context import TaskContext
from connectors.runtime.group_names import group_of
from connectors.runtime.masking import masked
from connectors.runtime.ports import Inlet, Level, Ports, SliceEnd, TaskSpec, Verdict
from connectors.runtime.sink_places import share, wanted
from connectors.runtime.steps import Stage, StepFailed
from connectors.runtime.task_settings import errors_of, reading_of
from connectors.runtime.tolerance import Tolerance
from connectors.runtime.traces import words
from connectors.runtime.turn import Turn
from connectors.sdk.connector import JobConnector
from connectors.sdk.errors import DataError
from connectors.sdk.records import JobBatch, Place, RawRecord, TopicPartition
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.values import Record

# An idle job polls again after this, unless other tasks wait for its worker.
LOOK_S: Final = 1.0
NOT_TOLD: Final = "the offsets could not be committed to the group, so its lag is too high: {}"


def run(spec: TaskSpec, ports: Ports) -> SliceEnd:
    """Run a slice; errors of the job, its engine or the cluster do not escape."""
    turn = Turn(spec, ports)
    max_delay_s = 0.0
    try:
        max_delay_s = errors_of(spec.config).max_delay_s
        is_idle = _work(turn)
    # A task is foreign code: any exception ends its slice and nothing else.
    except Exception as error:  # noqa: BLE001
        return turn.failed(error, max_delay_s=max_delay_s)
    return turn.end(is_idle=is_idle)


def _work(turn: Turn) -> bool:
    assert issubclass(turn.spec.plugin, JobConnector), "a job's task is a job"
    task = turn.spec.plugin().task()
    context = JobTaskContext(turn)
    is_idle = False
    try:
        task.start(context, turn.spec.parsed)
        while not turn.is_over(is_idle=is_idle):
            if is_idle:
                turn.ports.clock.wait(LOOK_S)
            is_idle = not task.run()
    except BaseException:
        # Report the first error.
        with suppress(Exception):
            task.stop()
        raise
    else:
        task.stop()
    finally:
        context.close()
    return is_idle


class JobTaskContext(TaskContext):
    """Close it."""

    def __init__(self, turn: Turn) -> None:
        super().__init__(turn.spec, turn.ports, turn.is_over)
        self._turn = turn
        self._reading = reading_of(turn.spec.config)
        self._tolerance = Tolerance(
            turn.spec, turn.ports, errors_of(turn.spec.config), turn.figures
        )
        self._inlet: Inlet | None = None

    @property
    def _note(self) -> Place:
        return {"note of job": self._spec.number}

    @property
    def bootstrap(self) -> str:
        return self._ports.wire.bootstrap()

    @property
    def group(self) -> str:
        return group_of(self._spec.connector)

    @property
    def begins_at_end(self) -> bool:
        return self._reading.reset == "latest"

    def places(self) -> Sequence[TopicPartition]:
        every = wanted(self._reading, self._ports.wire.topics())
        return share(every, number=self._spec.number, count=self._spec.count)

    def bounds(self) -> Mapping[TopicPartition, tuple[int, int]]:
        return self._ports.wire.bounds(self.places())

    def topic_ids(self, topics: Collection[str]) -> Mapping[str, str]:
        return self._ports.wire.topic_ids(topics)

    def note(self) -> Mapping[str, Any] | None:
        return self._ports.offsets.read(self._note)

    def keep_note(self, note: Mapping[str, Any]) -> None:
        self._turn.require_lease()
        self._ports.offsets.store([(self._note, note)])

    def committed(self) -> Mapping[TopicPartition, int]:
        return self._ports.wire.committed(self.group)

    def require_lease(self) -> None:
        self._turn.require_lease()

    @property
    def is_stopping(self) -> bool:
        # Not the turn's own verdict, which belongs to the thread of the slice.
        return self._turn.ports.lease.renew() is Verdict.STOP

    def refuse(self, record: RawRecord, error: DataError) -> None:
        raw = Record(
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            key=record.key,
            value=record.value,
            timestamp_ms=record.timestamp_ms,
            headers=record.headers,
        )
        self._tolerance.failed(
            StepFailed(Stage.VALUE_CONVERTER, self._spec.plugin.name, error), raw
        )

    def settle(self) -> None:
        self._tolerance.settle()

    def count(self, *, read: int = 0, written: int = 0, skipped: int = 0, dead: int = 0) -> None:
        counted = {
            figures.READ: read,
            figures.WRITTEN: written,
            figures.SKIPPED: skipped,
            figures.DEAD: dead,
        }
        for name, count in counted.items():
            self._turn.figures.add(name, count)

    def note_batch(self, batch: JobBatch) -> None:
        self._turn.figures.note(batch)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        self._turn.require_lease()
        self._turn.worked()
        self._turn.figures.add(figures.COMMITTED)
        for place in offsets:
            self._turn.figures.use(place.topic)
        if not offsets:
            return True
        try:
            if self._inlet is None:
                self._inlet = self._ports.wire.inlet(self.group, {})
            self._inlet.commit(offsets)
        except KafkaFailure as failure:
            # The work is durable: the next commit reports it.
            said = masked(words(failure), self._spec.secrets)
            self._ports.log.write(Level.WARN, NOT_TOLD.format(said))
            return False
        return True

    def close(self) -> None:
        if self._inlet is not None:
            with suppress(KafkaFailure):
                self._inlet.close()
