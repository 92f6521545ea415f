"""Where the task that writes to a topic begins, without Spark."""

import pytest

from connectors.plugins.spark import topic_task
from connectors.plugins.spark.keys import BATCH_ROWS, BATCH_WAIT
from connectors.plugins.spark.sql_keys import KEY, TOPIC
from connectors.plugins.spark.topic_task import TopicTask
from connectors.runtime.job_slice import JobTaskContext
from connectors.runtime.ports import TaskSpec
from connectors.runtime.turn import Turn
from connectors.sdk.records import TopicPartition
from tests.connectors.runtime.test_job_slice import job
from tests.fakes.slice_ports import FakePorts

OLD, NEW = (TopicPartition(topic="orders", partition=number) for number in range(2))


def test_a_partition_that_begins_at_its_end_begins_there_though_the_batch_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topic_task, "SqlRows", lambda *_: None)
    fakes = FakePorts(orders=2)
    fakes.wire.add("orders", b"0")
    fakes.wire.add("orders", b"0", b"1", b"2", partition=1)
    fakes.wire.groups = {"connect-c": {OLD: 0}}
    reading = {"topics": "orders", "consumer.override.auto.offset.reset": "latest"}
    spec = TaskSpec(connector="c", plugin=job(), config=reading)
    task = TopicTask()
    task.start(
        JobTaskContext(Turn(spec, fakes.ports)),
        {TOPIC: "out", KEY: "", BATCH_ROWS: 1000, BATCH_WAIT: 600_000},
    )
    task._pacing.done()  # noqa: SLF001

    assert not task.run()
    fakes.wire.add("orders", b"3", partition=1)
    assert not task.run()

    assert fakes.wire.groups == {"connect-c": {OLD: 0, NEW: 3}}
