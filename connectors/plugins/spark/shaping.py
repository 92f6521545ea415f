"""Turns a batch of records into rows, and counts records that are not rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from connectors.plugins.spark.batches import Span, State
from connectors.plugins.spark.keys import Layout
from connectors.plugins.spark.schemas import Columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Records of a batch: all that were read, and those without a value."""

    read: int
    skipped: int
    # How many rows they make; None where that is not known beforehand.
    rows: int | None = None
    # When the newest of the records was written; None where that is not known.
    newest_ms: int | None = None


class Shaped(Protocol):
    """The rows of one batch."""

    @property
    def frame(self) -> "DataFrame": ...

    @property
    def columns(self) -> Columns:
        """Return the columns that JSON objects had up to now; nothing where they are given."""

    def finish(self) -> Counts:
        """Count, and refuse the records that are no rows; called once, behind the write."""


class Shaping(Protocol):
    """Makes rows of records, batch by batch."""

    @property
    def layout(self) -> Layout: ...

    def shape(self, spans: Sequence[Span], state: State) -> Shaped: ...
