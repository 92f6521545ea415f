"""`format("samsa")` writes as Spark's own `kafka` does, and says what it cannot write."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.consumer import Reader
from gateway.kafka.values import NewTopic, Record, Span
from tests.extras import requires
from tests.suite.services import shared_home

pytestmark = [requires("java", "spark"), pytest.mark.slow]

PARTITIONS = 3


@pytest.fixture(scope="module")
def bootstrap() -> str:
    return shared_home().bootstrap


@pytest.fixture
def topic(bootstrap: str, unique: Callable[[str], str]) -> str:
    name = unique("written")
    Admin(Connection(bootstrap=bootstrap)).create([NewTopic(name=name, partitions=PARTITIONS)])
    return name


@pytest.fixture
def samsa(spark: Any) -> Any:
    from spark_integration.datasource.source import SamsaDataSource  # noqa: PLC0415 (an extra)

    spark.dataSource.register(SamsaDataSource)
    # Spark looks for a sink in Python in the session that is active; this makes it ours.
    spark.createDataFrame([], "nothing int")
    return spark


def read(bootstrap: str, topic: str) -> dict[int, list[Record]]:
    found = {}
    for partition in range(PARTITIONS):
        spans = [Span(partition=partition, start=0)]
        with Reader(Connection(bootstrap=bootstrap), topic, spans, stops_at_end=True) as reader:
            found[partition] = [record for batch in reader.batches() for record in batch]
    return found


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_a_batch_writes_each_row_once_with_key_headers_and_nulls(
    samsa: Any, door: str, bootstrap: str, topic: str, codec: str
) -> None:
    rows = samsa.range(5000, numPartitions=2).selectExpr(
        "cast(id % 10 as string) AS key",
        "if(id = 7, null, cast(id as string)) AS value",
        "array(named_struct('key', 'h', 'value', cast('1' as binary))) AS headers",
        "'not read' AS other",
    )

    (
        rows.write.format(door)
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.compression.type", codec)
        .option("topic", topic)
        .mode("append")
        .save()
    )

    records = [record for part in read(bootstrap, topic).values() for record in part]
    values = Counter(record.value for record in records)
    expected = Counter(str(number).encode() for number in range(5000) if number != 7)
    assert values == expected + Counter([None])
    assert {record.headers for record in records} == {(("h", b"1"),)}
    assert {record.key for record in records} == {b"%d" % number for number in range(10)}


def test_a_stream_writes_each_row_once_and_goes_on_after_a_restart(
    samsa: Any, door: str, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()

    def run(name: str, lines: list[str]) -> None:
        (tmp_path / "in" / name).write_text("\n".join(lines), encoding="utf-8")
        query = (
            samsa.readStream.text(str(tmp_path / "in"))
            .writeStream.format(door)
            .option("kafka.bootstrap.servers", bootstrap)
            .option("topic", topic)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)

    run("one", ["a", "b"])
    run("two", ["c"])

    records = [record for part in read(bootstrap, topic).values() for record in part]
    assert sorted(record.value or b"" for record in records) == [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("samsa", {"exactlyOnce": "true"}, "needs transactions, and Samsa has none yet"),
        ("samsa", {}, "no topic to write to"),
        pytest.param("kafka", {}, "topic option required", marks=requires("maven-spark")),
        ("samsa", {"topic": "t", "kafka.acks": "1"}, "can only be all"),
    ],
)
def test_what_cannot_be_done_is_told_before_a_row_is_written(
    samsa: Any, bootstrap: str, name: str, options: dict[str, str], told: str
) -> None:
    writer = samsa.range(1).selectExpr("cast(id as string) AS value").write.format(name)
    writer = writer.option("kafka.bootstrap.servers", bootstrap).options(**options)

    with pytest.raises(Exception, match=told):
        writer.mode("append").save()
