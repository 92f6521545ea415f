"""Contexts in memory keep what real ones keep, as these keep it."""

from collections.abc import Sequence
from typing import Any

import pytest

from connectors.sdk.configs import Definition, Importance, Key, Kind
from connectors.sdk.connector import (
    Parsed,
    SinkConnector,
    SinkContext,
    SinkTask,
    SourceConnector,
    SourceContext,
    SourceTask,
)
from connectors.sdk.errors import ConfigError
from connectors.sdk.records import Place, SinkRecord, SourceRecord, TopicPartition
from connectors.sdk.testing import (
    MemoryContext,
    MemorySinkContext,
    MemorySourceContext,
    parse_config,
    run_sink,
    run_source,
    sink_record,
)

PLACE = {"list": "a", "of": 1}
ORDERS = TopicPartition(topic="orders", partition=0)


class Numbers(SourceConnector):
    name = "test.numbers"
    title = "Numbers"
    summary = "The numbers below five, two in a poll."

    @classmethod
    def definition(cls) -> Definition:
        return Definition()

    def task_configs(self, parsed: Parsed, *, max_tasks: int) -> list[dict[str, str]]:
        return [{}]

    def task(self) -> SourceTask:
        return NumbersTask()


class NumbersTask(SourceTask):
    def start(self, context: SourceContext, parsed: Parsed) -> None:
        self.at = (context.offset(PLACE) or {"next": 0})["next"]
        self.committed = context.kept.setdefault("committed", [])

    def poll(self) -> list[SourceRecord]:
        numbers = range(self.at, min(self.at + 2, 5))
        self.at = numbers.stop
        return [
            SourceRecord(
                topic="numbers", value=n, source_partition=PLACE, source_offset={"next": n + 1}
            )
            for n in numbers
        ]

    def reached(self) -> tuple[Place, Place] | None:
        return (PLACE, {"next": 6}) if self.at == 5 else None

    def commit(self, records: Sequence[SourceRecord]) -> None:
        self.committed += [record.value for record in records]


class Gather(SinkConnector):
    name = "test.gather"
    title = "Gather"
    summary = "Keeps records in the context."

    @classmethod
    def definition(cls) -> Definition:
        return Definition()

    def task_configs(self, parsed: Parsed, *, max_tasks: int) -> list[dict[str, str]]:
        return [{}]

    def task(self) -> SinkTask:
        return GatherTask()


class GatherTask(SinkTask):
    def start(self, context: SinkContext, parsed: Parsed) -> None:
        self.kept = context.kept
        self.begin_at: int = parsed["begin_at"]

    def open(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        self.kept["opened"] = list(partitions)
        return dict.fromkeys(partitions, self.begin_at)

    def put(self, records: list[SinkRecord]) -> None:
        self.kept.setdefault("values", []).extend(record.value for record in records)


def test_a_source_goes_on_where_the_last_slice_has_stored() -> None:
    context = MemorySourceContext()

    first = run_source(Numbers(), {}, context, max_records=2)
    second = run_source(Numbers(), {}, context)

    assert [record.value for record in first] == [0, 1]
    assert [record.value for record in second] == [2, 3, 4]
    assert context.kept["committed"] == [0, 1, 2, 3, 4]


def test_an_offset_is_found_whatever_the_order_of_the_keys_of_its_place() -> None:
    context = MemorySourceContext()

    run_source(Numbers(), {}, context)

    assert context.offset(dict(reversed(PLACE.items()))) == {"next": 6}
    assert context.offset({"list": "b"}) is None


def test_a_sink_is_given_nothing_before_the_offsets_that_it_keeps_itself() -> None:
    context = MemorySinkContext()
    batch = [sink_record(f"v{offset}", offset=offset) for offset in range(4)]

    run_sink(Gather(), {"begin_at": 2}, context, [batch])

    assert context.kept == {"opened": [ORDERS], "values": ["v2", "v3"]}


def test_a_config_is_parsed_with_its_defaults_and_faults_are_named() -> None:
    definition = Definition(
        (
            Key(name="size", kind=Kind.INT, importance=Importance.HIGH, doc="Size."),
            Key(name="word", kind=Kind.STRING, default="a", importance=Importance.LOW, doc="W."),
        )
    )

    assert parse_config(definition, {"size": "3", "name": "x"}) == {"size": 3, "word": "a"}
    with pytest.raises(ConfigError, match="Invalid value b for configuration size"):
        parse_config(definition, {"size": "b"})
    with pytest.raises(ConfigError, match='Missing required configuration "size"'):
        parse_config(definition, {})


def test_closing_a_context_closes_what_is_kept() -> None:
    closed: list[Any] = []

    class Client:
        def close(self) -> None:
            closed.append(self)

    context = MemoryContext()
    client = context.kept["client"] = Client()
    context.kept["text"] = "no close"
    context.close()

    assert closed == [client]
    assert context.kept == {}
