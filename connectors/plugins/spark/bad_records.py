"""Sends the records of a batch that are not rows to the dead letters, in bounded parts.

Spark returns each of its partitions as a whole, so a batch with many bad records is divided by
offsets until each part is small.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from connectors.plugins.spark import engine, frames
from connectors.plugins.spark.batches import Span
from connectors.plugins.spark.keys import Values
from connectors.sdk.connector import JobContext
from connectors.sdk.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

NOT_JSON: Final = (
    "its value is not a JSON object whose fields fit the columns ({}), or it carries its schema: "
    "then have it written with value.converter.schemas.enable=false"
)
NO_ENVELOPE: Final = (
    "its value does not carry its schema, as those that the table began with do: have all written"
    " with one value of value.converter.schemas.enable"
)
NOT_TEXT: Final = "its value is not UTF-8: set value.format to binary"
# Limits the list of columns in a message.
MAX_SHOWN_CHARS: Final = 300
# Limits the bad records at once: Spark holds them about three times, in a heap of 1 GiB by default.
MAX_BYTES: Final = 64 * 1024 * 1024
# How many parts to look at for each that is expected to be needed, since bad records come in
# clusters, and how many at most: each look is a job of Spark.
SPARE: Final = 2
MAX_PARTS: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The form that the records should have had."""

    values: Values
    ddl: str
    # Maps the topics to their ids.
    topics: "Mapping[str, str]"
    # Whether they should have carried their schema.
    has_envelopes: bool = False


def refuse(context: JobContext, spans: Sequence[Span], kind: Kind) -> None:
    """Send the records that are not rows to the dead letters, or end the task."""

    def frame(part: Sequence[Span]) -> "DataFrame":
        source = frames.records(
            engine.spark(), context.bootstrap, part, topics=kind.topics, has_headers=True
        )
        return frames.decoded(source, kind.values, kind.ddl, has_envelopes=kind.has_envelopes)

    said = NOT_TEXT
    if kind.values is Values.JSON:
        said = NO_ENVELOPE if kind.has_envelopes else NOT_JSON.format(kind.ddl[:MAX_SHOWN_CHARS])
    error = DataError(said)
    for part in parts(tuple(spans), lambda some: frames.wrong_bytes(frame(some))):
        for record in frames.wrong_records(frame(part)):
            context.refuse(record, error)
        # Bounds the records that wait to be sent, too.
        context.settle()


def parts(
    spans: tuple[Span, ...], wrong_bytes: Callable[[tuple[Span, ...]], int]
) -> Iterator[tuple[Span, ...]]:
    """Yield parts of a batch with few bytes of bad records each, and no part without any.

    A part of one offset may be as large as its record.
    """
    size = wrong_bytes(spans)
    offsets = sum(span.end - span.start for span in spans)
    if size <= MAX_BYTES or offsets <= 1:
        if size:
            yield spans
        return
    count = min(MAX_PARTS, offsets, SPARE * -(-size // MAX_BYTES))
    for part in divided(spans, count):
        yield from parts(part, wrong_bytes)


def divided(spans: tuple[Span, ...], count: int) -> Iterator[tuple[Span, ...]]:
    """Divide spans into `count` parts with about the same number of offsets."""
    total = sum(span.end - span.start for span in spans)
    assert 1 < count <= total, "each part has an offset, and is smaller than the whole"
    left, number = list(reversed(spans)), 0
    for number in range(count):
        wanted = total * (number + 1) // count - total * number // count
        part: list[Span] = []
        while wanted:
            span = left.pop()
            taken = min(wanted, span.end - span.start)
            part.append(replace(span, end=span.start + taken))
            if span.start + taken < span.end:
                left.append(replace(span, start=span.start + taken))
            wanted -= taken
        yield tuple(part)
