"""The sink over a cluster in memory, between the steps that Spark does."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from connectors.plugins.spark.batches import Batch, Span, State, WrittenFile
from connectors.plugins.spark.delta import DeltaTable
from connectors.plugins.spark.sink import JOB_CHARS, SparkSink, SparkSinkTask
from connectors.plugins.spark.state import StateFile
from connectors.runtime.job_slice import JobTaskContext
from connectors.runtime.ports import TaskSpec
from connectors.runtime.turn import Turn
from connectors.sdk.errors import RetriableError
from connectors.sdk.records import TopicPartition
from connectors.sdk.testing import parse_config
from tests.connectors.runtime.test_job_slice import job
from tests.fakes.slice_ports import FakePorts

OLD, NEW = (TopicPartition(topic="orders", partition=number) for number in range(2))

Start = Callable[..., SparkSinkTask]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Start the sink's task, whose worker has just done a batch."""
    monkeypatch.setenv("SAMSA_HOME", str(tmp_path))

    def started(fakes: FakePorts, **more: str) -> SparkSinkTask:
        reading = {"topics": "orders", "consumer.override.auto.offset.reset": "latest"}
        spec = TaskSpec(connector="c", plugin=job(), config=reading)
        told = {"table.path": "lake", "batch.max.wait.ms": "600000"}
        told |= {name.replace("_", "."): text for name, text in more.items()}
        task = SparkSinkTask()
        task.start(
            JobTaskContext(Turn(spec, fakes.ports)), parse_config(SparkSink.definition(), told)
        )
        task._pacing.done()  # noqa: SLF001
        return task

    return started


def test_a_partition_that_begins_at_its_end_begins_there_though_the_batch_waits(
    start: Start,
) -> None:
    fakes = FakePorts(orders=2)
    fakes.wire.add("orders", b"0")
    fakes.wire.add("orders", b"0", b"1", b"2", partition=1)
    fakes.wire.groups = {"connect-c": {OLD: 0}}
    task = start(fakes)

    assert not task.run()
    fakes.wire.add("orders", b"3", partition=1)
    assert not task.run()

    assert fakes.wire.groups == {"connect-c": {OLD: 0, NEW: 3}}


def test_small_files_are_merged_once_after_a_start_where_nothing_is_new(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(DeltaTable, "compact", lambda _, least, log: asked.append((least, log)))
    fakes = FakePorts(orders=2)

    task = start(fakes, table_format="delta", compact_min_files="20")
    runs = [task.run(), task.run()]
    start(fakes, table_format="delta").run()

    assert runs == [False, False]
    assert [least for least, _ in asked] == [20]


@pytest.mark.parametrize("is_first_moved", [False, True])
def test_a_batch_of_which_a_power_cut_has_emptied_a_file_is_written_again(
    start: Start, tmp_path: Path, is_first_moved: bool
) -> None:
    lake = tmp_path / "files" / "lake"
    state = StateFile(lake, sha256(b"c").hexdigest()[:JOB_CHARS])
    whole, empty = (
        WrittenFile(
            staged=f"x/{name}", path=f"day=1/{name}", size=4, rows=1, partition={"day": "1"}
        )
        for name in ("0.parquet", "1.parquet")
    )
    spans = (Span(place=OLD, start=0, end=2),)
    batch = Batch(spans=spans, files=(whole, empty), read=2)
    state.write(State(app="app", next={OLD: 0}, told={OLD: 0}, batch=batch))
    (state.staging / "x").mkdir(parents=True)
    (state.staging / empty.staged).touch()
    first = lake / whole.path if is_first_moved else state.staging / whole.staged
    first.parent.mkdir(parents=True, exist_ok=True)
    first.write_bytes(b"rows")
    fakes = FakePorts(orders=1)
    fakes.wire.add("orders", b"0", b"1")
    fakes.wire.groups = {"connect-c": {OLD: 0}}
    task = start(fakes)

    with pytest.raises(RetriableError, match="the batch is written again"):
        task.run()

    kept = state.read(1).batch
    assert kept is not None
    assert (kept.files, kept.spans) == (None, spans)
    assert not list(lake.glob("day=*/*"))
