"""Compiles a topology to a Spark DataFrame: batch or streaming, like the frame of its records.

Watermarks come after all filters, so that Spark cannot move a filter past them: only rows that
reach a window close it, as in memory.
"""

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import functions

from spark_integration.streams.expressions import kind_of
from spark_integration.streams.fields import (
    ALWAYS,
    HAPPENED,
    RECORD_KEY,
    RECORD_TIME,
    WINDOW_END,
    WINDOW_START,
    Kind,
)
from spark_integration.streams.formats import VALUE
from spark_integration.streams.spark_columns import OFFSET, PARTITION, STEP, aggregate_of, column_of
from spark_integration.streams.spark_records import (
    IS_BAD,
    IS_EMPTY,
    KEY,
    Frame,
    outputs_of,
    parsed,
    rows_of,
)
from spark_integration.streams.topology import Grouping, Topology, Where
from spark_integration.streams.windows import Shape, Window

WINDOW: Final = "samsa_window"
# Columns that a row keeps through selects.
CARRIED: Final = (RECORD_KEY, RECORD_TIME, PARTITION, OFFSET, HAPPENED)


def result_frame(topology: Topology, records: Frame, *, observation: Any) -> Frame:
    """Return the result of a topology, as records with key and value.

    `records` has the columns of a source of records; `observation` is the name, or in batch the
    Observation, under which Spark reports how many were read, bad and empty.
    """
    frame = parsed(records, topology.source.format)
    frame = frame.observe(
        observation,
        functions.count(functions.lit(1)).alias("records"),
        functions.count_if(functions.col(IS_BAD)).alias("bad"),
        functions.count_if(functions.col(IS_EMPTY)).alias("empty"),
    )
    frame = rows_of(frame, topology.source)
    visible: Mapping[str, Kind] = {**ALWAYS, **dict(topology.source.format.columns)}
    for step in topology.steps:
        if isinstance(step, Where):
            frame = frame.where(column_of(step.condition, visible))
            continue
        computed = [column_of(term, visible).alias(name) for name, term in step.fields]
        frame = frame.select(*CARRIED, *computed)
        kinds = {name: kind_of(STEP, term, visible) for name, term in step.fields}
        visible = {**ALWAYS, **kinds}
    if topology.grouping is not None:
        frame = grouped(frame, topology.grouping, visible, grace_ms=topology.source.grace_ms)
    return outputs_of(frame, topology)


def bad_frame(topology: Topology, records: Frame) -> Frame:
    """Return bad records unchanged."""
    frame = parsed(records, topology.source.format)
    return frame.where(functions.col(IS_BAD)).select(KEY, VALUE)


def output_mode(topology: Topology) -> str:
    """Return the output mode: which rows of a streaming result are written after a batch."""
    is_changing = topology.grouping is not None and not topology.grouping.is_final
    return "update" if is_changing else "append"


def grouped(
    frame: Frame, grouping: Grouping, visible: Mapping[str, Kind], *, grace_ms: int
) -> Frame:
    keys = [group_column(name, kind) for name, kind in grouping.fields]
    if grouping.window is not None:
        frame = frame.withWatermark(HAPPENED, f"{grace_ms} milliseconds")
        keys.append(window_column(grouping.window).alias(WINDOW))
    told = [
        aggregate_of(aggregate, visible).alias(name) for name, aggregate, _ in grouping.aggregates
    ]
    frame = frame.groupBy(*keys).agg(*told)
    if grouping.window is None:
        return frame
    spans = {
        WINDOW_START: functions.col(WINDOW)["start"],
        WINDOW_END: functions.col(WINDOW)["end"],
    }
    return frame.withColumns(spans)


def group_column(name: str, kind: Kind) -> Any:
    """Return a field as in a key, with times in milliseconds."""
    column = functions.col(name)
    if kind is Kind.TIME:
        column = functions.timestamp_millis(functions.unix_millis(column))
    return column.alias(name)


def window_column(window: Window) -> Any:
    size = f"{window.size_ms} milliseconds"
    if window.shape is Shape.SESSION:
        return functions.session_window(HAPPENED, size)
    return functions.window(HAPPENED, size, f"{window.slide_ms} milliseconds")
