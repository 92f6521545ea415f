"""Maps leader epochs to their start offsets, so that replicas find where their logs diverge.

A table of two columns, both strictly increasing, kept in `leader-epoch-checkpoint`. Offsets below
the first entry belong to no known epoch. The table can be derived from batch headers, so a damaged
file is rebuilt by the log's recovery.
"""

from bisect import bisect_left, bisect_right

from brokers.storage.checkpoints import (
    MAX_INT32,
    MAX_INT64,
    decode_lines,
    decode_number,
    encode_lines,
)
from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import Files, read_file, replace_file

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochCache:
    """The epochs of one partition, oldest first. Not thread-safe; belongs to its log.

    `latest` is the newest epoch (-1 in an empty cache), a plain attribute because every append
    compares with it. Changes stay in memory until the log calls `save`.
    """

    __slots__ = ("_epochs", "_starts", "is_dirty", "latest")

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.latest = UNDEFINED_EPOCH
        self.is_dirty = False

    def entries(self) -> list[tuple[int, int]]:
        """Return all (epoch, start offset), oldest first."""
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def earliest(self) -> tuple[int, int] | None:
        """The oldest (epoch, start offset) known."""
        return (self._epochs[0], self._starts[0]) if self._epochs else None

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Record that `epoch` begins at `start_offset`; return True if that changed the cache.

        Entries that contradict it (same or later epoch, same or later offset) are dropped: the
        newer entry comes from a later leader.
        """
        assert 0 <= epoch <= MAX_INT32, f"epoch {epoch} cannot be assigned"
        assert 0 <= start_offset <= MAX_INT64, f"offset {start_offset} cannot begin an epoch"
        if epoch == self.latest and start_offset >= self._starts[-1]:
            return False
        keep = min(bisect_left(self._epochs, epoch), bisect_left(self._starts, start_offset))
        self._keep_first(keep)
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self.latest = epoch
        self.is_dirty = True
        return True

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        """Return the greatest known epoch up to `epoch`, and its end offset (KIP-101, KIP-279).

        (-1, -1) if that is undefined: the epoch is unknown here or newer than all. An epoch older
        than all known ones ended where the oldest began.
        """
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest:
            return epoch, log_end
        after = bisect_right(self._epochs, epoch)
        if after == len(self._epochs):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        found = self._epochs[after - 1] if after > 0 else epoch
        return found, self._starts[after]

    def epoch_for_offset(self, offset: int) -> int | None:
        """Return the epoch in which `offset` was written; None below the first entry."""
        after = bisect_right(self._starts, offset)
        return self._epochs[after - 1] if after > 0 else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Forget epochs that began at or after `end_offset`, the new end of the log."""
        self._keep_first(bisect_left(self._starts, end_offset))

    def truncate_from_start(self, start_offset: int) -> None:
        """Forget epochs that ended at or before `start_offset`, the new start of the log.

        The epoch of `start_offset` stays, and now begins there.
        """
        passed = bisect_right(self._starts, start_offset)
        if passed == 0 or (passed == 1 and self._starts[0] == start_offset):
            return
        del self._epochs[: passed - 1]
        del self._starts[: passed - 1]
        self._starts[0] = start_offset
        self.is_dirty = True

    def clear(self) -> None:
        """Forget everything: the log restarts at another offset."""
        self._keep_first(0)

    def save(self, files: Files, path: str) -> None:
        """Replace the checkpoint file; durable on return."""
        lines = (f"{epoch} {start}" for epoch, start in self.entries())
        replace_file(files, path, encode_lines(lines))
        self.is_dirty = False

    @classmethod
    def load(cls, files: Files, path: str) -> "EpochCache":
        """Load the saved cache; empty if there is no file, StorageCorrupt if it is damaged."""
        cache = cls()
        try:
            data = read_file(files, path)
        except FileNotFoundError:
            return cache
        for number, line in enumerate(decode_lines(data, path)):
            epoch, start = _decode_entry(line, number, path)
            if cache._epochs and (epoch <= cache._epochs[-1] or start <= cache._starts[-1]):
                reason = f"entry {number} ({line!r}) does not lie behind the one before"
                raise StorageCorrupt(path, 0, reason)
            cache.assign(epoch, start)
        cache.is_dirty = False
        return cache

    def _keep_first(self, count: int) -> None:
        if count < len(self._epochs):
            del self._epochs[count:]
            del self._starts[count:]
            self.latest = self._epochs[-1] if count else UNDEFINED_EPOCH
            self.is_dirty = True


def _decode_entry(line: str, number: int, path: str) -> tuple[int, int]:
    parts = line.split(" ")
    epoch = decode_number(parts[0], MAX_INT32)
    start = decode_number(parts[1], MAX_INT64) if len(parts) == 2 else None
    if epoch is None or start is None:
        raise StorageCorrupt(path, 0, f"entry {number} is {line[:80]!r}")
    return epoch, start
