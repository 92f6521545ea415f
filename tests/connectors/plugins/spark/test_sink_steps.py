"""The sink over a cluster in memory, between the steps that Spark does."""

from collections.abc import Callable
from pathlib import Path

import pytest

from connectors.plugins.spark.sink import SparkSink, SparkSinkTask
from connectors.runtime.job_slice import JobTaskContext
from connectors.runtime.ports import TaskSpec
from connectors.runtime.turn import Turn
from connectors.sdk.records import TopicPartition
from connectors.sdk.testing import parse_config
from tests.connectors.runtime.test_job_slice import job
from tests.fakes.slice_ports import FakePorts

OLD, NEW = (TopicPartition(topic="orders", partition=number) for number in range(2))

Start = Callable[[FakePorts], SparkSinkTask]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Start the sink's task, whose worker has just done a batch."""
    monkeypatch.setenv("SAMSA_HOME", str(tmp_path))

    def started(fakes: FakePorts) -> SparkSinkTask:
        reading = {"topics": "orders", "consumer.override.auto.offset.reset": "latest"}
        spec = TaskSpec(connector="c", plugin=job(), config=reading)
        told = {"table.path": "lake", "batch.max.wait.ms": "600000"}
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
