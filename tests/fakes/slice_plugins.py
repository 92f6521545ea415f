"""A source and a sink for tests of slices: lists, with errors where a test wants them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from connectors.runtime.steps import Steps
from connectors.sdk.configs import Definition
from connectors.sdk.connector import (
    Parsed,
    SinkConnector,
    SinkContext,
    SinkTask,
    SourceConnector,
    SourceContext,
    SourceTask,
)
from connectors.sdk.errors import DataError
from connectors.sdk.records import Place, Record, SinkRecord, SourceRecord, TopicPartition
from connectors.sdk.schemas import Schema

BAD = b"bad"
HIDDEN = "hidden"


class PlainConverter:
    """Bytes as texts; those that are BAD cannot be converted."""

    def to_value(
        self, topic: str, payload: bytes | None, headers: object = ()
    ) -> tuple[Schema | None, Any]:
        del topic, headers
        if payload == BAD:
            raise DataError("this is bad")
        return None, None if payload is None else payload.decode()

    def from_value(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        del topic, schema
        if value == BAD.decode():
            raise DataError("this is bad")
        return None if value is None else str(value).encode()


class PlainChain:
    """Leaves out what is HIDDEN."""

    def apply(self, record: Record) -> Record | None:
        return None if record.value == HIDDEN else record


def plain_steps(config: Mapping[str, str]) -> Steps:
    del config
    one = PlainConverter()
    return Steps(key=one, value=one, header=one, chain=PlainChain())


def list_source(
    values: Sequence[str],
    *,
    batch: int = 2,
    topic: str = "out",
    before_poll: Callable[[int], None] = lambda _: None,
    passed: int | None = None,
) -> type[SourceConnector]:
    """Return a source of these values, in batches, that goes on behind its stored offset.

    At the end it has `passed` so many, of which some are no records.
    """

    class Task(SourceTask):
        def start(self, context: SourceContext, parsed: Parsed) -> None:
            self._at = int((context.offset({"list": 1}) or {"at": 0})["at"])
            context.log(f"begins at {self._at}")

        def poll(self) -> list[SourceRecord]:
            before_poll(self._at)
            begin, self._at = self._at, min(self._at + batch, len(values))
            return [
                SourceRecord(
                    topic=topic,
                    value=values[at],
                    source_partition={"list": 1},
                    source_offset={"at": at + 1},
                )
                for at in range(begin, self._at)
            ]

        def reached(self) -> tuple[Place, Place] | None:
            is_new = passed is not None and len(values) <= self._at < passed
            return ({"list": 1}, {"at": passed}) if is_new else None

        def commit(self, records: Sequence[SourceRecord]) -> None:
            Listed.commits += 1
            Listed.committed += [str(record.value) for record in records]

    class Listed(SourceConnector):
        name: ClassVar[str] = "test.list"
        committed: ClassVar[list[str]] = []
        commits: ClassVar[int] = 0

        @classmethod
        def definition(cls) -> Definition:
            return Definition()

        def task_configs(self, parsed: Parsed, *, max_tasks: int) -> list[dict[str, str]]:
            return [{}]

        def task(self) -> SourceTask:
            return Task()

    return Listed


def list_sink(
    *,
    put: Callable[[list[SinkRecord]], None] = lambda _: None,
    begin: Mapping[TopicPartition, int] | Exception | None = None,
    flush: Callable[[], Mapping[TopicPartition, int] | None] = lambda: None,
) -> "type[ListSink]":
    """Return a sink that remembers values; `put` is called first, and may raise."""

    class Task(SinkTask):
        def start(self, context: SinkContext, parsed: Parsed) -> None:
            Listed.contexts.append(context)

        def open(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
            Listed.opened = list(partitions)
            if isinstance(begin, Exception):
                raise begin
            return begin or {}

        def put(self, records: list[SinkRecord]) -> None:
            put(records)
            Listed.values += [record.value for record in records]

        def flush(self) -> Mapping[TopicPartition, int] | None:
            return flush()

        def stop(self) -> None:
            Listed.stops += 1

    class Listed(ListSink):
        values: ClassVar[list[Any]] = []
        opened: ClassVar[list[TopicPartition]] = []
        contexts: ClassVar[list[SinkContext]] = []
        stops: ClassVar[int] = 0

        def task(self) -> SinkTask:
            return Task()

    return Listed


class ListSink(SinkConnector):
    """What `list_sink` returns one of."""

    name: ClassVar[str] = "test.collect"
    values: ClassVar[list[Any]]
    opened: ClassVar[list[TopicPartition]]
    contexts: ClassVar[list[SinkContext]]
    stops: ClassVar[int]

    @classmethod
    def definition(cls) -> Definition:
        return Definition()

    def task_configs(self, parsed: Parsed, *, max_tasks: int) -> list[dict[str, str]]:
        return [{} for _ in range(max_tasks)]
