"""Contexts in memory, for tests that run tasks slice by slice, without a cluster.

They have no clock and no threads, and store what a real context stores: offsets, converted through
JSON; kept objects; log lines; and the positions that a sink requests.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from connectors.sdk import checks
from connectors.sdk.configs import Definition
from connectors.sdk.connector import Config, SinkConnector, SinkTask, SourceConnector
from connectors.sdk.errors import ConfigError, ConnectorError
from connectors.sdk.records import Place, SinkRecord, SourceRecord, TopicPartition

# A source that still has records after this many polls counts as endless.
MAX_POLLS: Final = 10_000


@dataclass(slots=True, kw_only=True)
class MemoryContext:
    """The part of a context that sources and sinks share."""

    connector: str = "test"
    task: int = 0
    epoch: int = 1
    retries: int = 0
    kept: dict[str, Any] = field(default_factory=dict)
    should_yield: bool = False
    is_stopping: bool = False
    lines: list[str] = field(default_factory=list)
    has_reached: bool = False
    # The size that the task has reported, and the limit above which it must release memory.
    held: int = 0
    most_held: int = 1 << 40

    def hold(self, size: int) -> int:
        self.held = size
        return max(0, size - self.most_held)

    def reached(self) -> None:
        self.has_reached = True

    def log(self, text: str) -> None:
        self.lines.append(text)

    def warn(self, text: str) -> None:
        self.lines.append(text)

    def close(self) -> None:
        """Close kept objects, as when the process ends or the task moves."""
        kept, self.kept = self.kept, {}
        for thing in kept.values():
            close = getattr(thing, "close", None)
            if close is not None:
                close()


@dataclass(slots=True, kw_only=True)
class MemorySourceContext(MemoryContext):
    # Stored offsets as JSON, by place as JSON with sorted keys.
    offsets: dict[str, str] = field(default_factory=dict)

    def offset(self, partition: Place) -> Place | None:
        told = self.offsets.get(place_key(partition))
        return None if told is None else dict(json.loads(told))

    def store(self, records: Iterable[SourceRecord]) -> None:
        """Store the offsets of records, as the framework does once the cluster has the records."""
        for record in records:
            self.keep(record.source_partition, record.source_offset)

    def keep(self, place: Place, offset: Place) -> None:
        """Store one offset."""
        self.offsets[place_key(place)] = json.dumps(dict(offset))


@dataclass(slots=True, kw_only=True)
class MemorySinkContext(MemoryContext):
    # The positions of the next batch, for partitions in which the task has requested one.
    sought: dict[TopicPartition, int] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    # Whether errors of records are tolerated; and the rejected records, with the errors.
    is_tolerant: bool = False
    refused: list[tuple[SinkRecord, ConnectorError]] = field(default_factory=list)

    def refuse(self, record: SinkRecord, error: ConnectorError) -> None:
        if not self.is_tolerant:
            raise error
        self.refused.append((record, error))

    def settle(self) -> None:
        """Do nothing: rejected records are stored at once."""

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.sought[partition] = offset

    def topic_id(self, topic: str) -> str:
        return self.topic_ids.get(topic, "")


def parse_config(definition: Definition, config: Config) -> dict[str, Any]:
    """Return the values of all keys, as a task gets them. Raises ConfigError for the first error.

    Keys without a definition are dropped, like those of the framework.
    """
    parsed = {}
    for key in definition:
        text = config.get(key.name)
        if text is None and key.is_required:
            raise ConfigError(checks.missing(key))
        try:
            parsed[key.name] = value = (
                checks.parse(key, key.default) if text is None else checks.parse(key, text)
            )
        except checks.InvalidValue as error:
            raise ConfigError(str(error)) from None
        if wrong := checks.check(key, value):
            raise ConfigError(wrong)
    return parsed


def place_key(place: Place) -> str:
    """Return the same text for equal places, in any order of their keys."""
    return json.dumps(dict(place), sort_keys=True, separators=(",", ":"))


def run_source(
    connector: SourceConnector,
    config: Mapping[str, Any],
    context: MemorySourceContext,
    *,
    max_records: int | None = None,
    max_polls: int = MAX_POLLS,
) -> list[SourceRecord]:
    """Run one slice of a source: until it has nothing more, or `max_records` are read.

    Offsets are stored after each poll, and the task's `commit` is called.
    """
    task = connector.task()
    read: list[SourceRecord] = []
    task.start(context, config)
    try:
        for _ in range(max_polls):
            polled = task.poll()
            context.store(polled)
            passed = task.reached()
            if passed is not None:
                context.keep(*passed)
            if polled or passed is not None:
                task.commit(polled)
            read += polled
            if not polled or (max_records is not None and len(read) >= max_records):
                break
    finally:
        task.stop()
    return read


def run_sink(
    connector: SinkConnector,
    config: Mapping[str, Any],
    context: MemorySinkContext,
    batches: Sequence[list[SinkRecord]],
) -> Mapping[TopicPartition, int] | None:
    """Run one slice of a sink: open, put each batch, flush once; return what `flush` returned.

    As in the framework, records before the offsets of `open` are skipped.
    """
    task = connector.task()
    task.start(context, config)
    try:
        begin_at = open_sink(task, batches)
        for batch in batches:
            if left := not_before(begin_at, batch):
                task.put(left)
        return task.flush()
    finally:
        task.stop()


def open_sink(task: SinkTask, batches: Sequence[list[SinkRecord]]) -> Mapping[TopicPartition, int]:
    """Open a started task on the partitions of some batches; return the offsets to begin at."""
    return task.open(sorted({record.origin for batch in batches for record in batch}))


def not_before(
    begin_at: Mapping[TopicPartition, int], batch: Sequence[SinkRecord]
) -> list[SinkRecord]:
    """Return the records of a batch that are not before the offsets of `open`."""
    return [record for record in batch if record.origin_offset >= begin_at.get(record.origin, 0)]


def sink_record(
    value: Any, *, topic: str = "orders", partition: int = 0, offset: int = 0, **fields: Any
) -> SinkRecord:
    """Return a record as read from a topic; `fields` are its other fields."""
    return SinkRecord(
        topic=topic,
        partition=partition,
        value=value,
        origin_topic=topic,
        origin_partition=partition,
        origin_offset=offset,
        **fields,
    )
