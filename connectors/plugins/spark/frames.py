"""Makes the frames of a batch: its records, its rows, and the records that are not rows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from connectors.plugins.spark.batches import Span
from connectors.plugins.spark.keys import Layout, Values
from connectors.plugins.spark.schemas import PAYLOAD, SCHEMA, Columns, parse
from connectors.sdk.records import RawRecord

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

FORMAT: Final = "samsa"
# Names that are unlikely to be fields of records.
ROW: Final = "_samsa_row"
WRONG: Final = "_samsa_wrong"
READ, END = "_samsa_read", "_samsa_end"
OBJECTS: Final = "OBJECT<%"
# The columns, with an underscore before them, that a query sees of each record beside its value.
OF_RECORDS: Final = ("key", "topic", "partition", "offset", "timestamp")


def records(
    spark: "SparkSession",
    bootstrap: str,
    spans: Sequence[Span],
    *,
    topics: Mapping[str, str],
    has_headers: bool = False,
) -> "DataFrame":
    """Return the records at exactly these offsets, of the topics with these ids."""
    starts, ends = _by_topic(spans, "start"), _by_topic(spans, "end")
    ids = {name: topics[name] for name in starts if name in topics}
    return (
        spark.read.format(FORMAT)
        .option("kafka.bootstrap.servers", bootstrap)
        .option("assign", json.dumps({topic: sorted(map(int, of)) for topic, of in starts.items()}))
        .option("startingOffsets", json.dumps(starts))
        .option("endingOffsets", json.dumps(ends))
        .option("topicIds", json.dumps(ids))
        .option("includeHeaders", str(has_headers).lower())
        .load()
    )


def no_records(spark: "SparkSession") -> "DataFrame":
    """Return a frame without records."""
    columns = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT"
    return spark.createDataFrame([], f"{columns}, timestamp TIMESTAMP, timestampType INT")


def found_columns(frame: "DataFrame", *, has_envelopes: bool | None = None) -> Columns:
    """Return the columns of the JSON objects of a batch, after reading all values.

    If all should have envelopes, or none, the others are ignored: they are bad records.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - an extra, and its usual name

    if has_envelopes is not None:
        carries = _carries_schema(F.col("value").cast("string"))
        frame = frame.where(carries if has_envelopes else ~carries)
    variant = F.expr("try_parse_json(cast(value AS string))")
    objects = frame.select(variant.alias("v")).where(
        F.expr(f"v IS NOT NULL AND schema_of_variant(v) LIKE '{OBJECTS}'")
    )
    (row,) = objects.select(F.expr("schema_of_variant_agg(v)")).collect()
    return parse(row[0]) if row[0] and row[0] != "VOID" else {}


def decoded(
    frame: "DataFrame", values: Values, ddl: str, *, has_envelopes: bool = False
) -> "DataFrame":
    """Return each record with its row, and whether it is a bad record."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415
    from pyspark.sql.types import IntegerType, StringType, StructType  # noqa: PLC0415

    text = F.col("value").cast("string")
    if values is not Values.JSON:
        is_text = values is Values.STRING
        made = F.struct((text if is_text else F.col("value")).alias("value"))
        # Spark would write any bytes as text, and others could not read the file.
        is_wrong = ~F.is_valid_utf8(text) if is_text else F.lit(False)
        is_wrong = F.col("value").isNotNull() & is_wrong
        return frame.withColumn(ROW, made).withColumn(WRONG, is_wrong)
    wanted = StructType.fromDDL(ddl)
    # Wrap the value in an object, since Spark ignores what follows a value.
    read = F.from_json(
        F.concat(F.lit(f'{{"{ROW}":'), text, F.lit(f',"{END}":1}}')),
        StructType().add(ROW, wanted).add(END, IntegerType()).add(WRONG, StringType()),
        {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": WRONG},
    )
    frame = frame.withColumn(READ, read)
    # Text that is no JSON becomes null, or is kept as wrong, depending on its form.
    is_none = (
        F.col(f"{READ}.{ROW}").isNull()
        | F.col(f"{READ}.{END}").isNull()
        | F.col(f"{READ}.{WRONG}").isNotNull()
    )
    if has_envelopes:
        is_none |= ~_carries_schema(text)
    elif not {SCHEMA, PAYLOAD} & {name.lower() for name in wanted.fieldNames()}:
        # An envelope matches any columns, all of which would be null.
        is_none |= _carries_schema(text)
    is_wrong = F.col("value").isNotNull() & is_none
    return frame.withColumn(ROW, F.col(f"{READ}.{ROW}")).withColumn(WRONG, is_wrong).drop(READ)


def _carries_schema(text: "Column") -> "Column":
    """Return a column: whether a value is one of Kafka's JsonConverter with its schema."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    # Search the text first: parsing each value again would cost as much as the rest.
    may_be = text.contains(f'"{SCHEMA}"') & text.contains(f'"{PAYLOAD}"')
    has_type = F.get_json_object(text, f"$.{SCHEMA}.type").isNotNull()
    has_payload = F.get_json_object(text, f"$.{PAYLOAD}").isNotNull()
    return F.when(may_be, has_type & has_payload).otherwise(F.lit(False))


def rows(frame: "DataFrame", layout: Layout, *, has_envelopes: bool = False) -> "DataFrame":
    """Return the columns to write: those of decoded records, or of the payload of envelopes."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    good = frame.where(~F.col(WRONG) & F.col("value").isNotNull())
    row, whole = good.schema[ROW].dataType, F.col(ROW)
    if has_envelopes:
        row, whole = row[PAYLOAD].dataType, whole.getField(PAYLOAD)
    inner = row.fieldNames()
    columns: list[Column] = [whole.getField(name).alias(name) for name in inner]
    if layout.has_metadata:
        columns += [
            F.col("topic").alias("_topic"),
            F.col("partition").alias(layout.partition_column),
            F.col("offset").alias("_offset"),
            F.col("timestamp").alias("_timestamp"),
        ]
    columns += [
        F.date_format("timestamp", pattern).alias(name) for name, pattern in layout.times.items()
    ]
    return good.select(*columns)


def view(frame: "DataFrame") -> "DataFrame":
    """Return decoded records as a query sees them."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    good = frame.where(~F.col(WRONG) & F.col("value").isNotNull())
    inner = good.schema[ROW].dataType.fieldNames()
    return good.select(
        *(F.col(ROW).getField(name).alias(name) for name in inner if name != WRONG),
        *(F.col(name).alias(f"_{name}") for name in OF_RECORDS),
    )


def wrong_bytes(frame: "DataFrame") -> int:
    """Return the total size of the records that are not rows."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    headers = F.aggregate(
        "headers",
        F.lit(0),
        lambda size, one: (
            size
            + F.octet_length(one.getField("key"))
            + F.coalesce(F.octet_length(one.getField("value")), F.lit(0))
        ),
    )
    parts = (F.octet_length("key"), F.octet_length("value"), headers)
    size = sum((F.coalesce(part, F.lit(0)) for part in parts), start=F.lit(0))
    sizes = frame.where(F.col(WRONG)).select(size.alias("size"))
    (row,) = sizes.select(F.sum(F.col("size").cast("bigint"))).collect()
    return int(row[0] or 0)


def counts_of() -> "list[Column]":
    """Return the aggregates over decoded records: all, bad ones, and the newest timestamp."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    return [
        F.count(F.lit(1)).alias("read"),
        F.count_if(F.col(WRONG)).alias("wrong"),
        F.count_if(F.col("value").isNull()).alias("null"),
        F.max(F.unix_millis("timestamp")).alias("newest"),
    ]


def wrong_records(frame: "DataFrame") -> Iterator[RawRecord]:
    """Yield the records that are not rows, one partition of the frame after the other."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    bad = frame.where(F.col(WRONG)).select(
        *("topic", "partition", "offset", "key", "value", "headers"),
        F.unix_millis("timestamp").alias("timestamp_ms"),
    )
    for row in bad.toLocalIterator():
        yield RawRecord(
            topic=row["topic"],
            partition=row["partition"],
            offset=row["offset"],
            key=_bytes(row["key"]),
            value=_bytes(row["value"]),
            timestamp_ms=row["timestamp_ms"],
            headers=tuple((one["key"], _bytes(one["value"])) for one in row["headers"] or ()),
        )


def _by_topic(spans: Sequence[Span], which: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for span in spans:
        at = found.setdefault(span.place.topic, {})
        at[str(span.place.partition)] = getattr(span, which)
    return found


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)
