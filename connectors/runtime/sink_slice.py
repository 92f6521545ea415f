"""One slice of a sink: take records, convert, put, flush, and commit what is durable.

Partitions are assigned by hand, and offsets go to the connector's group without membership, because
each slice would be a rebalance. What was put and not flushed is put again by the next slice.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from connectors.runtime import figures, waits
from connectors.runtime.context import SinkTaskContext
from connectors.runtime.ports import Inlet, LeaseLost, Level, Ports, SliceEnd, TaskSpec, Verdict
from connectors.runtime.sink_places import share, wanted
from connectors.runtime.steps import Stage, StepFailed, Steps
from connectors.runtime.task_settings import below, errors_of, reading_of
from connectors.runtime.tolerance import Tolerance
from connectors.runtime.traces import masked, trace, words
from connectors.runtime.turn import Turn
from connectors.sdk.connector import SinkConnector
from connectors.sdk.errors import ConfigError, ConnectorError, RecordError, RetriableError
from connectors.sdk.records import SinkRecord, TopicPartition
from gateway.kafka.values import Record

GROUP: Final = "connect-{}"
# What was put is made durable so often while records come; more often where they come slowly, so
# that each is where it belongs within a second.
FLUSH_S: Final = 1.0
QUIET_FLUSH_S: Final = 0.2
# What a task may have to hold before it is flushed.
MAX_UNFLUSHED: Final = 10_000
# How long an empty look at the topics takes: a stop is heard within it.
LOOK_S: Final = 0.5
# And where others wait; long enough for a first answer of a broker.
HASTY_LOOK_S: Final = 0.1
# Longer waits for the other side are left to the next slice.
MAX_WAIT_S: Final = 5.0
# Where our memory between slices has the offsets that were flushed, and, by partition, how far
# records were left out behind the last one that the task was given.
FLUSHED: Final = "flushed"
LEFT_OUT: Final = "left out"

Pair = tuple[Record, SinkRecord]


def run(spec: TaskSpec, ports: Ports, make_steps: Callable[[Mapping[str, str]], Steps]) -> SliceEnd:
    """Run a slice; whatever goes wrong is told in its end."""
    turn = Turn(spec, ports)
    max_delay_s = 60.0
    try:
        max_delay_s = errors_of(spec.config).max_delay_s
        reading = reading_of(spec.config)
        places = share(wanted(reading, ports.wire.topics()), number=spec.number, count=spec.count)
        if not places:
            return turn.end_without_work()
        if _has_nothing_new(turn, places):
            return turn.end(is_idle=True)
        is_idle = _SinkSlice(turn, places, make_steps(spec.config)).run()
    # A task is foreign code: whatever it raises ends the slice and nothing else.
    except Exception as error:  # noqa: BLE001
        return turn.failed(error, max_delay_s=max_delay_s)
    return turn.end(is_idle=is_idle)


def _has_nothing_new(turn: Turn, places: Sequence[TopicPartition]) -> bool:
    """Tell, where others wait, whether opening the task would be in vain."""
    if turn.verdict() is not Verdict.YIELD:
        return False
    flushed: Mapping[TopicPartition, int] | None = turn.ports.memory.get(FLUSHED)
    if flushed is None:
        # The first slice here: what the group has is never ahead of what the task made durable.
        flushed = turn.ports.wire.committed(GROUP.format(turn.spec.connector))
    if not all(place in flushed for place in places):
        return False
    ends = turn.ports.wire.bounds(places)
    # An end before the offset is that of a topic that was made anew: it is to be read before it
    # has grown past the offset, which then would skip what lies before.
    return all(place in ends and ends[place][1] == flushed[place] for place in places)


class _SinkSlice:
    def __init__(self, turn: Turn, places: Sequence[TopicPartition], steps: Steps) -> None:
        spec, ports = turn.spec, turn.ports
        assert issubclass(spec.plugin, SinkConnector), "a sink's task is a sink"
        self._turn = turn
        self._spec = spec
        self._ports = ports
        self._places = places
        self._steps = steps
        self._reading = reading_of(spec.config)
        self._errors = errors_of(spec.config)
        self._tolerance = Tolerance(spec, ports, self._errors, turn.figures)
        self._context = SinkTaskContext(spec, ports, turn.is_over)
        self._task = spec.plugin().task()
        # Offsets up to which records were put or left out, and up to which they are committed.
        self._next: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        # Where the task stands: behind the last record that it was given, and which partitions
        # neither it nor the target knows anything of yet.
        self._given: dict[TopicPartition, int] = {}
        self._untouched: set[TopicPartition] = set()
        self._unflushed = 0
        self._flushed_at = ports.clock.monotonic()

    def run(self) -> bool:
        """Return whether there was nothing more at the end."""
        group = GROUP.format(self._spec.connector)
        overrides = below(self._spec.config, "consumer.override.")
        inlet = self._ports.wire.inlet(group, overrides)
        try:
            self._task.start(self._context, self._spec.parsed)
            try:
                self._begin(inlet, group)
                return self._work(inlet)
            finally:
                self._stop()
        finally:
            inlet.close()

    def _begin(self, inlet: Inlet, group: str) -> None:
        """Begin where the target says, else where the group is, else where the config says."""
        by_target = self._task.open(self._places)
        by_group = self._ports.wire.committed(group)
        begin = {
            place: by_target.get(place, by_group.get(place, -1))
            for place in self._places
            if place in by_target or place in by_group
        }
        new = [place for place in self._places if place not in begin]
        if new and self._reading.reset == "none":
            raise ConfigError(
                f"{new[0].topic}, partition {new[0].partition} has no offset of the group {group},"
                f" and consumer.override.auto.offset.reset is none: set offsets, or earliest"
            )
        which = 1 if self._reading.reset == "latest" else 0
        fresh = {place: found[which] for place, found in self._ports.wire.bounds(new).items()}
        if fresh:
            # At the end of a topic the next slice would else begin behind what comes meanwhile.
            self._turn.require_lease()
            inlet.commit(fresh)
        self._committed = {
            place: offset for place, offset in by_group.items() if place in begin
        } | fresh
        self._given = begin | fresh
        self._untouched = set(self._places) - by_target.keys()
        # A target knows nothing of what was left out, which would be buried once more.
        left_out: Mapping[TopicPartition, tuple[int, int]] = self._ports.memory.get(LEFT_OUT, {})
        for place, offset in self._given.items():
            first, end = left_out.get(place, (None, 0))
            self._next[place] = end if first == offset else offset
        inlet.begin(self._next)

    def _work(self, inlet: Inlet) -> bool:
        is_idle = False
        while not self._turn.is_over(is_idle=is_idle and not self._unflushed):
            taken = inlet.take(most=self._reading.max_records, wait_s=self._wait_s())
            is_idle = not taken
            try:
                self._put([pair for raw in taken if (pair := self._converted(raw)) is not None])
            except ConnectorError:
                self._flush_before_failure(inlet)
                raise
            self._advance(taken)
            for place, offset in self._context.sought.items():
                inlet.seek(place, offset)
                self._next[place] = self._given[place] = offset
            self._context.sought.clear()
            if self._is_flush_due(is_quiet=len(taken) < self._reading.max_records):
                self._flush(inlet)
        if self._turn.verdict() is not Verdict.LOST:
            self._flush(inlet)
        return is_idle

    def _wait_s(self) -> float:
        if self._turn.verdict() is Verdict.YIELD:
            return HASTY_LOOK_S
        longest = QUIET_FLUSH_S if self._unflushed else LOOK_S
        return min(longest, self._turn.left_s())

    # --- records -------------------------------------------------------------------------------

    def _converted(self, raw: Record) -> Pair | None:
        self._turn.topics.add(raw.topic)
        self._turn.figures.add(figures.READ)
        try:
            record = self._tolerance.attempt(lambda: self._steps.incoming(raw))
        except StepFailed as failed:
            self._tolerance.failed(failed, raw)
            return None
        if record is None:
            self._turn.figures.add(figures.FILTERED)
            return None
        return raw, record

    def _put(self, pairs: list[Pair]) -> None:
        """Hand a batch to the task: again without a record that it refuses, or after a wait."""
        while pairs:
            try:
                self._task.put([record for _, record in pairs])
            except RecordError as error:
                if not 0 <= error.index < len(pairs):
                    raise
                raw, _ = pairs[error.index]
                self._tolerance.failed(self._refused(error), raw)
                pairs = pairs[: error.index] + pairs[error.index + 1 :]
            except RetriableError as error:
                self._wait_for_target(error)
            else:
                self._turn.figures.add(figures.WRITTEN, len(pairs))
                for raw, _ in pairs:
                    place = TopicPartition(topic=raw.topic, partition=raw.partition)
                    self._given[place] = raw.offset + 1
                    self._untouched.discard(place)
                # What the target refused for a while, it has taken now.
                self._turn.retries = 0
                return

    def _refused(self, error: RecordError) -> StepFailed:
        failed = StepFailed(Stage.TASK_PUT, self._spec.plugin.name, error)
        failed.__cause__ = error
        return failed

    def _wait_for_target(self, error: RetriableError) -> None:
        """Wait within the slice where that is short, else leave it to the next one."""
        wait = error.wait_s
        if wait is None:
            wait = waits.retry(self._turn.retries, most_s=self._errors.max_delay_s)
        if wait > min(MAX_WAIT_S, self._turn.left_s()) or self._turn.is_over():
            raise error
        self._turn.retries += 1
        self._turn.figures.add(figures.RETRIED)
        said = masked(words(error), self._spec.secrets)
        self._ports.log.write(Level.WARN, f"{said}; trying again in {wait:.1f} s")
        self._ports.clock.wait(wait)

    def _advance(self, taken: Sequence[Record]) -> None:
        for raw in taken:
            place = TopicPartition(topic=raw.topic, partition=raw.partition)
            self._next[place] = raw.offset + 1
        self._unflushed += len(taken)

    # --- offsets -------------------------------------------------------------------------------

    def _is_flush_due(self, *, is_quiet: bool) -> bool:
        if not self._unflushed:
            return False
        passed = self._ports.clock.monotonic() - self._flushed_at
        limit = QUIET_FLUSH_S if is_quiet else FLUSH_S
        return passed >= limit or self._unflushed >= MAX_UNFLUSHED

    def _flush(self, inlet: Inlet) -> None:
        """Commit what the task has made durable, once the dead letters are in their topic."""
        self._flushed_at = self._ports.clock.monotonic()
        self._tolerance.settle()
        durable = self._durable(self._task.flush())
        moved = {
            place: offset
            for place, offset in durable.items()
            if place in self._next and self._committed.get(place) != offset
        }
        if moved:
            self._turn.require_lease()
            inlet.commit(moved)
            self._committed |= moved
            self._turn.figures.add(figures.COMMITTED)
            self._turn.worked()
        self._unflushed = 0
        self._ports.memory[FLUSHED] = dict(self._committed)
        self._ports.memory[LEFT_OUT] = {
            place: (given, self._next[place])
            for place, given in self._given.items()
            if given < self._next[place]
        }

    def _durable(self, told: Mapping[TopicPartition, int] | None) -> Mapping[TopicPartition, int]:
        """Return the offsets to commit: behind what was left out, too, where all else is done."""
        if told is None:
            return self._next
        durable = dict(told)
        for place, given in self._given.items():
            if place in self._untouched or told.get(place, -1) >= given:
                durable[place] = max(self._next[place], told.get(place, -1))
        return durable

    def _flush_before_failure(self, inlet: Inlet) -> None:
        """Commit what was put before the batch that failed, so that it is not put again."""
        try:
            self._flush(inlet)
        except LeaseLost:
            raise
        # The failure that ended the slice is the one to be told.
        except Exception as error:  # noqa: BLE001
            said = masked(words(error), self._spec.secrets)
            self._ports.log.write(Level.WARN, f"what was put before will be put again: {said}")

    def _stop(self) -> None:
        """End the task; what it fails with then hides nothing that ended the slice."""
        try:
            self._task.stop()
        # Foreign code again, and its records are safe: they are flushed, or put once more.
        except Exception as error:  # noqa: BLE001
            if not isinstance(error, ConnectorError):
                said = trace(error, self._spec.secrets)
            else:
                said = masked(words(error), self._spec.secrets)
            self._ports.log.write(Level.ERROR, f"the task failed while it stopped: {said}")
