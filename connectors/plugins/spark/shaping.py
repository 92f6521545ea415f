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
    """The number of records read, and of those without a value, in a batch."""

    read: int
    skipped: int
    # The number of rows; None if it is not known beforehand.
    rows: int | None = None
    # The timestamp of the newest record; None if not known.
    newest_ms: int | None = None


class Shaped(Protocol):
    """The rows of one batch."""

    @property
    def frame(self) -> "DataFrame": ...

    @property
    def columns(self) -> Columns:
        """Return the columns found in JSON objects so far; empty if the config names them."""

    def finish(self) -> Counts:
        """Count the records, and refuse those that are not rows; call once, after the write."""


class Shaping(Protocol):
    """Makes rows from records, batch by batch."""

    @property
    def layout(self) -> Layout: ...

    def shape(self, spans: Sequence[Span], state: State) -> Shaped: ...
