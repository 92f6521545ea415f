"""Converts decoded records to Arrow batches with the schema of Spark's own Kafka source.

Pure. Spark compares types exactly: times are microseconds in UTC, and no column is a dictionary.
"""

from typing import Final

import numpy
import pyarrow

from spark_integration.datasource.decode import HEADERS, Columns

# In ms: the last time that 64 bits of microseconds hold.
LAST_TIME: Final = (2**63 - 1) // 1000
FIELDS: Final = (
    ("key", "binary", pyarrow.binary()),
    ("value", "binary", pyarrow.binary()),
    ("topic", "string", pyarrow.string()),
    ("partition", "int", pyarrow.int32()),
    ("offset", "bigint", pyarrow.int64()),
    ("timestamp", "timestamp", pyarrow.timestamp("us", tz="UTC")),
    ("timestampType", "int", pyarrow.int32()),
)
WITH_HEADERS: Final = (*FIELDS, ("headers", "array<struct<key:string,value:binary>>", HEADERS))


def spark_schema(*, has_headers: bool) -> str:
    """Return the schema as Spark's DDL string."""
    fields = WITH_HEADERS if has_headers else FIELDS
    return ", ".join(f"{name} {kind}" for name, kind, _ in fields)


def is_own_schema(simple_text: str, *, has_headers: bool) -> bool:
    """Return whether a schema of Spark is that of this source."""
    fields = WITH_HEADERS if has_headers else FIELDS
    return simple_text == f"struct<{','.join(f'{name}:{kind}' for name, kind, _ in fields)}>"


def arrow_schema(*, has_headers: bool) -> pyarrow.Schema:
    fields = WITH_HEADERS if has_headers else FIELDS
    return pyarrow.schema([(name, kind) for name, _, kind in fields])


def arrow_batch(columns: Columns, *, topic: str, partition: int) -> pyarrow.RecordBatch:
    count = len(columns.offsets)
    # Producers may send any number as a timestamp.
    microseconds = numpy.clip(columns.timestamps, -LAST_TIME, LAST_TIME) * 1000
    arrays = [
        columns.keys,
        columns.values,
        pyarrow.repeat(pyarrow.scalar(topic, pyarrow.string()), count),
        pyarrow.repeat(pyarrow.scalar(partition, pyarrow.int32()), count),
        pyarrow.array(columns.offsets),
        pyarrow.array(microseconds).cast(pyarrow.timestamp("us", tz="UTC")),
        pyarrow.array(columns.timestamp_types.astype(numpy.int32)),
    ]
    has_headers = columns.headers is not None
    if has_headers:
        arrays.append(columns.headers)
    return pyarrow.RecordBatch.from_arrays(arrays, schema=arrow_schema(has_headers=has_headers))
