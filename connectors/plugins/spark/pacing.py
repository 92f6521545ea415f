"""When the next batch is begun: at once where it is full, else a while behind the last one."""

import time
from collections.abc import MutableMapping
from typing import Any, Final

from connectors.plugins.spark import keys
from connectors.plugins.spark.batches import Batch
from connectors.sdk.connector import Parsed

# Among what is kept between slices: when the last batch was done.
LAST: Final = "last batch"


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

    def done(self) -> None:
        self._kept[LAST] = time.monotonic()
