"""Spark: rows out of topics of ours and into them, beside Spark's own JAR, on two cores in all.

One broker and a Spark of two threads. Each direction runs once with both formats to warm up, and is
then measured with them in turns. Targets: a batch 1 M rows/s, Trigger.AvailableNow 0.4 M.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from bench.broker_targets import Target, own_broker
from bench.measure import Cell, Table
from bench.processes import Process, family
from brokers.protocol.records.builder import BatchBuilder
from cli.installer import InstallError
from spark_integration.datasource.source import SamsaDataSource
from spark_integration.datasource.wire.cluster import Cluster
from spark_integration.datasource.wire.messages import TopicPartition
from spark_integration.datasource.wire.settings import parse_settings
from spark_integration.jobs.session import close_session, session
from tests.suite.maven import SPARK_KAFKA_VERSION, spark_kafka_jars

# The words of the formats: ours, and that of Spark's JAR.
OURS: Final = "samsa"
JAR: Final = "kafka"
# 10 M rows by default; a machine that has other things to do may take fewer.
ROWS: Final = int(os.environ.get("SAMSA_BENCH_ROWS", "10000000"))
# A row costs more to write than to read, and the disk has to take it.
WRITTEN_ROWS: Final = ROWS // 10
WARM_ROWS: Final = 400_000
VALUE_BYTES: Final = 100
BATCH_ROWS: Final = 1000
PARTITIONS: Final = 2
ROUNDS: Final = 3
SECONDS: Final = 600
# Of one micro-batch: Spark spends a quarter of a second on each.
TRIGGER_ROWS: Final = 2_000_000
COLUMNS: Final = (
    "way",
    "rows/s",
    "of the JAR",
    "ratio",
    "Spark's CPU µs per row",
    "of the JAR",
    "broker's CPU µs per row",
    "of the JAR",
)

# Reads or writes by a format: its name, and whether this is the warm-up run.
Way = Callable[[str, bool], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of the rows: elapsed seconds, and CPU seconds of all of Spark's processes and of the
    broker.
    """

    seconds: float = float("inf")
    spark: float = float("inf")
    broker: float = float("inf")

    def best(self, other: "Cost") -> "Cost":
        return Cost(
            seconds=min(self.seconds, other.seconds),
            spark=min(self.spark, other.spark),
            broker=min(self.broker, other.broker),
        )


def run(**_options: str | int) -> Iterator[Table]:
    jars, why = jars_beside()
    doors, note = (
        ([OURS], why) if why else ([OURS, JAR], f"the JAR is Spark's own of {SPARK_KAFKA_VERSION}")
    )
    with own_broker() as (broker, _), tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for topic, rows in (("warm", WARM_ROWS), ("rows", ROWS)):
            broker.make_topic(topic, PARTITIONS)
            fill(broker, topic, rows)
        broker.make_topic("written", PARTITIONS)
        settings = {"spark.jars": ",".join(map(str, jars))} if jars else {}
        spark = session(folder, environment={"SAMSA_SPARK": "local[2]"}, settings=settings)
        try:
            spark.dataSource.register(SamsaDataSource)
            bench = SparkBench(spark, broker, folder)
            yield table(
                f"{ROWS:,} rows of {VALUE_BYTES} bytes from {PARTITIONS} partitions",
                {name: bench.compared(way, doors) for name, way in bench.readings().items()},
                rows=ROWS,
                notes=("targets: batch 1,000,000 rows/s, AvailableNow 400,000", note),
            )
            yield table(
                f"{WRITTEN_ROWS:,} rows of {VALUE_BYTES} bytes into {PARTITIONS} partitions",
                {name: bench.compared(way, doors) for name, way in bench.writings().items()},
                rows=WRITTEN_ROWS,
                notes=(note,),
            )
        finally:
            close_session()


def jars_beside() -> tuple[list[Path], str]:
    """Return Spark's own jars for Kafka, or why there are none."""
    jars = spark_kafka_jars()
    try:
        jars.ensure()
    except InstallError as error:
        return [], f"without Spark's own JAR beside it: {error}"
    return sorted(jars.folder.glob("*.jar")), ""


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


class SparkBench:
    """The ways between one Spark and the topics of one broker."""

    def __init__(self, spark: SparkSession, broker: Target, folder: Path) -> None:
        self._spark = spark
        self._broker = broker
        self._folder = folder

    def readings(self) -> Mapping[str, Way]:
        return {
            "batch to noop": self._batch,
            "batch, sum of the lengths": self._summed,
            "AvailableNow to noop": self._stream,
        }

    def writings(self) -> Mapping[str, Way]:
        return {"batch into a topic": self._write}

    def compared(self, way: Way, doors: Sequence[str]) -> dict[str, Cost]:
        """Measure a way through each door, in turns; return the best of each."""
        for door in doors:
            way(door, True)
        best = dict.fromkeys(doors, Cost())
        for _ in range(ROUNDS):
            for door in doors:
                best[door] = best[door].best(self._measured(way, door))
        return best

    def _measured(self, way: Way, door: str) -> Cost:
        broker, spark = self._broker.cpu_seconds(), self._spark_seconds()
        started = time.perf_counter()
        way(door, False)
        return Cost(
            seconds=time.perf_counter() - started,
            spark=self._spark_seconds() - spark,
            broker=self._broker.cpu_seconds() - broker,
        )

    def _spark_seconds(self) -> float:
        """Return the CPU of Java, of Python workers, and of this process, which asks them."""
        assert self._broker.pid is not None
        others = family(self._broker.pid)
        return sum(Process(pid).cpu_seconds_with_ended() for pid in family(os.getpid()) - others)

    def _options(self, is_warm: bool) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self._broker.bootstrap,
            "subscribe": "warm" if is_warm else "rows",
            "startingOffsets": "earliest",
        }

    def _batch(self, door: str, is_warm: bool) -> None:
        frame = self._spark.read.format(door).options(**self._options(is_warm)).load()
        frame.write.format("noop").mode("overwrite").save()

    def _summed(self, door: str, is_warm: bool) -> None:
        frame = self._spark.read.format(door).options(**self._options(is_warm)).load()
        total = frame.selectExpr("sum(length(value))").first()[0]
        assert total == VALUE_BYTES * (WARM_ROWS if is_warm else ROWS)

    def _stream(self, door: str, is_warm: bool) -> None:
        limits = {"maxOffsetsPerTrigger": str(TRIGGER_ROWS)}
        asked = self._spark.readStream.format(door).options(**self._options(is_warm), **limits)
        with tempfile.TemporaryDirectory(dir=self._folder) as checkpoint:
            query = (
                asked.load()
                .writeStream.format("noop")
                .option("checkpointLocation", checkpoint)
                .trigger(availableNow=True)
                .start()
            )
            assert query.awaitTermination(SECONDS)

    def _write(self, door: str, is_warm: bool) -> None:
        rows = WARM_ROWS if is_warm else WRITTEN_ROWS
        numbers = self._spark.range(0, rows, 1, numPartitions=PARTITIONS)
        made = numbers.selectExpr(
            "cast(id as string) AS key", f"rpad(cast(id as string), {VALUE_BYTES}, 'x') AS value"
        )
        written = made.write.format(door).option("kafka.bootstrap.servers", self._broker.bootstrap)
        written.option("topic", "written").mode("append").save()


def table(
    title: str, found: Mapping[str, Mapping[str, Cost]], *, rows: int, notes: tuple[str, ...]
) -> Table:
    return Table(
        title=f"{title}, warm, local[2]",
        columns=COLUMNS,
        rows=[row(name, costs[OURS], costs.get(JAR), rows) for name, costs in found.items()],
        notes=(f"best of {ROUNDS}, in turns", *notes),
    )


def row(name: str, ours: Cost, jar: Cost | None, rows: int) -> tuple[Cell, ...]:
    def rate(cost: Cost | None) -> Cell:
        return None if cost is None else round(rows / cost.seconds)

    def each(seconds: float | None) -> Cell:
        return None if seconds is None else seconds / rows * 1e6

    return (
        name,
        rate(ours),
        rate(jar),
        None if jar is None else jar.seconds / ours.seconds,
        each(ours.spark),
        each(None if jar is None else jar.spark),
        each(ours.broker),
        each(None if jar is None else jar.broker),
    )
