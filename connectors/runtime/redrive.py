"""One slice of a run that sends dead letters again: chosen ones, in their order, batch by batch.

Pure but for Kafka. A batch is sent, acknowledged, and then noted in the ledger with where the retry
topic ended. A run that is taken up after its worker died reads that topic from there, and leaves
out what it finds. Elsewhere nothing tells what has arrived: such a run stops, and says so.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
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

# Records, and bytes of them, that are sent before they are noted. To an origin a batch may come
# twice, so it is small there.
BATCH_RECORDS: Final[Mapping[Destination, int]] = {Destination.RETRY: 500, Destination.ORIGIN: 50}
BATCH_BYTES: Final = 8 * 1024 * 1024
# After this a slice ends: one that hangs longer than the lease lasts would be taken for gone.
SLICE_S: Final = 5.0
MOVED: Final = (
    "topic {topic} was deleted and made again since the run was planned, so its offsets mean other"
    " records: plan a new run"
)
DOUBT: Final = (
    "its worker ended, or the cluster did not answer, while up to {count} letters were on their way"
    " to where they stood first, and nothing tells which of them have arrived: look there, then"
    " resume the run, which sends these again, or plan a new one; it stands at {place}"
    " (partition/offset)"
)
REFUSED: Final = (
    "the letter at partition {partition}, offset {offset} is not taken: {words}. Mend that and"
    " resume the run, or plan a new one that leaves this letter out"
)
# What would be said of the same record again.
FINAL: Final = frozenset(
    {
        *("MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD", "INVALID_TIMESTAMP"),
        *("TOPIC_AUTHORIZATION_FAILED", "POLICY_VIOLATION"),
    }
)


class Ending(Enum):
    MORE = "there is more to send"
    DONE = "all that was chosen was looked at"
    FAILED = "it cannot go on"
    LATER = "the cluster did not answer"
    LOST = "another worker has the run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run as a slice finds it. `positions` are where it goes on, by partition."""

    id: str
    dead_topic: str
    # Ids of the topics that it was planned on: the dead letters', and the retry topic's.
    topic_ids: Mapping[str, str]
    destination: Destination
    choice: Choice
    to: Addressee
    positions: Mapping[int, int] = field(default_factory=dict)
    # Where the retry topic ended when the run last noted what it had sent.
    mark: Mapping[int, int] = field(default_factory=dict)
    # Letters were on their way to their origin, and nothing says whether they have arrived.
    is_in_doubt: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a batch has changed: where to go on, and counts that are added to those before."""

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
    """The row of the run, behind the fence of its epoch; LeaseLost where another worker has it."""

    def renew(self) -> Verdict: ...

    def begin(self) -> None:
        """Note that letters are on their way to their origin."""
        ...

    def store(self, step: Step) -> None: ...


class Wire(ports.Wire, Protocol):
    """The cluster, of which a run reads spans too."""

    def read(self, topic: str, spans: Sequence[Span]) -> Generator[list[Record]]:
        """Yield the records of spans, and empty lists while none come; ends with the spans."""
        ...


class _Refused(Exception):
    """A broker will not have a letter, now or later."""


class _Batch:
    """Letters that were looked at and are noted together."""

    def __init__(self, positions: Mapping[int, int]) -> None:
        self.positions = dict(positions)
        self.sending: list[tuple[tuple[int, int], Again]] = []
        # Letters that were sent before, and not noted.
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
        """Send what there is time for; the ledger has what was done."""
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
        # Behind the last record of a span may be offsets that hold none.
        self._batch.positions = {span.partition: span.end or 0 for span in self._run.choice.spans}
        self._settle()
        return RunEnd(ending=Ending.DONE)

    def _found_sent(self) -> Iterator[tuple[int, int]]:
        """Yield letters that this run has sent, and had no time to note."""
        if self._run.destination is not Destination.RETRY:
            return
        topic = retry_topic.name_for(self._run.to.connector)
        # Partitions that were added since are read from their beginning.
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
        """Return what of spans a topic still holds: letters may be deleted by age meanwhile."""
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
        if isinstance(made, Unsent):
            batch.unsent[made] = batch.unsent.get(made, 0) + 1
        else:
            batch.add(letter.place, made)

    def _is_full(self) -> bool:
        most = BATCH_RECORDS[self._run.destination]
        return len(self._batch.sending) >= most or self._batch.bytes >= BATCH_BYTES

    def _settle(self) -> None:
        """Send a batch, and note it once all of it is acknowledged."""
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
