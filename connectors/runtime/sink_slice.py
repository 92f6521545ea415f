"""One slice of a sink: take records, convert, put, flush, and commit durable offsets.

Partitions are assigned by hand, and offsets are committed to the group without membership, because
each slice would be a rebalance. The next slice puts records again that were not flushed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NoReturn

from connectors.runtime import figures, waits
from connectors.runtime.context import SinkTaskContext
from connectors.runtime.group_names import group_of
from connectors.runtime.left_out import LeftOut, LeftOutNotes
from connectors.runtime.ports import Inlet, LeaseLost, Level, Ports, SliceEnd, TaskSpec, Verdict
from connectors.runtime.retry_topic import Origin, is_retry_topic, name_for
from connectors.runtime.sink_memory import FLUSHED, LEFT_OUT, forget_former_topics
from connectors.runtime.sink_places import of_retries, origin_within, share, wanted
from connectors.runtime.steps import Stage, StepFailed, Steps
from connectors.runtime.task_settings import below, errors_of, reading_of
from connectors.runtime.tolerance import Tolerance
from connectors.runtime.traces import trace
from connectors.runtime.turn import Turn
from connectors.sdk.connector import SinkConnector
from connectors.sdk.errors import (
    ConfigError,
    ConnectorError,
    DataError,
    RecordError,
    RetriableError,
)
from connectors.sdk.records import SinkRecord, TopicPartition
from gateway.kafka.values import Record

# How often to flush while records arrive; more often while they arrive slowly, so that each reaches
# its target within a second.
FLUSH_S: Final = 1.0
QUIET_FLUSH_S: Final = 0.2
# Records that a task may have to hold before a flush.
MAX_UNFLUSHED: Final = 10_000
# The longest poll without records, and so the delay of a stop.
LOOK_S: Final = 0.5
# The same if other tasks wait.
HASTY_LOOK_S: Final = 0.1
# A longer wait for the target is left to the next slice.
MAX_WAIT_S: Final = 5.0
MADE_ANEW: Final = (
    "topic {topic} was deleted and recreated since the last slice: partition {partition} begins"
    " like that of a new topic"
)

Pair = tuple[Record, SinkRecord]


def run(spec: TaskSpec, ports: Ports, make_steps: Callable[[Mapping[str, str]], Steps]) -> SliceEnd:
    """Run a slice; its result reports any error."""
    turn = Turn(spec, ports)
    max_delay_s = 60.0
    try:
        max_delay_s = errors_of(spec.config).max_delay_s
        reading = reading_of(spec.config)
        _require_no_circle(spec)
        topics = ports.wire.topics()
        places = share(wanted(reading, topics), number=spec.number, count=spec.count)
        if spec.number == 0:
            # The first task reads all of it, so that its creation moves no other partition.
            places += of_retries(spec.connector, topics)
        if not places:
            return turn.end_without_work()
        ends = _ends(turn, places)
        if _has_nothing_new(turn, places, ends):
            return turn.end(is_idle=True)
        ids = ports.wire.topic_ids({place.topic for place in places})
        is_idle = _SinkSlice(turn, places, ends, ids, make_steps(spec.config)).run()
    # A task is foreign code: any exception ends the slice and nothing else.
    except Exception as error:  # noqa: BLE001
        return turn.failed(error, max_delay_s=max_delay_s)
    return turn.end(is_idle=is_idle)


def _require_no_circle(spec: TaskSpec) -> None:
    dead_letters = errors_of(spec.config).dead_letters
    if is_retry_topic(dead_letters):
        raise ConfigError(
            f"dead letters go to {dead_letters}, which has the name of a retry topic, so a"
            " connector would read them again at once: name another topic"
        )


def _ends(turn: Turn, places: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
    """Return the ends of partitions, as a slice for which others wait needs them; else none.

    A broker that does not answer delays this for long, and a slice without others need not know.
    """
    if turn.verdict() is not Verdict.YIELD:
        return {}
    return {place: end for place, (_, end) in turn.ports.wire.bounds(places).items() if end >= 0}


def _has_nothing_new(
    turn: Turn, places: Sequence[TopicPartition], ends: Mapping[TopicPartition, int]
) -> bool:
    """Return whether the task has nothing to do, so that a slice for waiting tasks can skip it.

    A task that must release memory has something to do.
    """
    if not ends or turn.ports.held.is_asked:
        return False
    flushed: Mapping[TopicPartition, int] | None = turn.ports.memory.get(FLUSHED)
    if flushed is None:
        # The first slice here: the group's offsets are never ahead of what the task made durable.
        flushed = turn.ports.wire.committed(group_of(turn.spec.connector))
    # An end before the offset means a recreated topic: read it before it grows past the offset,
    # which would skip the records before.
    return all(
        place in flushed and place in ends and ends[place] == flushed[place] for place in places
    )


class _SinkSlice:
    def __init__(
        self,
        turn: Turn,
        places: Sequence[TopicPartition],
        ends: Mapping[TopicPartition, int],
        topic_ids: Mapping[str, str],
        steps: Steps,
    ) -> None:
        spec, ports = turn.spec, turn.ports
        assert issubclass(spec.plugin, SinkConnector), "a sink's task is a sink"
        self._turn = turn
        self._spec = spec
        self._ports = ports
        self._places = places
        # Partitions that have records which the slice was not given so far: a new consumer connects
        # first, which may take longer than a look.
        self._awaited: set[TopicPartition] = set()
        self._ends = ends
        self._steps = steps
        self._reading = reading_of(spec.config)
        self._retry_topic = name_for(spec.connector)
        self._errors = errors_of(spec.config)
        self._tolerance = Tolerance(spec, ports, self._errors, turn.figures)
        self._context = SinkTaskContext(
            spec,
            ports,
            turn.is_over,
            topic_ids,
            refuse=self._refuse,
            settle=self._tolerance.settle,
        )
        self._former = forget_former_topics(ports.memory, topic_ids)
        self._notes = LeftOutNotes(ports.offsets, topic_ids, is_kept=spec.plugin.keeps_offsets)
        self._task = spec.plugin().task()
        # Offsets up to which records were put or skipped, and up to which they are committed.
        self._next: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        # Partitions with a record in this slice since the task's last seek.
        self._seen: set[TopicPartition] = set()
        # The task's position: the offset after the last record it received, and the partitions of
        # which neither it nor the target has an offset yet.
        self._given: dict[TopicPartition, int] = {}
        self._untouched: set[TopicPartition] = set()
        # The last skipped record of each partition.
        self._failed: dict[TopicPartition, int] = {}
        # The batch that is put; and what the task has rejected of it, by place.
        self._pairs: list[Pair] = []
        self._by_place: dict[tuple[str, int, int], Record] = {}
        self._rejected: set[tuple[str, int, int]] = set()
        self._unflushed = 0
        self._flushed_at = ports.clock.monotonic()

    def run(self) -> bool:
        """Return whether the slice was idle at its end."""
        group = group_of(self._spec.connector)
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
        """Begin at the target's offsets, else at the group's, else where the config says."""
        by_group = self._by_group(group)
        try:
            by_target = self._task.open(self._places)
        except RetriableError:
            # Until the target answers, the group tells how many records wait.
            self._commit_first(inlet, [place for place in self._places if place not in by_group])
            raise
        begin = {
            place: by_target.get(place, by_group.get(place, -1))
            for place in self._places
            if place in by_target or place in by_group
        }
        new = [place for place in self._places if place not in begin]
        strict = [place for place in new if place.topic != self._retry_topic]
        if strict and self._reading.reset == "none":
            raise ConfigError(
                f"{strict[0].topic}, partition {strict[0].partition} has no offset of the group "
                f"{group}, and consumer.override.auto.offset.reset=none forbids a default: set "
                "offsets, or earliest"
            )
        fresh = dict(self._commit_first(inlet, new))
        self._committed = {
            place: offset for place, offset in by_group.items() if place in begin
        } | fresh
        self._given = begin | fresh
        self._untouched = set(self._places) - by_target.keys()
        # The target does not know skipped records, which would become dead letters twice.
        left_out: LeftOut | None = self._ports.memory.get(LEFT_OUT)
        if left_out is None:
            left_out = self._notes.read(self._places, by_target)
        for place, offset in self._given.items():
            first, end = left_out.get(place, (None, 0))
            self._next[place] = end if first == offset else offset
        inlet.begin(self._next)
        # A partition may have got its leader since, and be none that the slice reads.
        self._awaited = {place for place, end in self._ends.items() if end != self._next.get(place)}
        self._awaited &= self._next.keys()

    def _commit_first(
        self, inlet: Inlet, new: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        """Commit where to begin in partitions without an offset; return it."""
        if self._reading.reset == "none":
            new = [place for place in new if place.topic == self._retry_topic]
        is_latest = self._reading.reset == "latest"
        fresh = {
            # Read the retry topic from its beginning.
            place: found[1 if is_latest and place.topic != self._retry_topic else 0]
            for place, found in self._ports.wire.bounds(new).items()
        }
        if fresh:
            # Otherwise the next slice would start at a later end, and skip records in between.
            self._turn.require_lease()
            inlet.commit(fresh)
        return fresh

    def _by_group(self, group: str) -> Mapping[TopicPartition, int]:
        """Return the group's offsets, except one that the last slice committed too late.

        The cluster deletes offsets with their topic; a commit may arrive just after.
        """
        found = self._ports.wire.committed(group)
        late = [place for place, offset in self._former.items() if found.get(place) == offset]
        for place in late:
            said = MADE_ANEW.format(topic=place.topic, partition=place.partition)
            self._ports.log.write(Level.WARN, said)
        return {place: offset for place, offset in found.items() if place not in late}

    def _work(self, inlet: Inlet) -> bool:
        is_idle = has_looked = False
        while not self._turn.is_over(
            is_idle=is_idle and not self._expects_more(inlet), has_begun=has_looked
        ):
            has_looked = True
            found = inlet.take(most=self._reading.max_records, wait_s=self._wait_s())
            taken = self._until_rewind(found)
            is_idle = not taken
            try:
                self._put([pair for raw in taken if (pair := self._converted(raw)) is not None])
            except ConnectorError:
                self._flush_before_failure(inlet)
                raise
            self._advance(taken)
            if len(taken) < len(found):
                self._leave_former_topic(found[len(taken)])
            for place, offset in self._context.sought.items():
                inlet.seek(place, offset)
                self._next[place] = self._given[place] = offset
                self._seen.discard(place)
            self._context.sought.clear()
            if self._is_flush_due(is_quiet=len(taken) < self._reading.max_records):
                self._flush(inlet)
        if self._turn.verdict() is not Verdict.LOST:
            self._flush(inlet)
        return is_idle

    def _expects_more(self, inlet: Inlet) -> bool:
        """Return whether there is something to wait for: the first records, or a flush."""
        self._awaited -= self._seen
        self._awaited.difference_update(inlet.ended())
        return bool(self._awaited or self._unflushed)

    def _wait_s(self) -> float:
        if self._turn.verdict() is Verdict.YIELD:
            # Without ends, since nobody waited when the slice began, there may be records.
            return LOOK_S if self._awaited or not self._ends else HASTY_LOOK_S
        longest = QUIET_FLUSH_S if self._unflushed else LOOK_S
        return min(longest, self._turn.left_s())

    def _until_rewind(self, found: list[Record]) -> list[Record]:
        """Return the records before the first one whose offset was already delivered."""
        ends = {place: self._next[place] for place in self._seen}
        for index, raw in enumerate(found):
            place = TopicPartition(topic=raw.topic, partition=raw.partition)
            if raw.offset < ends.get(place, 0):
                return found[:index]
            ends[place] = raw.offset + 1
        return found

    def _leave_former_topic(self, first: Record) -> NoReturn:
        """End the slice: its offsets belong to a deleted topic."""
        self._tolerance.settle()
        self._task.flush()
        # Do not commit: the group would skip records of the new topic.
        raise RetriableError(
            f"{first.topic}, partition {first.partition} continues at offset {first.offset}: it was"
            " recreated, or has lost records"
        )

    # --- records -------------------------------------------------------------------------------

    def _converted(self, raw: Record) -> Pair | None:
        self._turn.figures.use(raw.topic)
        self._turn.figures.add(figures.READ)
        try:
            origin = self._origin(raw)
            record = self._tolerance.attempt(lambda: self._steps.incoming(raw, origin=origin))
        except StepFailed as failed:
            self._leave_out(failed, raw)
            return None
        if record is None:
            self._turn.figures.add(figures.FILTERED)
            return None
        return raw, record

    def _origin(self, raw: Record) -> Origin | None:
        """Return the first place of a record of the retry topic. Raises StepFailed if invalid."""
        if raw.topic != self._retry_topic:
            return None
        try:
            return origin_within(self._reading, raw)
        except DataError as error:
            raise StepFailed(Stage.KAFKA_CONSUME, self._retry_topic, error) from error

    def _put(self, pairs: list[Pair]) -> None:
        """Pass a batch to the task; retry without a refused record, or after a wait."""
        has_waited = False
        while pairs:
            self._pairs, self._rejected = pairs, set()
            try:
                self._task.put([record for _, record in pairs])
            except RecordError as error:
                if not 0 <= error.index < len(pairs):
                    raise
                raw, _ = pairs[error.index]
                self._leave_out(self._failed_put(error), raw)
                pairs = pairs[: error.index] + pairs[error.index + 1 :]
            except RetriableError as error:
                self._wait_for_target(error)
                has_waited = True
            else:
                self._turn.figures.add(figures.WRITTEN, len(pairs) - len(self._rejected))
                for raw, _ in pairs:
                    place = TopicPartition(topic=raw.topic, partition=raw.partition)
                    self._given[place] = raw.offset + 1
                    self._untouched.discard(place)
                if has_waited:
                    # The target has accepted the batch. Where only a flush speaks to it, a batch
                    # that was put says nothing.
                    self._turn.went_on()
                return

    def _refuse(self, record: SinkRecord, error: ConnectorError) -> None:
        """Leave out a record of the batch that is put, for a task that writes the others."""
        if not self._rejected:
            self._by_place = {(raw.topic, raw.partition, raw.offset): raw for raw, _ in self._pairs}
        place = (record.origin_topic, record.origin_partition, record.origin_offset)
        self._leave_out(self._failed_put(error), self._by_place[place])
        self._rejected.add(place)

    def _leave_out(self, failed: StepFailed, raw: Record) -> None:
        self._tolerance.failed(failed, raw)
        place = TopicPartition(topic=raw.topic, partition=raw.partition)
        self._failed[place] = max(raw.offset, self._failed.get(place, -1))

    def _failed_put(self, error: ConnectorError) -> StepFailed:
        failed = StepFailed(Stage.TASK_PUT, self._spec.plugin.name, error)
        failed.__cause__ = error
        return failed

    def _wait_for_target(self, error: RetriableError) -> None:
        """Wait within the slice if the wait is short, else leave it to the next slice."""
        wait = error.wait_s
        if wait is None:
            wait = waits.retry(self._turn.retries, most_s=self._errors.max_delay_s)
        if wait > min(MAX_WAIT_S, self._turn.left_s()) or self._turn.is_over():
            raise error
        self._turn.retry(error, wait)
        self._ports.clock.wait(wait)

    def _advance(self, taken: Sequence[Record]) -> None:
        for raw in taken:
            place = TopicPartition(topic=raw.topic, partition=raw.partition)
            self._next[place] = raw.offset + 1
            self._seen.add(place)
        self._unflushed += len(taken)

    # --- offsets -------------------------------------------------------------------------------

    def _is_flush_due(self, *, is_quiet: bool) -> bool:
        if not self._unflushed:
            return False
        passed = self._ports.clock.monotonic() - self._flushed_at
        limit = QUIET_FLUSH_S if is_quiet else FLUSH_S
        return passed >= limit or self._unflushed >= MAX_UNFLUSHED

    def _flush(self, inlet: Inlet) -> None:
        """Commit what the task has made durable, once the dead letters are written."""
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
        left_out = {
            place: (given, self._next[place])
            for place, given in self._given.items()
            if given < self._next[place]
        }
        # Records that transforms drop can be dropped again at no cost; and while the target knows
        # no offset, the group's offsets suffice.
        self._notes.write(
            {
                place: (given, end)
                for place, (given, end) in left_out.items()
                if self._failed.get(place, -1) >= given and place not in self._untouched
            }
        )
        self._ports.memory[LEFT_OUT] = left_out

    def _durable(self, told: Mapping[TopicPartition, int] | None) -> Mapping[TopicPartition, int]:
        """Return the offsets to commit, also of skipped records if all before them are durable."""
        if told is None:
            return self._next
        durable = dict(told)
        for place, given in self._given.items():
            if place in self._untouched or told.get(place, -1) >= given:
                durable[place] = max(self._next[place], told.get(place, -1))
        return durable

    def _flush_before_failure(self, inlet: Inlet) -> None:
        """Commit what was put before the failed batch, so that it is not put again."""
        try:
            self._flush(inlet)
        except LeaseLost:
            raise
        # Report the failure that ended the slice.
        except Exception as error:  # noqa: BLE001
            said = self._turn.told(error)
            self._ports.log.write(
                Level.WARN, f"records that were put before will be put again: {said}"
            )

    def _stop(self) -> None:
        """Stop the task; log its errors, so that they do not hide the result of the slice."""
        try:
            self._task.stop()
        # Foreign code; its records are safe: they are flushed, or will be put again.
        except Exception as error:  # noqa: BLE001
            if not isinstance(error, ConnectorError):
                said = trace(error, self._spec.secrets, self._turn.figures.topics())
            else:
                said = self._turn.told(error)
            self._ports.log.write(Level.ERROR, f"the task failed while it stopped: {said}")
