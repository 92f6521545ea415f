"""A program that uses the parts of Spark that connectors use, so that Java stores their classes.

Its arguments are the file to make, and a folder for what Spark writes.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from spark_integration.jobs.jvm_engine import JvmEngine
from spark_integration.jobs.targets import Kind, Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Java writes the archive as it ends.
END_SECONDS = 1500
# This Java ends before a second compilation of a method would be of use.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SCHEMA = "number BIGINT, value STRING"
ROWS = 100


class Numbers(DataSource):
    @classmethod
    def name(cls) -> str:
        return "numbers"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: object) -> "NumbersReader":
        del schema
        return NumbersReader()


class NumbersReader(DataSourceReader):
    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0), InputPartition(1)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        for number in range(partition.value, ROWS, 2):
            yield number, f'{{"id": {number}, "day": "d{number % 3}"}}'


def main(archive: str, folder: Path) -> None:
    stored = f'"-XX:ArchiveClassesAtExit={archive}"'
    engine = JvmEngine(
        folder / "home",
        Target(kind=Kind.LOCAL, url="local[1]"),
        {
            "spark.driver.memory": "1g",
            "spark.driver.defaultJavaOptions": f"{SHORT_LIVED} {stored}",
        },
    )
    try:
        use(engine.spark, folder)
    finally:
        engine.close(seconds=END_SECONDS)
    if engine.exit_code(0) != 0:
        # It was killed while it wrote.
        raise SystemExit(f"Java took more than {END_SECONDS} s to write its classes")


def use(spark: "SparkSession", folder: Path) -> None:
    """Read by a source in Python, parse JSON, group, join, write and read tables, and stream."""
    spark.dataSource.register(Numbers)
    # Rows travel as Arrow batches where connectors read; a function that changes none does, too.
    rows = spark.read.format("numbers").load().mapInArrow(lambda batches: batches, SCHEMA)
    parsed = rows.selectExpr("number", "from_json(value, 'id BIGINT, day STRING') AS r")
    table = parsed.selectExpr("number", "r.id", "r.day", "to_json(r) AS text", "sha2(text, 256)")
    path = str(folder / "table")
    table.write.partitionBy("day").mode("overwrite").parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("days")
    spark.sql("SELECT day, count(*) AS n FROM days GROUP BY day ORDER BY n").collect()
    joined = parsed.join(
        spark.table("days").select("id", "text"), parsed.r.id == spark.table("days").id
    )
    joined.count()
    stream = spark.readStream.schema("id BIGINT, text STRING").parquet(path)
    query = (
        stream.writeStream.trigger(availableNow=True)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .foreachBatch(lambda batch, _: batch.count())
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
    # Threads of the bridge may wait for a Java that has ended.
    sys.stdout.flush()
    os._exit(0)
