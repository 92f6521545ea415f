"""What tasks pass: records with their schemas, in batches.

A batch is a plain list of records. A connector that works on columns asks `connectors.sdk.columns`
for the same batch as an Arrow table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from connectors.sdk.schemas import Schema

# What names a place in a source, and how far it was read: JSON objects with keys of the author's
# choice, as {"table": "orders"} and {"id": 4711}.
Place: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    name: str
    value: Any
    schema: Schema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record on its way in or out; immutable, so that a transform returns another one."""

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
    """A record that a source has read: where it comes from, and where to go on behind it.

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
    """One record in a topic."""

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
    """A batch that a job has done, as pages show it: what it held, and what took its time."""

    # Records that were read, and rows that were written.
    records: int
    rows: int
    # Until the records were looked through, and from then on until all was durable.
    read_s: float
    write_s: float
    # Since the batch before it; None where this process has done none before.
    waited_s: float | None
    # Of the newest record; None where that is not known.
    newest_ms: int | None
    ended_ms: int
