"""Spark: rows out of topics of ours, in batches and as a stream, on two cores for all together.

One broker and a Spark of two threads; each way is run once to warm it, and then measured. Targets:
a batch 1 M rows/s, Trigger.AvailableNow 0.4 M.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from bench.broker_targets import Target, own_broker
from bench.measure import Cell, Table
from brokers.protocol.records.builder import BatchBuilder
from spark_integration.datasource.source import SamsaDataSource
from spark_integration.datasource.wire.cluster import Cluster
from spark_integration.datasource.wire.messages import TopicPartition
from spark_integration.datasource.wire.settings import parse_settings
from spark_integration.jobs.session import close_session, session

# 10 M rows by default; a machine that has other things to do may take fewer.
ROWS: Final = int(os.environ.get("SAMSA_BENCH_ROWS", "10000000"))
WARM_ROWS: Final = 400_000
VALUE_BYTES: Final = 100
BATCH_ROWS: Final = 1000
PARTITIONS: Final = 2
ROUNDS: Final = 3
SECONDS: Final = 600
# Of one micro-batch: Spark spends a quarter of a second on each.
TRIGGER_ROWS: Final = 2_000_000


def run(**_options: str | int) -> Iterator[Table]:
    with own_broker() as (broker, _), tempfile.TemporaryDirectory() as folder:
        for name, rows in (("warm", WARM_ROWS), ("rows", ROWS)):
            broker.make_topic(name, PARTITIONS)
            fill(broker, name, rows)
        spark = session(Path(folder), environment={"SAMSA_SPARK": "local[2]"})
        try:
            spark.dataSource.register(SamsaDataSource)
            yield rates(spark, broker, Path(folder))
        finally:
            close_session()


def fill(broker: Target, topic: str, rows: int) -> None:
    """Write the same batch of keys and values again and again."""
    builder = BatchBuilder()
    for number in range(BATCH_ROWS):
        value = b"%d" % number
        builder.append(b"%08d" % number, value.ljust(VALUE_BYTES, b"x"), timestamp=now_ms())
    batch = bytes(builder.build())
    with Cluster(parse_settings({"bootstrap.servers": broker.bootstrap})) as cluster:
        for number in range(rows // BATCH_ROWS):
            cluster.produce({TopicPartition(topic, number % PARTITIONS): batch})


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def rates(spark: SparkSession, broker: Target, folder: Path) -> Table:
    ways: dict[str, Callable[[str, int], None]] = {
        "batch to noop": lambda topic, _round: batch(spark, broker, topic),
        "batch, sum of the lengths": lambda topic, _round: summed(spark, broker, topic),
        "AvailableNow to noop": lambda topic, number: stream(
            spark, broker, topic, folder / f"{topic}-{number}"
        ),
    }
    rows: list[tuple[Cell, ...]] = []
    for name, work in ways.items():
        work("warm", -1)
        best = cpu = float("inf")
        for number in range(ROUNDS):
            before, started = broker.cpu_seconds(), time.perf_counter()
            work("rows", number)
            best = min(best, time.perf_counter() - started)
            cpu = min(cpu, broker.cpu_seconds() - before)
        megabytes = ROWS * VALUE_BYTES / best / 1e6
        rows.append((name, round(ROWS / best), round(megabytes), cpu / ROWS * 1e6))
    return Table(
        title=f"{ROWS:,} rows of {VALUE_BYTES} bytes from {PARTITIONS} partitions, warm, local[2]",
        columns=("way", "rows/s", "MB/s of values", "broker's CPU µs per row"),
        rows=rows,
        notes=(f"best of {ROUNDS}; targets: batch 1,000,000 rows/s, AvailableNow 400,000",),
    )


def options(broker: Target, topic: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribe": topic,
        "startingOffsets": "earliest",
    }


def batch(spark: SparkSession, broker: Target, topic: str) -> None:
    frame = spark.read.format("samsa").options(**options(broker, topic)).load()
    frame.write.format("noop").mode("overwrite").save()


def summed(spark: SparkSession, broker: Target, topic: str) -> None:
    frame = spark.read.format("samsa").options(**options(broker, topic)).load()
    total = frame.selectExpr("sum(length(value))").first()[0]
    assert total % VALUE_BYTES == 0


def stream(spark: SparkSession, broker: Target, topic: str, checkpoint: Path) -> None:
    limits = {"maxOffsetsPerTrigger": str(TRIGGER_ROWS)}
    asked = spark.readStream.format("samsa").options(**options(broker, topic), **limits)
    query = (
        asked.load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(SECONDS)
