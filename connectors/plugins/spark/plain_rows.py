"""Rows as the sink has them: one of each record, whatever its topic."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from connectors.plugins.spark import bad_records, engine, frames, keys
from connectors.plugins.spark.batches import Span, State
from connectors.plugins.spark.keys import Values
from connectors.plugins.spark.schemas import Columns, columns_ddl, holds_envelopes, merged
from connectors.plugins.spark.shaping import Counts
from connectors.sdk.connector import JobContext, Parsed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation


class PlainRows:
    def __init__(self, context: JobContext, parsed: Parsed) -> None:
        self._context = context
        self.layout = keys.layout_of(parsed)
        self._values = Values(parsed[keys.VALUES])
        self._schema: str = parsed[keys.SCHEMA]

    def shape(self, spans: Sequence[Span], state: State) -> "PlainBatch":
        from pyspark.sql import Observation  # noqa: PLC0415 - an extra

        source = frames.records(engine.spark(), self._context.bootstrap, spans, topics=state.topics)
        columns, ddl = self._columns(source, state)
        seen = Observation()
        decoded = frames.decoded(source, self._values, ddl).observe(seen, *frames.counts_of())
        return PlainBatch(
            context=self._context,
            spans=spans,
            frame=frames.rows(decoded, self.layout, has_envelopes=holds_envelopes(columns)),
            columns=columns,
            seen=seen,
            kind=bad_records.Kind(values=self._values, ddl=ddl, topics=state.topics),
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
        kind: bad_records.Kind,
    ) -> None:
        self._context = context
        self._spans = spans
        self.frame = frame
        self.columns = columns
        self._seen = seen
        self._kind = kind

    def finish(self) -> Counts:
        counts = self._seen.get
        if counts["wrong"]:
            bad_records.refuse(self._context, self._spans, self._kind)
        read, null = counts["read"], counts["null"]
        return Counts(
            read=read,
            skipped=null,
            rows=read - null - counts["wrong"],
            newest_ms=counts["newest"],
        )
