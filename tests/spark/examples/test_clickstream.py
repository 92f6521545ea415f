"""The clickstream ends each record in one place, also where it is stopped and goes on."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.kafka.connection import Connection
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord
from tests.extras import requires
from tests.spark.topics import create
from tests.suite.services import shared_home

pytestmark = [requires("java", "spark"), pytest.mark.slow]

SECONDS = 120
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def click(number: int, *, minute: int, arrives: int | None = None) -> NewRecord:
    """Return a click of so many minutes after noon, which arrives then, or at another minute."""
    at = NOON + timedelta(minutes=minute)
    came = NOON + timedelta(minutes=minute if arrives is None else arrives)
    value = {"id": str(number), "user": "u", "page": "/", "at": at.isoformat()}
    return NewRecord(value=json.dumps(value).encode(), timestamp_ms=int(came.timestamp() * 1000))


class Stream:
    def __init__(self, spark: Any, bootstrap: str, topic: str, folder: Path) -> None:
        self._spark = spark
        self._bootstrap = bootstrap
        self._topic = topic
        self._folder = str(folder)

    def write(self, *records: NewRecord) -> None:
        producer = TopicWriter(Connection(bootstrap=self._bootstrap), self._topic)
        for record in records:
            producer.send(record)
        producer.flush()

    def run(self) -> list[str]:
        """Read what is there now, and return what the example says of it."""
        from spark_integration.examples import clickstream  # noqa: PLC0415 (an extra)

        queries = clickstream.start(
            self._spark,
            {"kafka.bootstrap.servers": self._bootstrap},
            topic=self._topic,
            folder=self._folder,
            checkpoint=f"{self._folder}/checkpoint",
        )
        try:
            for query in queries:
                assert query.awaitTermination(SECONDS)
        finally:
            for query in queries:
                query.stop()
        told = [clickstream.tell(step) for query in queries for step in query.recentProgress]
        return [sentence for sentence in told if sentence]

    def look(self) -> list[str]:
        from spark_integration.examples import clickstream  # noqa: PLC0415 (an extra)

        return clickstream.look(self._spark, self._folder)


def test_each_record_ends_in_one_place_and_none_is_written_twice(
    spark: Any, unique: Callable[[str], str], tmp_path: Path
) -> None:
    from spark_integration.datasource.source import SamsaDataSource  # noqa: PLC0415 (an extra)

    spark.dataSource.register(SamsaDataSource)
    bootstrap = shared_home().bootstrap
    stream = Stream(spark, bootstrap, create(bootstrap, unique("clicks")), tmp_path)
    assert stream.look() == []

    stream.write(
        *(click(1, minute=0), click(2, minute=59), click(3, minute=61), click(2, minute=59)),
        click(4, minute=0, arrives=61),
        click(5, minute=90, arrives=61),
        NewRecord(value=b"no JSON"),
        NewRecord(value=b'{"id":"6"}'),
        NewRecord(value=None),
    )
    first = stream.run()
    # Another run knows the ids of the first one, and what it has written.
    stream.write(click(3, minute=61), click(7, minute=62))
    second = stream.run()

    assert first == [
        "9 records: 3 clicks written, 1 repeated, 1 late, 4 bad, 0 behind the watermark"
    ]
    assert second == [
        "2 records: 1 clicks written, 1 repeated, 0 late, 0 bad, 0 behind the watermark"
    ]
    assert stream.look() == [
        "clicks/date=2026-01-01/hour=12: 2 clicks",
        "clicks/date=2026-01-01/hour=13: 2 clicks",
        "aside/reason=clock ahead: 1 records",
        "aside/reason=late: 1 records",
        "aside/reason=no click: 3 records",
    ]
