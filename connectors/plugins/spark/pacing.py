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

    def is_early(self, batch: Batch) -> bool:
        """Tell whether a batch that is not full yet may wait for more records."""
        if sum(span.end - span.start for span in batch.spans) >= self.most:
            return False
        last: float | None = self._kept.get(LAST)
        return last is not None and time.monotonic() - last < self._wait_s

    def done(self) -> None:
        self._kept[LAST] = time.monotonic()
