"""Limits the size of batches after one ran out of time or memory: pure.

A batch that is not in the table yet may shrink, since nothing of it is visible. The limit is kept
with the offsets, and grows back as long as batches finish soon.
"""

from dataclasses import replace
from typing import Final

from connectors.plugins.spark.batches import Batch, State, shares
from connectors.sdk.errors import ConnectorError, RetriableError

# Each failed attempt costs a session or ten minutes, so the next one is much smaller: from the
# default of 500,000 to one record takes ten attempts.
SHRINK: Final = 4
# By an eighth with each batch: twelve batches until the former size is tried again.
GROWTH: Final = 8
# A batch that took longer may reach its deadline once it has grown.
SOON_S: Final = 120.0
# Attempts with one record, since an end may have had another reason.
MAX_ENDS: Final = 3
ENDED: Final = "the worker's process ended while Spark wrote the batch"
SPARED: Final = (
    "the home was stopped or lost its host while Spark wrote the batch: it is tried again with its"
    " {size} offsets"
)


class BatchTooLarge(RetriableError):
    """A batch ran out of time or memory: a smaller one may succeed."""

    def __init__(self, text: str) -> None:
        # The next attempt is smaller, so there is nothing to wait for.
        super().__init__(text, wait_s=1.0)


def limit(state: State, configured: int) -> int:
    """Return how many offsets the next batch may have."""
    return min(configured, state.most) if state.most else configured


def shrunk(state: State, why: str) -> tuple[State, str]:
    """Return the state with a smaller batch to begin, and a line to log.

    ConnectorError if the batch has only one offset, and was ended too often.
    """
    batch = state.batch
    assert batch is not None, "a batch was ended"
    assert batch.files is None, "a batch that is written is moved into the table as it is"
    if batch.size <= 1:
        return _again(state, batch, why)
    most = max(1, batch.size // SHRINK)
    counts = shares({span.place: span.end - span.start for span in batch.spans}, most)
    spans = tuple(
        replace(span, end=span.start + counts[span.place])
        for span in batch.spans
        if counts[span.place]
    )
    smaller = replace(batch, spans=spans, is_begun=False, spared=0)
    return replace(
        state, most=most, batch=smaller, ends=0
    ), f"{why}: it had {batch.size} offsets, and is tried again with {most}"


def _again(state: State, batch: Batch, why: str) -> tuple[State, str]:
    ends = state.ends + 1
    if ends >= MAX_ENDS:
        where = ", ".join(
            f"{span.place.topic}, partition {span.place.partition}, offset {span.start}"
            for span in batch.spans
        )
        raise ConnectorError(
            f"{why}: {ends} times with the one record at {where}; give Spark more memory"
            " (SAMSA_SPARK_MEMORY, as in 4g), or stop the connector"
            " and set its offsets behind that record"
        )
    again = replace(state, batch=replace(batch, is_begun=False), ends=ends)
    return again, f"{why}: it had one offset, and is tried again, time {ends + 1} of {MAX_ENDS}"


def grown(state: State, *, size: int, configured: int, took_s: float) -> State:
    """Return the state with a larger limit after a batch; 0 if only the config limits again."""
    if not state.most or size < state.most or took_s > SOON_S:
        return state
    most = state.most + max(1, state.most // GROWTH)
    return replace(state, most=0 if most >= configured else most)


def unbegun(state: State) -> State:
    """Return the state with its batch marked as not begun."""
    batch = state.batch
    return replace(state, batch=batch and replace(batch, is_begun=False))


def spared(state: State) -> tuple[State, str]:
    """Return the state with the batch unchanged, and a line to log."""
    batch = state.batch
    assert batch is not None, "a batch was ended"
    again = replace(batch, is_begun=False, spared=batch.spared + 1)
    return replace(state, batch=again), SPARED.format(size=batch.size)
