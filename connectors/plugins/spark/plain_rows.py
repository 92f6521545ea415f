"""Makes the rows of the sink: one from each record of any topic."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from connectors.plugins.spark import bad_records, engine, frames, keys
from connectors.plugins.spark.batches import Span, State
from connectors.plugins.spark.keys import Values
from connectors.plugins.spark.schemas import (
    PAYLOAD,
    SCHEMA,
    Columns,
    columns_ddl,
    holds_envelopes,
    merged,
)
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
        has_envelopes = holds_envelopes(columns)
        seen = Observation()
        decoded = frames.decoded(source, self._values, ddl, has_envelopes=has_envelopes)
        decoded = decoded.observe(seen, *frames.counts_of())
        return PlainBatch(
            context=self._context,
            spans=spans,
            frame=frames.rows(decoded, self.layout, has_envelopes=has_envelopes),
            columns=columns,
            seen=seen,
            kind=bad_records.Kind(
                values=self._values, ddl=ddl, topics=state.topics, has_envelopes=has_envelopes
            ),
        )

    def _columns(self, source: "DataFrame", state: State) -> tuple[Columns, str]:
        """Return the columns of JSON values: those of the config, or the kept ones and new ones."""
        if self._schema or self._values is not Values.JSON:
            return state.columns, self._schema
        columns = merged(state.columns, self._found(source, state))
        if not columns:
            # A column that is always null, since a table needs at least one.
            return columns, "value STRING"
        return columns, columns_ddl(columns)

    def _found(self, source: "DataFrame", state: State) -> Columns:
        """Return the columns of a batch, for the kind of values that the table began with."""
        if holds_envelopes(state.columns):
            found = frames.found_columns(source, has_envelopes=True)
            # Other fields of an envelope are not part of a row.
            return {name: found[name] for name in (SCHEMA, PAYLOAD) if name in found}
        if state.columns:
            return frames.found_columns(source, has_envelopes=False)
        found = frames.found_columns(source)
        if holds_envelopes(found) or not {SCHEMA, PAYLOAD} <= found.keys():
            return found
        # Values of both kinds: count those without an envelope as rows.
        return frames.found_columns(source, has_envelopes=False)


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
