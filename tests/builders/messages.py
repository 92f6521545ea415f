"""A topic in memory that the streams of records read, every value defaulted."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from brokers.cluster.image import Broker
from console.messages.places import Places
from gateway.kafka.values import Record, Span, TimestampKind

CLUSTER = "0hUvQ2rWSx6lJ3u8T6kRrg"
# When a question is asked.
NOW = datetime(2026, 11, 19, 12, tzinfo=UTC)


def record(
    offset: int,
    *,
    partition: int = 0,
    value: bytes | None = b"v",
    key: bytes | None = None,
    timestamp_ms: int | None = None,
    topic: str = "orders",
    headers: tuple[tuple[str, bytes | None], ...] = (),
) -> Record:
    return Record(
        topic=topic,
        partition=partition,
        offset=offset,
        key=key,
        value=value,
        headers=headers,
        timestamp_ms=offset if timestamp_ms is None else timestamp_ms,
        timestamp_kind=TimestampKind.CREATE_TIME,
    )


def places(*partitions: int, dark: dict[int, str] | None = None, port: int = 0) -> Places:
    leader = Broker(
        id=1, epoch=1, host="127.0.0.1", port=9092, is_fenced=False, inspection_port=port
    )
    return Places(
        topic="orders",
        bootstrap="127.0.0.1:9092",
        leaders=dict.fromkeys(partitions or (0,), leader),
        dark=dark or {},
    )


@dataclass
class FakeReading:
    spans: dict[int, Span]
    rounds: Callable[[], Iterator[list[Record]]]

    def batches(self) -> Iterator[list[Record]]:
        for batch in self.rounds():
            yield [one for one in batch if one.partition in self.spans]
            if not self.spans:
                return

    def finish(self, partition: int) -> None:
        self.spans.pop(partition, None)


@dataclass
class FakeSource:
    """Partitions as lists of records; holes between their offsets are what a cleaning leaves."""

    partitions: dict[int, list[Record]]
    starts: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    batch: int = 3
    read: list[Span] = field(default_factory=list)

    def bounds(self, partitions: Sequence[int]) -> dict[int, tuple[int, int]]:
        return {index: (self.starts.get(index, 0), self.end(index)) for index in partitions}

    def end(self, index: int) -> int:
        held = self.partitions[index]
        return self.ends.get(index, held[-1].offset + 1 if held else self.starts.get(index, 0))

    def at_time(self, partitions: Sequence[int], time_ms: int) -> dict[int, int]:
        return {
            index: next(
                (
                    one.offset
                    for one in self.partitions[index]
                    if one.timestamp_ms is not None and one.timestamp_ms >= time_ms
                ),
                self.end(index),
            )
            for index in partitions
        }

    @contextmanager
    def reading(self, spans: Sequence[Span]) -> Iterator[FakeReading]:
        self.read += spans

        def rounds() -> Iterator[list[Record]]:
            left = {
                span.partition: [
                    one
                    for one in self.partitions[span.partition]
                    if span.start <= one.offset and (span.end is None or one.offset < span.end)
                ]
                for span in spans
            }
            while any(left.values()):
                for index, held in left.items():
                    if held:
                        yield held[: self.batch]
                        left[index] = held[self.batch :]

        yield FakeReading({span.partition: span for span in spans}, rounds)
