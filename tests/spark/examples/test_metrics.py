"""The rollups run as streams over a topic, and go on from their checkpoints."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.kafka.connection import Connection
from gateway.kafka.consumer import Reader
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord, Span
from spark_integration.examples import metrics
from tests.extras import requires
from tests.spark.topics import create
from tests.spark_integration.examples.test_metrics import BEGIN_MS, sample
from tests.suite.services import shared_home

pytestmark = [requires("java", "spark"), pytest.mark.slow]

SECONDS = 120


def run(spark: Any, bootstrap: str, source: str, checkpoint: Path) -> None:
    kafka = {"kafka.bootstrap.servers": bootstrap}
    queries = metrics.start(spark, kafka, source=source, checkpoint=str(checkpoint))
    try:
        for query in queries:
            assert query.awaitTermination(SECONDS)
    finally:
        for query in queries:
            query.stop()


def write(bootstrap: str, topic: str, seconds: range) -> None:
    producer = TopicWriter(Connection(bootstrap=bootstrap), topic)
    for second in seconds:
        for record in sample(second, records=second, waiting=second):
            producer.send(NewRecord(key=record.key, value=record.value))
    producer.flush()


def read(bootstrap: str, topic: str) -> list[dict[str, Any]]:
    spans = [Span(partition=0, start=0)]
    with Reader(Connection(bootstrap=bootstrap), topic, spans, stops_at_end=True) as reader:
        return [json.loads(r.value or b"") for batch in reader.batches() for r in batch]


def test_windows_are_written_once_when_they_have_closed(
    spark: Any, unique: Callable[[str], str], tmp_path: Path
) -> None:
    from spark_integration.datasource.source import SamsaDataSource  # noqa: PLC0415 (an extra)

    spark.dataSource.register(SamsaDataSource)
    bootstrap, source = shared_home().bootstrap, create_source(unique)

    write(bootstrap, source, range(0, 360, 10))
    run(spark, bootstrap, source, tmp_path)
    write(bootstrap, source, range(360, 420, 10))
    run(spark, bootstrap, source, tmp_path)

    by_topic, by_group = (read(bootstrap, sink) for sink in metrics.sinks_of(source))
    minutes = [(row["window_start"] - BEGIN_MS) // 60_000 for row in by_topic]
    assert sorted(minutes) == [0, 1, 2, 3, 4, 5]
    assert [(row["group"], row["most_lag_records"]) for row in by_group] == [("billing", 290)]


def create_source(unique: Callable[[str], str]) -> str:
    """Make the topics of a job; return the one that it reads."""
    source, bootstrap = unique("samples"), shared_home().bootstrap
    for name in (source, *metrics.sinks_of(source)):
        create(bootstrap, name)
    return source
