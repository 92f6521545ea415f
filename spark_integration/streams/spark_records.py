"""Converts records to rows of a DataFrame, and rows to records, exactly like `records`."""

from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import functions

from spark_integration.streams.fields import (
    HAPPENED,
    RECORD_KEY,
    RECORD_TIME,
    Kind,
)
from spark_integration.streams.formats import VALUE, Form, Format
from spark_integration.streams.spark_columns import (
    OFFSET,
    PARTITION,
    TYPES,
    Column,
    finite,
    text_of_bytes,
    time_of_text,
)
from spark_integration.streams.topology import Source, Topology

Frame = Any

# The columns of a source of records; others are ignored.
KEY: Final = "key"
TIMESTAMP: Final = "timestamp"
# Facts about a record before it becomes a row.
PARSED: Final = "samsa_parsed"
IS_BAD: Final = "samsa_is_bad"
IS_EMPTY: Final = "samsa_is_empty"
FOUND: Final = "samsa_found"
CORRUPT: Final = "samsa_corrupt"
# Texts are parsed as variants, which keep the JSON type: Spark would accept a number as a text.
READ_AS: Final = {
    Kind.TEXT: "variant",
    Kind.TIME: "variant",
    Kind.LONG: "bigint",
    Kind.DOUBLE: "double",
    Kind.BOOLEAN: "boolean",
}
OF_TEXT: Final = frozenset({Kind.TEXT, Kind.TIME})
JSON_OPTIONS: Final = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": CORRUPT,
    "allowNonNumericNumbers": "false",
    "allowSingleQuotes": "false",
}


def parsed(frame: Frame, form: Format) -> Frame:
    """Add the parsed value to each record, and whether it is bad or empty."""
    value = functions.col(VALUE)
    is_empty = functions.lit(False) if form.form is Form.BYTES else value.isNull()
    frame = frame.withColumn(IS_EMPTY, is_empty)
    if form.form is Form.BYTES:
        return frame.withColumns({FOUND: functions.struct(value), IS_BAD: functions.lit(False)})
    text = text_of_bytes(value)
    if form.form is Form.TEXT:
        found = functions.struct(text.alias(VALUE))
        return frame.withColumns({FOUND: found, IS_BAD: value.isNotNull() & text.isNull()})
    frame = frame.withColumn(PARSED, parse_object(text, form))
    record = functions.col(PARSED)["record"]
    fields = {name: field_of(record[name], kind) for name, kind in form.columns}
    found = functions.struct(*(field.alias(name) for name, field in fields.items()))
    frame = frame.withColumn(FOUND, found)
    is_bad = [
        functions.col(PARSED).isNull(),
        functions.col(PARSED)[CORRUPT].isNotNull(),
        functions.col(PARSED)["end"].isNull(),
        record.isNull(),
        *(is_lost(record[name], name, kind) for name, kind in form.columns),
    ]
    any_bad = functions.array_max(functions.array(*is_bad))
    return frame.withColumn(IS_BAD, value.isNotNull() & any_bad).drop(PARSED)


def parse_object(text: Column, form: Format) -> Column:
    """Parse a text within a wrapper object, since Spark ignores what follows a value."""
    fields = ", ".join(f"`{name}` {READ_AS[kind]}" for name, kind in form.columns)
    schema = f"struct<record: struct<{fields}>, end: int, {CORRUPT}: string>"
    wrapped = functions.concat(functions.lit('{"record":'), text, functions.lit(',"end":1}'))
    return functions.from_json(wrapped, schema, JSON_OPTIONS)


def field_of(found: Column, kind: Kind) -> Column:
    if kind in OF_TEXT:
        text = functions.try_variant_get(found, "$", "string")
        text = functions.when(functions.schema_of_variant(found) == "STRING", text)
        return text if kind is Kind.TEXT else time_of_text(text)
    return finite(found) if kind is Kind.DOUBLE else found


def is_lost(found: Column, name: str, kind: Kind) -> Column:
    """Return whether a field had a value of another kind."""
    was_there = found.isNotNull()
    if kind in OF_TEXT:
        was_there = was_there & (functions.schema_of_variant(found) != "VOID")
    return was_there & functions.col(FOUND)[name].isNull()


def rows_of(frame: Frame, source: Source) -> Frame:
    """Return the rows of parsed records that are neither bad nor empty."""
    happened = functions.col(FOUND)[source.time] if source.time else functions.col(TIMESTAMP)
    return frame.where(~functions.col(IS_BAD) & ~functions.col(IS_EMPTY)).select(
        functions.col(KEY).alias(RECORD_KEY),
        functions.col(TIMESTAMP).alias(RECORD_TIME),
        functions.col("partition").alias(PARTITION),
        functions.col("offset").alias(OFFSET),
        happened.alias(HAPPENED),
        *(functions.col(FOUND)[name].alias(name) for name, _ in source.format.columns),
    )


def outputs_of(frame: Frame, topology: Topology) -> Frame:
    """Return the rows of a topology as records with key and value, both bytes."""
    if topology.grouping is None:
        key = functions.col(RECORD_KEY)
    elif topology.key_is_text:
        key = functions.col(topology.columns[0][0])
    else:
        key = object_of(topology.grouping.key_columns)
    value = functions.col(VALUE) if topology.is_raw else object_of(topology.columns)
    return frame.select(key.cast(BINARY).alias(KEY), value.cast(BINARY).alias(VALUE))


def object_of(columns: Sequence[tuple[str, Kind]]) -> Column:
    """Return a JSON object with all fields, including those without a value."""
    fields = [told(name, kind).alias(name) for name, kind in columns]
    return functions.to_json(functions.struct(*fields), {"ignoreNullFields": "false"})


def told(name: str, kind: Kind) -> Column:
    column = functions.col(name)
    return functions.unix_millis(column) if kind is Kind.TIME else column


BINARY: Final = TYPES[Kind.BYTES]
