"""Clicks from a topic to Parquet, in folders of one hour each. Copy it as the start of a job.

A click goes to the folder of its hour, and what cannot be used to `aside`, with its reason.
Repeated clicks, and clicks behind the watermark, are dropped and counted. A job that was killed
continues from the checkpoint, and writes nothing twice.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pyspark.sql import functions

SCHEMA: Final = "id STRING, user STRING, page STRING, at TIMESTAMP"
# A click whose record is later than this is set aside. The record's own timestamp decides, which is
# the same in every run; the clock is not. It is the time of arrival only in a topic with
# `message.timestamp.type=LogAppendTime`: producers set it otherwise.
LATE: Final = "INTERVAL 1 HOUR"
# A browser whose clock is ahead by more than this would move the watermark for all others.
AHEAD: Final = "INTERVAL 5 MINUTES"
# How long Spark remembers ids to find repeated clicks. More than LATE, so that no click in time is
# lost where one partition is read before another; the rows that are lost all the same are counted.
WATERMARK: Final = "2 hours"


def start(
    spark: Any,
    kafka: Mapping[str, str],
    *,
    topic: str,
    folder: str,
    checkpoint: str,
    every_s: int | None = None,
) -> list[Any]:
    """Start the two queries: every so many seconds, or once to the end of what is there now.

    `kafka` is how the cluster is reached, such as {"kafka.bootstrap.servers": "127.0.0.1:9092"}.
    """
    # Folders are named in UTC, wherever this runs.
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    # Each batch writes a file per hour: in production a minute or more makes files worth reading.
    trigger: dict[str, Any] = (
        {"availableNow": True} if every_s is None else {"processingTime": f"{every_s} seconds"}
    )
    records = (
        spark.readStream.format("samsa")
        .options(**kafka)
        .option("subscribe", topic)
        # The first run begins here; later ones go on from the checkpoint.
        .option("startingOffsets", "earliest")
        .load()
    )
    checked = with_reason(records)
    queries = []
    for name, rows, parts in (
        ("clicks", clicks_of(checked), ("date", "hour")),
        # As they came, with their place, so that they can be looked at and sent again.
        ("aside", aside_of(checked), ("reason",)),
    ):
        # Spark's own Parquet sink notes which files each batch has written, in `_spark_metadata`:
        # a batch that is repeated after a kill adds none.
        writer = (
            rows.writeStream.format("parquet")
            .partitionBy(*parts)
            .option("path", f"{folder}/{name}")
            .option("checkpointLocation", f"{checkpoint}/{name}")
            .trigger(**trigger)
            .queryName(name)
        )
        queries.append(writer.start())
    return queries


def with_reason(records: Any) -> Any:
    """Parse each record, and say why it cannot be used; no reason is a good click."""
    click = functions.from_json(functions.col("value").cast("string"), SCHEMA)
    reason = (
        # A value that is no JSON gives fields that are NULL, and no error.
        functions.when(functions.expr("click.id IS NULL OR click.at IS NULL"), "no click")
        .when(functions.expr(f"click.at > timestamp + {AHEAD}"), "clock ahead")
        .when(functions.expr(f"click.at < timestamp - {LATE}"), "late")
    )
    return records.withColumn("click", click).withColumn("reason", reason)


def clicks_of(checked: Any) -> Any:
    """Return each good click once, with the folder that it belongs to."""
    counted = checked.observe(
        "records",
        functions.count(functions.lit(1)).alias("read"),
        functions.count_if(functions.col("reason").isin("no click", "clock ahead")).alias("bad"),
        functions.count_if(functions.col("reason") == "late").alias("late"),
    )
    return (
        counted.where("reason IS NULL")
        .select("click.*")
        .withWatermark("at", WATERMARK)
        .dropDuplicatesWithinWatermark(["id"])
        .withColumn("date", functions.to_date("at"))
        .withColumn("hour", functions.date_format("at", "HH"))
    )


def aside_of(checked: Any) -> Any:
    columns = ("reason", "key", "value", "topic", "partition", "offset", "timestamp")
    return checked.where("reason IS NOT NULL").select(*columns)


def tell(progress: Any) -> str:
    """Say what a batch did. What `observe` counted, and what Spark has dropped, is in its progress.

    The query `aside` reads the same records once more, and says nothing.
    """
    if progress["name"] != "clicks" or not progress["numInputRows"]:
        return ""
    counted = progress["observedMetrics"]["records"]
    dropped = sum(state["numRowsDroppedByWatermark"] for state in progress["stateOperators"])
    repeated = sum(
        state["customMetrics"].get("numDroppedDuplicateRows", 0)
        for state in progress["stateOperators"]
    )
    written = counted["read"] - counted["bad"] - counted["late"] - repeated - dropped
    return (
        f"{counted['read']} records: {written} clicks written, {repeated} repeated,"
        f" {counted['late']} late, {counted['bad']} bad, {dropped} behind the watermark"
    )


def look(spark: Any, folder: str) -> list[str]:
    """Return what there is now, by hour and by reason."""
    lines = []
    # A query that was stopped before its first batch has written nothing.
    if Path(folder, "clicks", "_spark_metadata").is_dir():
        clicks = spark.read.schema(f"{SCHEMA}, date DATE, hour INT").parquet(f"{folder}/clicks")
        hours = clicks.groupBy("date", "hour").count().orderBy("date", "hour")
        for date, hour, count in hours.collect():
            lines.append(f"clicks/date={date}/hour={hour:02}: {count} clicks")
    if Path(folder, "aside", "_spark_metadata").is_dir():
        aside = spark.read.schema("reason STRING").parquet(f"{folder}/aside")
        for reason, count in aside.groupBy("reason").count().orderBy("reason").collect():
            lines.append(f"aside/reason={reason}: {count} records")
    return lines
