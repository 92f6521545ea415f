"""Decides when the next batch begins, and measures how long each takes.

A full batch begins at once; others wait until some time after the last batch.
"""

import time
from collections.abc import MutableMapping
from typing import Any, Final

from connectors.plugins.spark import keys
from connectors.plugins.spark.batches import Batch
from connectors.sdk.connector import Parsed
from connectors.sdk.records import JobBatch

# A key of the values kept between slices: when the last batch was done.
LAST: Final = "last batch"


class Watch:
    """Measures the phases of one batch, from its creation on."""

    def __init__(self, last_s: float | None) -> None:
        self._began_s = time.monotonic()
        self._waited_s = None if last_s is None else self._began_s - last_s
        self._read_s = 0.0

    def has_read(self) -> None:
        """Note that the records are read, and that only writing rows is left."""
        self._read_s = time.monotonic() - self._began_s

    def ended(self, *, records: int, rows: int, newest_ms: int | None) -> JobBatch:
        took_s = time.monotonic() - self._began_s
        return JobBatch(
            records=records,
            rows=rows,
            read_s=round(self._read_s, 3),
            write_s=round(took_s - self._read_s, 3),
            waited_s=None if self._waited_s is None else round(self._waited_s, 3),
            newest_ms=newest_ms,
            ended_ms=int(1000 * time.time()),
        )


class Pacing:
    def __init__(self, kept: MutableMapping[str, Any], parsed: Parsed) -> None:
        self._kept = kept
        self.most: int = parsed[keys.BATCH_ROWS]
        self._wait_s: float = parsed[keys.BATCH_WAIT] / 1000
        self._began: float | None = None

    def is_early(self, batch: Batch, *, most: int) -> bool:
        """Return whether a batch that is not full yet may wait for more records."""
        if batch.size >= most:
            return False
        last: float | None = self._kept.get(LAST)
        return last is not None and time.monotonic() - last < self._wait_s

    def begin(self) -> None:
        self._began = time.monotonic()

    def took_s(self) -> float:
        """Return how long the latest batch took; 0 if another process began it."""
        return 0.0 if self._began is None else time.monotonic() - self._began

    def watch(self) -> Watch:
        """Return a watch for the batch that begins now."""
        return Watch(self._kept.get(LAST))

    def done(self) -> None:
        self._kept[LAST] = time.monotonic()
