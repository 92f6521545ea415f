"""Rebuilds the index files of a segment in steps, beside the wrong ones.

Reads headers only. A step is short enough for the event loop; housekeeping repeats it until the
indexes are complete. They are written to files that end in `.tmp` and replace the old ones at the
end only, so a rebuild that fails loses nothing.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.storage.errors import StorageError
from brokers.storage.headers import Header
from brokers.storage.log_config import LogConfig

if TYPE_CHECKING:
    from brokers.storage.segment import Segment

# The input of one step: 3 ms for batches of 170 bytes, 8 ms for the smallest ones.
STEP_BYTES: Final = 512 * 1024
# In one log dir at a time. Each holds an open file and up to 64 KiB; a start that finds thousands
# of wrong indexes rebuilds the others on request.
MAX_REBUILDS: Final = 16


class IndexUnfinished(KafkaError):
    """The index of a lookup is being rebuilt; the client retries in a moment."""

    def __init__(self, path: str) -> None:
        name = os.path.basename(path)
        message = f"the indexes of {name} are wrong and are being made again, ask again later"
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)


class IndexRebuild:
    """One rebuild of one segment; `fresh` collects its entries until adopted or dropped."""

    __slots__ = ("_config", "_fresh", "_position", "_segment", "next_offset")

    def __init__(self, segment: "Segment", fresh: "Segment", config: LogConfig) -> None:
        self._segment = segment
        self._fresh = fresh
        self._config = config
        self._position = 0
        self.next_offset = segment.base_offset  # behind the last processed batch
        fresh.forget_indexes()

    def step(self) -> bool:
        """Process some batches; return True once the new indexes are in place.

        After an OSError, the next call continues at the same position.
        """
        return self._take(self._segment.headers, STEP_BYTES)

    def run(self, headers: Callable[[int], Iterator[Header]]) -> None:
        """Process all batches, for callers that may wait; errors of `headers` drop the rebuild."""
        try:
            is_done = self._take(headers, self._segment.size + 1)
        except (StorageError, KafkaError, OSError):
            self.drop()
            raise
        assert is_done, f"{self._segment.file.path} has grown meanwhile"

    def drop(self) -> None:
        """Give up and keep the old indexes."""
        self._fresh.release()
        for file in self._fresh.index_files:
            with suppress(OSError):
                self._segment.handles.files.unlink(file.path)

    def _take(self, headers: Callable[[int], Iterator[Header]], most: int) -> bool:
        begin = self._position
        for header in headers(begin):
            self.next_offset = self._fresh.take_header(header, self._config)
            self._position = header.end
            if header.end - begin >= most:
                return False
        self._segment.adopt_indexes(self._fresh)
        return True
