"""Each record becomes one line, once, whatever ends the task."""

import gc
import os
import signal
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from connectors.plugins.file.sink import FileSink
from connectors.sdk.connector import Parsed, SinkTask
from connectors.sdk.errors import ConnectorError, RecordError, RetriableError
from connectors.sdk.records import SinkRecord, TopicPartition
from connectors.sdk.schemas import INT64, STRING, Field, Schema, Struct, Type
from connectors.sdk.testing import MemorySinkContext, parse_config, run_sink, sink_record

KEYS = parse_config(FileSink.definition(), {"file": "out/lines"})
APPENDING = parse_config(FileSink.definition(), {"file": "out/lines", "file.append": "true"})
ORDERS = TopicPartition(topic="orders", partition=0)


def batch(*offsets: int) -> list[SinkRecord]:
    return [sink_record(f"line {offset}", offset=offset) for offset in offsets]


def started(context: MemorySinkContext, keys: Parsed = KEYS) -> SinkTask:
    task = FileSink().task()
    task.start(context, keys)
    return task


def lines(files: Path) -> list[str]:
    return (files / "out" / "lines").read_text().splitlines()


def test_values_become_lines(files: Path) -> None:
    schema = Schema(
        type=Type.STRUCT,
        fields=(Field(name="id", schema=INT64), Field(name="name", schema=STRING)),
    )
    values: list[Any] = [
        *(
            "text",
            b"\x00raw",
            None,
            5,
            {"price": Decimal("1.50"), "at": datetime(2026, 1, 2, tzinfo=UTC)},
        ),
        Struct(schema, {"id": 1, "name": "ü"}),
    ]

    run_sink(FileSink(), KEYS, MemorySinkContext(), [[sink_record(value) for value in values]])

    assert (files / "out" / "lines").read_bytes().splitlines() == [
        b"text",
        b"\x00raw",
        b"null",
        b"5",
        b'{"price": "1.50", "at": "2026-01-02T00:00:00+00:00"}',
        '{"id": 1, "name": "ü"}'.encode(),
    ]


def test_what_was_not_flushed_is_put_again_and_stands_there_once(files: Path) -> None:
    context = MemorySinkContext()
    run_sink(FileSink(), KEYS, context, [batch(0, 1)])
    lost = started(context)
    lost.open([ORDERS])
    lost.put(batch(2, 3))
    lost.stop()

    task = started(context)
    begin_at = task.open([ORDERS])
    task.put(batch(2, 3, 4))
    task.flush()
    task.stop()

    assert begin_at == {ORDERS: 2}
    assert lines(files) == [f"line {offset}" for offset in range(5)]


def test_a_batch_that_was_flushed_is_asked_for_no_more(files: Path) -> None:
    context = MemorySinkContext()

    for _ in range(3):
        run_sink(FileSink(), KEYS, context, [batch(0, 1), batch(2)])

    assert lines(files) == ["line 0", "line 1", "line 2"]


def test_a_file_of_another_writer_is_refused_as_it_is(files: Path) -> None:
    (files / "out").mkdir()
    (files / "out" / "lines").write_text("before")

    with pytest.raises(ConnectorError, match=r"lines has 6 bytes .* set file.append to true"):
        started(MemorySinkContext())

    assert lines(files) == ["before"]
    assert not (files / "out" / ".lines.offsets").exists()


def test_what_stood_in_the_file_before_stays(files: Path) -> None:
    (files / "out").mkdir()
    (files / "out" / "lines").write_text("before")

    context = MemorySinkContext()
    task = started(context, APPENDING)
    task.put(batch(0))
    task.stop()
    run_sink(FileSink(), KEYS, context, [batch(0)])

    assert lines(files) == ["before", "line 0"]


def test_a_topic_that_was_made_anew_stops_the_task_however_long_it_is(files: Path) -> None:
    context = MemorySinkContext(topic_ids={"orders": "one"})
    run_sink(FileSink(), KEYS, context, [batch(0, 1)])
    context.topic_ids = {"orders": "two"}

    task = started(context)
    with pytest.raises(ConnectorError, match=r"orders was deleted and recreated.*\.lines\.offsets"):
        task.open([ORDERS])
    task.stop()
    (files / "out" / ".lines.offsets").unlink()
    run_sink(FileSink(), APPENDING, context, [batch(0, 1, 2)])

    assert lines(files) == ["line 0", "line 1", "line 0", "line 1", "line 2"]


def test_notes_without_ids_of_topics_are_taken_as_they_are(files: Path) -> None:
    context = MemorySinkContext()
    run_sink(FileSink(), KEYS, context, [batch(0)])
    notes = files / "out" / ".lines.offsets"
    notes.write_text(notes.read_text().replace(', "topics": {}', ""))
    context.topic_ids = {"orders": "one"}

    run_sink(FileSink(), KEYS, context, [batch(0, 1)])

    assert lines(files) == ["line 0", "line 1"]
    assert '"topics": {"orders": "one"}' in notes.read_text()


def test_a_file_that_was_moved_away_is_begun_anew(files: Path) -> None:
    context = MemorySinkContext()
    run_sink(FileSink(), KEYS, context, [batch(0)])
    (files / "out" / "lines").rename(files / "out" / "lines.1")

    run_sink(FileSink(), KEYS, context, [batch(0, 1)])

    assert lines(files) == ["line 1"]
    assert "cut or replaced" in context.lines[0]


def test_a_file_has_one_writer_at_a_time(files: Path) -> None:
    first = started(MemorySinkContext())

    with pytest.raises(RetriableError, match="another task"):
        started(MemorySinkContext())
    first.stop()
    started(MemorySinkContext()).stop()


def test_an_owner_that_was_replaced_writes_nothing(files: Path) -> None:
    run_sink(FileSink(), KEYS, MemorySinkContext(epoch=3), [batch(0)])

    with pytest.raises(RetriableError, match="later owner"):
        started(MemorySinkContext(epoch=2))


def test_a_file_of_another_connector_is_left_alone(files: Path) -> None:
    run_sink(FileSink(), KEYS, MemorySinkContext(connector="first"), [batch(0)])

    with pytest.raises(ConnectorError, match="written by the connector first"):
        started(MemorySinkContext(connector="second"))


def test_notes_that_cannot_be_read_stop_the_task(files: Path) -> None:
    run_sink(FileSink(), KEYS, MemorySinkContext(), [batch(0)])
    (files / "out" / ".lines.offsets").write_text("{")

    with pytest.raises(ConnectorError, match="cannot be read"):
        started(MemorySinkContext())


def test_a_value_that_is_no_json_is_named_by_its_place_and_nothing_is_written(files: Path) -> None:
    task = started(MemorySinkContext())

    with pytest.raises(RecordError) as caught:
        task.put([sink_record("fine"), sink_record({"is": {1, 2}}, offset=1)])
    task.stop()

    assert caught.value.index == 1
    assert lines(files) == []


@pytest.mark.slow
def test_a_killed_writer_leaves_every_line_once_and_none_torn(files: Path) -> None:
    done = 0
    for _ in range(8):
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            write_for_ever(writing)
        os.close(writing)
        # The child says so before each put; it is killed in the midst of the third.
        os.read(reading, 1), os.read(reading, 1), os.read(reading, 1)
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL, "the writer ended before it was killed"
        os.close(reading)
        task = started(MemorySinkContext())
        task.stop()
        told = lines(files)
        assert told == [f"line {offset}" for offset in range(len(told))]
        assert len(told) >= done
        done = len(told)


def write_for_ever(writing: int) -> None:
    """Write batches and flush each, in a child that is to be killed."""
    # Garbage of earlier tests may hold clients whose threads a fork does not have.
    gc.disable()
    try:
        task = started(MemorySinkContext())
        offset = task.open([ORDERS]).get(ORDERS, 0)
        while True:
            os.write(writing, b".")
            task.put(batch(*range(offset, offset + 20_000)))
            task.flush()
            offset += 20_000
    finally:
        os._exit(1)
