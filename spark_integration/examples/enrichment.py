"""Orders from a topic, joined with a table of products, to a topic. Copy it as the start of a job.

The table is a compacted topic: the last record of a key is its row, and a record without a value
deletes it. It is read again for each batch, so a product that changes counts from the next batch
on. Every order goes to one of three topics, and is there at least once: a batch that was
interrupted is written again.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pyspark.sql import functions

ORDER: Final = "id STRING, product STRING, count INT, at STRING"
PRODUCT: Final = "name STRING, price DOUBLE"
WHOLE: Final = """to_json(named_struct(
    'id', bought.id, 'at', bought.at, 'count', bought.count,
    'product', bought.product, 'name', row.name, 'price', row.price,
    'total', round(bought.count * row.price, 2)))"""


def start(
    spark: Any,
    kafka: Mapping[str, str],
    *,
    orders: str,
    products: str,
    sinks: tuple[str, str, str],
    checkpoint: str,
    every_s: int | None = None,
) -> list[Any]:
    """Start the query: every so many seconds, or once to the end of what is there now.

    `kafka` is how the cluster is reached, such as {"kafka.bootstrap.servers": "127.0.0.1:9092"}.
    The topics of `sinks` get: orders with their product; orders, as they came, of which the table
    has no product, to be sent again once it has; and, as it came, what is no order.
    """
    trigger: dict[str, Any] = (
        {"availableNow": True} if every_s is None else {"processingTime": f"{every_s} seconds"}
    )
    records = (
        spark.readStream.format("samsa")
        .options(**kafka)
        .option("subscribe", orders)
        # The first run begins here; later ones go on from the checkpoint.
        .option("startingOffsets", "earliest")
        .load()
    )
    # A value that is no JSON gives fields that are NULL, and no error.
    bought = functions.from_json(functions.col("value").cast("string"), ORDER)
    query = (
        records.select("key", "value", bought.alias("bought"))
        .writeStream.foreachBatch(batch_writer(dict(kafka), products, sinks))
        .option("checkpointLocation", f"{checkpoint}/orders")
        .trigger(**trigger)
        .queryName("orders")
    )
    return [query.start()]


def batch_writer(
    kafka: dict[str, str], products: str, sinks: tuple[str, str, str]
) -> Callable[[Any, int], None]:
    """Return what Spark calls with each batch.

    A function within a function, because on a Connect server it travels there: it takes along the
    values around it, and no module of ours.
    """
    enriched, unmatched, bad = sinks

    def write_batch(batch: Any, _number: int) -> None:
        # Read here, and not beside the stream: a table that is joined to a stream directly is read
        # once, when the query starts, and its changes never show. A table in files is read again
        # by `.read.parquet(…)` or `.read.csv(…)` in this place.
        reader = batch.sparkSession.read.format("samsa").options(**kafka)
        table = (
            reader.option("subscribe", products)
            .load()
            .groupBy(functions.col("key").cast("string").alias("number"))
            # All records of a key are in one partition, where the last one has the highest offset.
            .agg(functions.max_by("value", "offset").alias("last"))
            .where("last IS NOT NULL")
            .selectExpr("number", f"from_json(string(last), '{PRODUCT}') AS row")
            # A row that cannot be read is none: its orders are unmatched.
            .where("row.name IS NOT NULL AND row.price IS NOT NULL")
        )
        # Left: an order without a product stays, and goes elsewhere. Broadcast: a table that fits
        # into memory goes to the tasks that have the orders, and not both through a shuffle.
        has_product = functions.expr("bought.product = number")
        rows = batch.join(functions.broadcast(table), has_product, "left")
        topic = (
            "CASE WHEN bought.id IS NULL OR bought.product IS NULL OR bought.count IS NULL"
            f" THEN '{bad}'"
            f" WHEN number IS NULL THEN '{unmatched}' ELSE '{enriched}' END"
        )
        value = f"CASE WHEN topic IN ('{bad}', '{unmatched}') THEN value ELSE binary({WHOLE}) END"
        # Each row names its topic, so one write fills all three.
        placed = rows.selectExpr("*", f"{topic} AS topic")
        result = placed.selectExpr("key", "topic", f"{value} AS value")
        result.write.format("samsa").options(**kafka).mode("append").save()

    return write_batch


def tell(progress: Any) -> str:
    """Say what a batch did."""
    rows = progress["numInputRows"]
    return f"{rows} orders joined with the products of this moment" if rows else ""


def look(spark: Any, kafka: Mapping[str, str], sinks: tuple[str, str, str]) -> list[str]:
    """Return how many orders each topic has now."""
    written = spark.read.format("samsa").options(**kafka).option("subscribe", ",".join(sinks))
    rows = written.load().groupBy("topic").count().collect()
    counts = {row["topic"]: row["count"] for row in rows}
    return [f"{topic}  {counts.get(topic, 0)} orders" for topic in sinks]
