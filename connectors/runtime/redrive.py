"""One slice of a run that sends dead letters again: the chosen ones, in order, batch by batch.

Pure but for Kafka. A batch is sent, acknowledged, and then noted in the ledger with the end of the
retry topic. If the worker dies, the next one reads that topic from the noted end, and skips the
letters that it finds. At an origin nothing shows what has arrived: such a run stops, and says so.
"""

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Final, Protocol

from connectors.runtime import ports, retry_topic
from connectors.runtime.letters import (
    Addressee,
    Again,
    Choice,
    Destination,
    Unsent,
    again,
    letter_of,
)
from connectors.runtime.ports import Clock, LeaseLost, Verdict
from connectors.sdk.records import TopicPartition
from gateway.kafka.errors import KafkaFailure, failure
from gateway.kafka.values import Delivered, NewRecord, Record, Span

# Records and bytes of a batch, after which the ledger is written. At an origin a batch may arrive
# twice, so it is small there.
BATCH_RECORDS: Final[Mapping[Destination, int]] = {Destination.RETRY: 500, Destination.ORIGIN: 50}
BATCH_BYTES: Final = 8 * 1024 * 1024
# Time limit of a slice: if it lasted longer than its lease, the run would go to another worker.
SLICE_S: Final = 5.0
MOVED: Final = (
    "topic {topic} was deleted and recreated since the run was planned, so its offsets belong to"
    " other records: plan a new run"
)
DOUBT: Final = (
    "the worker ended, or the cluster did not answer, while up to {count} letters were in flight to"
    " their origin, and Samsa cannot find out which have arrived: check the topic, then resume the"
    " run, which sends these again, or plan a new one; the run is at {place}"
    " (partition/offset)"
)
REFUSED: Final = (
    "the letter at partition {partition}, offset {offset} was refused: {words}. Fix that and"
    " resume the run, or plan a new one without this letter"
)
# Errors that the same record would cause again.
FINAL: Final = frozenset(
    {
        *("MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD", "INVALID_TIMESTAMP"),
        *("TOPIC_AUTHORIZATION_FAILED", "POLICY_VIOLATION"),
    }
)


class Ending(Enum):
    MORE = "there is more to send"
    DONE = "every chosen letter was processed"
    FAILED = "it cannot continue"
    LATER = "the cluster did not answer"
    LOST = "another worker has the run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run at the start of a slice. `positions` are the next offsets, by partition."""

    id: str
    dead_topic: str
    # Topic ids at the time of the plan: of the dead letter topic and of the retry topic.
    topic_ids: Mapping[str, str]
    destination: Destination
    choice: Choice
    to: Addressee
    # The topics that the plan named; others were neither shown nor allowed.
    targets: Collection[str]
    positions: Mapping[int, int] = field(default_factory=dict)
    # The end of the retry topic when the ledger was last written.
    mark: Mapping[int, int] = field(default_factory=dict)
    # Letters were in flight to their origin, and may have arrived.
    is_in_doubt: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The result of a batch: the next offsets, and counts to add."""

    positions: Mapping[int, int]
    mark: Mapping[int, int]
    looked: int = 0
    sent: int = 0
    sent_bytes: int = 0
    unsent: Mapping[Unsent, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    ending: Ending
    reason: str = ""


class Ledger(Protocol):
    """The row of the run, fenced by its epoch. Raises LeaseLost if another worker has it."""

    def renew(self) -> Verdict: ...

    def begin(self) -> None:
        """Note that letters are in flight to their origin."""
        ...

    def store(self, step: Step) -> None: ...


class Wire(ports.Wire, Protocol):
    """The cluster, with reads of spans."""

    def read(self, topic: str, spans: Sequence[Span]) -> Generator[list[Record]]:
        """Yield the records of spans, and empty lists while none arrive; ends with the spans."""
        ...


class _Refused(Exception):
    """A broker refuses a letter for good."""


class _Batch:
    """Letters whose result goes to the ledger together."""

    def __init__(self, positions: Mapping[int, int]) -> None:
        self.positions = dict(positions)
        self.sending: list[tuple[tuple[int, int], Again]] = []
        # Letters that were sent before, but not noted.
        self.found = 0
        self.unsent: dict[Unsent, int] = {}
        self.looked = 0
        self.bytes = 0

    def add(self, place: tuple[int, int], sent: Again) -> None:
        self.sending.append((place, sent))
        self.bytes += size_of(sent.record)


class Redrive:
    """One slice."""

    def __init__(self, run: Run, *, wire: Wire, ledger: Ledger, clock: Clock) -> None:
        self._run = run
        self._wire = wire
        self._ledger = ledger
        self._clock = clock
        self._mark = dict(run.mark)
        self._batch = _Batch(run.positions)
        self._sent_before: frozenset[tuple[int, int]] = frozenset()

    def slice(self) -> RunEnd:
        """Send letters until the time is up; the ledger has the result."""
        try:
            return self._moved() or self._in_doubt() or self._send_all()
        except LeaseLost:
            return RunEnd(ending=Ending.LOST)
        except _Refused as refused:
            return RunEnd(ending=Ending.FAILED, reason=str(refused))
        except KafkaFailure as failed:
            return RunEnd(ending=Ending.LATER, reason=str(failed))

    def _moved(self) -> RunEnd | None:
        there = self._wire.topic_ids(list(self._run.topic_ids))
        for topic, known in sorted(self._run.topic_ids.items()):
            if there.get(topic) != known:
                return RunEnd(ending=Ending.FAILED, reason=MOVED.format(topic=topic))
        return None

    def _in_doubt(self) -> RunEnd | None:
        if not self._run.is_in_doubt:
            return None
        place = ", ".join(f"{at}/{offset}" for at, offset in sorted(self._run.positions.items()))
        count = BATCH_RECORDS[self._run.destination]
        return RunEnd(ending=Ending.FAILED, reason=DOUBT.format(count=count, place=place))

    def _send_all(self) -> RunEnd:
        began = self._clock.monotonic()
        self._sent_before = frozenset(self._found_sent())
        partitions = self._wire.topics()
        with closing(self._wire.read(self._run.dead_topic, self._left())) as batches:
            for records in batches:
                for record in records:
                    self._look(record, partitions)
                    if self._is_full():
                        self._settle()
                if self._batch.looked:
                    self._settle()
                verdict = self._ledger.renew()
                if verdict is Verdict.LOST:
                    return RunEnd(ending=Ending.LOST)
                is_over = self._clock.monotonic() - began >= SLICE_S
                if is_over or verdict is not Verdict.KEEP:
                    return RunEnd(ending=Ending.MORE)
        # A span may end with offsets without a record.
        self._batch.positions = {span.partition: span.end or 0 for span in self._run.choice.spans}
        self._settle()
        return RunEnd(ending=Ending.DONE)

    def _found_sent(self) -> Iterator[tuple[int, int]]:
        """Yield letters that this run has sent, but not noted."""
        if self._run.destination is not Destination.RETRY:
            return
        topic = retry_topic.name_for(self._run.to.connector)
        # New partitions are read from their beginning.
        added = dict.fromkeys(range(self._wire.topics().get(topic, 0)), 0)
        spans = self._within(topic, {**added, **self._mark}, {})
        with closing(self._wire.read(topic, spans)) as batches:
            for records in batches:
                for record in records:
                    self._mark[record.partition] = record.offset + 1
                    found = retry_topic.sent_in(record.headers, run=self._run.id)
                    if found is not None:
                        yield found
                if self._ledger.renew() is Verdict.LOST:
                    raise LeaseLost

    def _left(self) -> list[Span]:
        ends = {span.partition: span.end for span in self._run.choice.spans}
        return self._within(self._run.dead_topic, self._run.positions, ends)

    def _within(
        self, topic: str, starts: Mapping[int, int], ends: Mapping[int, int | None]
    ) -> list[Span]:
        """Return the part of spans that the topic still holds: retention may delete letters."""
        bounds = self._wire.bounds([TopicPartition(topic=topic, partition=one) for one in starts])
        if len(bounds) < len(starts):
            raise failure("LEADER_NOT_AVAILABLE", f"topic {topic}")
        spans = []
        for place, (first, end) in bounds.items():
            start = max(first, starts[place.partition])
            until = min(end, ends.get(place.partition) or end)
            if start < until:
                spans.append(Span(partition=place.partition, start=start, end=until))
        return spans

    def _look(self, record: Record, partitions: Mapping[str, int]) -> None:
        batch, letter = self._batch, letter_of(record)
        batch.looked += 1
        batch.positions[record.partition] = record.offset + 1
        if not self._run.choice.has(letter):
            return
        if letter.place in self._sent_before:
            batch.found += 1
            return
        run = self._run
        made = again(letter, run.to, run.destination, run=run.id, partitions=partitions)
        if not isinstance(made, Unsent) and made.topic not in run.targets:
            made = Unsent.UNPLANNED
        if isinstance(made, Unsent):
            batch.unsent[made] = batch.unsent.get(made, 0) + 1
        else:
            batch.add(letter.place, made)

    def _is_full(self) -> bool:
        most = BATCH_RECORDS[self._run.destination]
        return len(self._batch.sending) >= most or self._batch.bytes >= BATCH_BYTES

    def _settle(self) -> None:
        """Send a batch, and note it after all of it is acknowledged."""
        batch = self._batch
        if batch.sending:
            if self._run.destination is Destination.ORIGIN:
                self._ledger.begin()
            self._send(batch.sending)
        self._ledger.store(
            Step(
                positions=batch.positions,
                mark=self._mark,
                looked=batch.looked,
                sent=len(batch.sending) + batch.found,
                sent_bytes=batch.bytes,
                unsent=batch.unsent,
            )
        )
        self._batch = _Batch(batch.positions)

    def _send(self, sending: Sequence[tuple[tuple[int, int], Again]]) -> None:
        outlet = self._wire.outlet({})
        refused: list[tuple[tuple[int, int], KafkaFailure]] = []

        def done(place: tuple[int, int], told: Delivered | KafkaFailure) -> None:
            if isinstance(told, KafkaFailure):
                refused.append((place, told))
            elif self._run.destination is Destination.RETRY:
                end = max(self._mark.get(told.partition, 0), told.offset + 1)
                self._mark[told.partition] = end

        for place, one in sending:
            outlet.send(one.topic, one.record, partial(done, place))
        outlet.flush()
        for (partition, offset), failed in refused:
            if failed.name in FINAL:
                raise _Refused(
                    REFUSED.format(partition=partition, offset=offset, words=failed.message)
                )
        if refused:
            raise refused[0][1]


def size_of(record: NewRecord) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers
