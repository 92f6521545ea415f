"""Defines the records that tasks exchange, with their schemas, in batches.

A batch is a plain list of records. Connectors that process columns convert it to an Arrow table
by `connectors.sdk.columns`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from connectors.sdk.schemas import Schema

# A partition of a source, and an offset in it: JSON objects with keys of the author's choice, such
# as {"table": "orders"} and {"id": 4711}.
Place: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    name: str
    value: Any
    schema: Schema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record; immutable, so a transform returns a new one."""

    topic: str
    partition: int | None = None
    key: Any = None
    key_schema: Schema | None = None
    value: Any = None
    value_schema: Schema | None = None
    timestamp_ms: int | None = None
    headers: tuple[Header, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord(Record):
    """A record read by a source, with its partition, and the offset at which to continue after it.

    Once the cluster has acknowledged it, `source_offset` is stored as that of `source_partition`.
    """

    source_partition: Place
    source_offset: Place


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class TopicPartition:
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class RecordPlace:
    """The place of a record in a topic."""

    topic: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRecord:
    """An unconverted record of a topic."""

    topic: str
    partition: int
    offset: int
    key: bytes | None = None
    value: bytes | None = None
    timestamp_ms: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRecord(Record):
    """A record with its place in its topic, which no transform changes.

    `origin` is where it was read; offsets count it. If a failed record arrives again by a retry
    topic, `retried` is its first place. To name something after a record's place, use
    `first_place`, which is the same both times.
    """

    origin_topic: str
    origin_partition: int
    origin_offset: int
    retried: RecordPlace | None = None

    @property
    def origin(self) -> TopicPartition:
        return TopicPartition(topic=self.origin_topic, partition=self.origin_partition)

    @property
    def first_place(self) -> RecordPlace:
        return self.retried or RecordPlace(
            topic=self.origin_topic, partition=self.origin_partition, offset=self.origin_offset
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBatch:
    """Statistics of a finished batch of a job, for pages: its contents and its duration."""

    # The numbers of records read, and of rows written.
    records: int
    rows: int
    # The time until all records were read, and from then on until all was durable.
    read_s: float
    write_s: float
    # The time since the previous batch; None for the first one of this process.
    waited_s: float | None
    # The timestamp of the newest record; None if not known.
    newest_ms: int | None
    ended_ms: int
