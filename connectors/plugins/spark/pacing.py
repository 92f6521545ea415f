"""When the next batch is begun, and how long one takes.

One that is full is begun at once, another one a while behind the last.
"""

import time
from collections.abc import MutableMapping
from typing import Any, Final

from connectors.plugins.spark import keys
from connectors.plugins.spark.batches import Batch
from connectors.sdk.connector import Parsed
from connectors.sdk.records import JobBatch

# Among what is kept between slices: when the last batch was done.
LAST: Final = "last batch"


class Watch:
    """What one batch takes its time for, from when this is made."""

    def __init__(self, last_s: float | None) -> None:
        self._began_s = time.monotonic()
        self._waited_s = None if last_s is None else self._began_s - last_s
        self._read_s = 0.0

    def has_read(self) -> None:
        """Note that the records are looked through, and what is left is to write rows."""
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
        """Tell whether a batch that is not full yet may wait for more records."""
        if batch.size >= most:
            return False
        last: float | None = self._kept.get(LAST)
        return last is not None and time.monotonic() - last < self._wait_s

    def begin(self) -> None:
        self._began = time.monotonic()

    def took_s(self) -> float:
        """Return how long the batch took that was begun last; 0 where another process began it."""
        return 0.0 if self._began is None else time.monotonic() - self._began

    def watch(self) -> Watch:
        """Return a watch for the batch that begins now."""
        return Watch(self._kept.get(LAST))

    def done(self) -> None:
        self._kept[LAST] = time.monotonic()
