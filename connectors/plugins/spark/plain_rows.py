"""Rows as the sink has them: one of each record, whatever its topic."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from connectors.plugins.spark import engine, frames, keys
from connectors.plugins.spark.batches import Span, State
from connectors.plugins.spark.keys import Values
from connectors.plugins.spark.schemas import Columns, columns_ddl, merged
from connectors.plugins.spark.shaping import Counts
from connectors.sdk.connector import JobContext, Parsed
from connectors.sdk.errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

NOT_JSON: Final = "its value is no JSON object whose fields fit the columns of the table ({})"
NOT_TEXT: Final = "its value is no UTF-8: set value.format to binary"
# Of the columns, in a message.
MAX_SHOWN_CHARS: Final = 300


class PlainRows:
    def __init__(self, context: JobContext, parsed: Parsed) -> None:
        self._context = context
        self.layout = keys.layout_of(parsed)
        self._values = Values(parsed[keys.VALUES])
        self._schema: str = parsed[keys.SCHEMA]

    def shape(self, spans: Sequence[Span], state: State) -> "PlainBatch":
        from pyspark.sql import Observation  # noqa: PLC0415 - an extra
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name

        source = frames.records(engine.spark(), self._context.bootstrap, spans)
        columns, ddl = self._columns(source, state)
        seen = Observation()
        decoded = frames.decoded(source, self._values, ddl).observe(
            seen,
            F.count(F.lit(1)).alias("read"),
            F.count_if(F.col(frames.WRONG)).alias("wrong"),
            F.count_if(F.col("value").isNull()).alias("null"),
        )
        return PlainBatch(
            context=self._context,
            spans=spans,
            frame=frames.rows(decoded, self.layout),
            columns=columns,
            seen=seen,
            values=self._values,
            ddl=ddl,
        )

    def _columns(self, source: "DataFrame", state: State) -> tuple[Columns, str]:
        """Return the columns of JSON values: given, or those that there were and those found."""
        if self._schema or self._values is not Values.JSON:
            return state.columns, self._schema
        columns = merged(state.columns, frames.found_columns(source))
        if not columns:
            # A column that is always null; a table has at least one.
            return columns, "value STRING"
        return columns, columns_ddl(columns)


class PlainBatch:
    def __init__(
        self,
        *,
        context: JobContext,
        spans: Sequence[Span],
        frame: "DataFrame",
        columns: Columns,
        seen: "Observation",
        values: Values,
        ddl: str,
    ) -> None:
        self._context = context
        self._spans = spans
        self.frame = frame
        self.columns = columns
        self._seen = seen
        self._values = values
        self._ddl = ddl

    def finish(self) -> Counts:
        counts = self._seen.get
        if counts["wrong"]:
            refuse(self._context, self._spans, self._values, self._ddl)
        read, null = counts["read"], counts["null"]
        return Counts(read=read, skipped=null, rows=read - null - counts["wrong"])


def refuse(context: JobContext, spans: Sequence[Span], values: Values, ddl: str) -> None:
    """Give the records that are no rows to the dead letters, or end the task."""
    source = frames.records(engine.spark(), context.bootstrap, spans, has_headers=True)
    said = NOT_JSON.format(ddl[:MAX_SHOWN_CHARS]) if values is Values.JSON else NOT_TEXT
    error = DataError(said)
    for record in frames.wrong_records(frames.decoded(source, values, ddl)):
        context.refuse(record, error)
    context.settle()
