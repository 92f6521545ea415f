"""The ports of a slice in memory: topics are lists, and time passes when somebody waits."""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from typing import Any

from connectors.runtime.cluster_wire import TopicReader
from connectors.runtime.figures import Figures
from connectors.runtime.held_bytes import Budget, Holder
from connectors.runtime.ports import Done, LeaseLost, Level, Ports, Verdict
from connectors.sdk.records import Place, TopicPartition
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.values import Delivered, NewRecord, NewTopic, Record, Span, TimestampKind

# What a look at the lease takes, so that a slice comes to its end.
STEP_S = 0.01


class FakeClock:
    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def now_ms(self) -> int:
        return int(1000 * self.now)

    def wait(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


class FakeLease:
    """Says what it is told to say, one word after the other, and then the last one for ever."""

    def __init__(self, clock: FakeClock, *verdicts: Verdict) -> None:
        self._clock = clock
        self.verdicts = list(verdicts) or [Verdict.KEEP]
        self.progresses = 0

    def renew(self) -> Verdict:
        self._clock.now += STEP_S
        return self.verdicts.pop(0) if len(self.verdicts) > 1 else self.verdicts[0]

    def progress(self) -> None:
        self.progresses += 1


class FakeOffsets:
    def __init__(self) -> None:
        self.stored: dict[str, Place] = {}
        self.is_lost = False

    def read(self, place: Place) -> Place | None:
        return self.stored.get(repr(sorted(place.items())))

    def store(self, offsets: Sequence[tuple[Place, Place]]) -> None:
        if self.is_lost:
            raise LeaseLost("another worker has the task")
        self.stored |= {repr(sorted(place.items())): offset for place, offset in offsets}


class FakeLog:
    def __init__(self) -> None:
        self.lines: list[tuple[Level, str]] = []

    def write(self, level: Level, text: str) -> None:
        self.lines.append((level, text))


class FakeWire:
    """A cluster whose topics are made on demand, with one partition."""

    def __init__(self, clock: FakeClock, **partitions: int) -> None:
        self.clock = clock
        self.logs: dict[str, list[list[Record]]] = {
            name: [[] for _ in range(count)] for name, count in partitions.items()
        }
        # Of topics that were made again; the others are named by themselves.
        self.ids: dict[str, str] = {}
        self.groups: dict[str, dict[TopicPartition, int]] = {}
        self.created: list[NewTopic] = []
        self.creates = True
        # What becomes of a record instead of its delivery, where something is to go wrong.
        self.refuse: Callable[[str, NewRecord], KafkaFailure | None] = lambda _topic, _record: None
        self.opened = 0
        self.closed = 0
        # How many looks of a new inlet find nothing.
        self.silent_looks = 0
        # How long the client of an inlet takes to start.
        self.slow_inlet_s = 0.0

    def bootstrap(self) -> str:
        return "127.0.0.1:9092"

    def add(self, topic: str, *values: bytes | None, partition: int = 0, **more: Any) -> None:
        """Append records to a topic, as somebody else's producer would."""
        for value in values:
            self.put(topic, NewRecord(value=value, partition=partition, **more))

    def put(self, topic: str, record: NewRecord) -> Delivered:
        logs = self.logs.setdefault(topic, [[]])
        partition = record.partition or 0
        offset = len(logs[partition])
        logs[partition].append(
            Record(
                topic=topic,
                partition=partition,
                offset=offset,
                key=record.key,
                value=record.value,
                headers=record.headers,
                timestamp_ms=record.timestamp_ms or 0,
                timestamp_kind=TimestampKind.CREATE_TIME,
            )
        )
        return Delivered(partition=partition, offset=offset)

    def values(self, topic: str) -> list[bytes | None]:
        return [record.value for log in self.logs.get(topic, []) for record in log]

    def topics(self) -> Mapping[str, int]:
        return {name: len(logs) for name, logs in self.logs.items()}

    def topic_ids(self, names: Collection[str]) -> Mapping[str, str]:
        return {name: self.ids.get(name, name) for name in names if name in self.logs}

    def make_anew(self, topic: str) -> None:
        """Delete a topic, with what groups have of it, and make it again under its name."""
        self.ids[topic] = f"{self.ids.get(topic, topic)}'"
        self.logs[topic] = [[] for _ in self.logs[topic]]
        for group, offsets in self.groups.items():
            self.groups[group] = {at: end for at, end in offsets.items() if at.topic != topic}

    def creates_topics(self) -> bool:
        return self.creates

    def create(self, topic: NewTopic) -> bool:
        if topic.name in self.logs:
            return False
        self.created.append(topic)
        self.logs[topic.name] = [[] for _ in range(max(1, topic.partitions))]
        return True

    def read(self, topic: str, spans: Sequence[Span]) -> Generator[list[Record]]:
        for span in spans:
            assert span.start < (span.end or 0), "nothing to read is not asked for"
            for record in self.logs[topic][span.partition][span.start : span.end]:
                yield [record]

    def readers(self, topics: Sequence[str]) -> Mapping[str, TopicReader]:
        found = {}
        for group, offsets in self.groups.items():
            committed = {place: at for place, at in offsets.items() if place.topic in topics}
            if committed:
                found[group] = TopicReader(committed=committed, members=0)
        return found

    def outlet(self, overrides: Mapping[str, str]) -> "FakeOutlet":
        del overrides
        return FakeOutlet(self)

    def inlet(self, group: str, overrides: Mapping[str, str]) -> "FakeInlet":
        del overrides
        self.opened += 1
        self.clock.now += self.slow_inlet_s
        return FakeInlet(self, group)

    def committed(self, group: str) -> Mapping[TopicPartition, int]:
        return dict(self.groups.get(group, {}))

    def bounds(self, places: Sequence[TopicPartition]) -> Mapping[TopicPartition, tuple[int, int]]:
        return {place: (0, len(self.logs[place.topic][place.partition])) for place in places}


class FakeOutlet:
    def __init__(self, wire: FakeWire) -> None:
        self._wire = wire
        self._sent: list[tuple[str, NewRecord, Done]] = []

    def send(self, topic: str, record: NewRecord, done: Done) -> None:
        self._sent.append((topic, record, done))

    def flush(self) -> None:
        sent, self._sent = self._sent, []
        for topic, record, done in sent:
            done(self._wire.refuse(topic, record) or self._wire.put(topic, record))


class FakeInlet:
    def __init__(self, wire: FakeWire, group: str) -> None:
        self._wire = wire
        self._group = group
        self._next: dict[TopicPartition, int] = {}
        # How many looks find nothing before the first records come, as with a new consumer.
        self._silent_looks = wire.silent_looks

    def begin(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._next = dict(offsets)

    def seek(self, place: TopicPartition, offset: int) -> None:
        self._next[place] = offset

    def take(self, *, most: int, wait_s: float) -> list[Record]:
        found: list[Record] = []
        if self._silent_looks:
            self._silent_looks -= 1
            self._wire.clock.wait(wait_s)
            return found
        for place, wanted in self._next.items():
            log = self._wire.logs[place.topic][place.partition]
            # Out of range is as with `auto.offset.reset=earliest`.
            offset = wanted if wanted <= len(log) else 0
            some = log[offset : offset + most - len(found)]
            found += some
            self._next[place] = offset + len(some)
        if not found:
            self._wire.clock.wait(wait_s)
        return found

    def ended(self) -> Collection[TopicPartition]:
        if self._silent_looks:
            return set()
        logs = self._wire.logs
        return {
            place
            for place, offset in self._next.items()
            if offset == len(logs[place.topic][place.partition])
        }

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._wire.groups.setdefault(self._group, {}).update(offsets)

    def close(self) -> None:
        self._wire.closed += 1


class FakePorts:
    """All of them, and the `Ports` made of them."""

    def __init__(self, *verdicts: Verdict, **partitions: int) -> None:
        self.clock = FakeClock()
        self.lease = FakeLease(self.clock, *verdicts)
        self.offsets = FakeOffsets()
        self.log = FakeLog()
        self.wire = FakeWire(self.clock, **partitions)
        self.kept: dict[str, Any] = {}
        self.memory: dict[str, Any] = {}
        self.held = Holder(Budget())
        self.figures = Figures()
        self.creation_refusal = ""

    @property
    def ports(self) -> Ports:
        """Return the ports of another slice, which goes on where the one before has ended."""
        before, self.figures = self.figures, Figures()
        self.figures.retrying, self.figures.has_worked = before.retrying, before.has_worked
        return Ports(
            lease=self.lease,
            offsets=self.offsets,
            log=self.log,
            clock=self.clock,
            wire=self.wire,
            figures=self.figures,
            kept=self.kept,
            memory=self.memory,
            held=self.held,
            creation_refusal=lambda _topic: self.creation_refusal,
        )
