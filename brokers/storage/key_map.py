"""Maps each key to the last offset at which it was written: what compaction keeps.

Stores digests, not keys, so that a key of a megabyte costs no more than one of ten bytes. Two keys
with one digest would cost a record; with 128 bits of BLAKE2b such a pair cannot be found.
"""

from array import array
from bisect import bisect_left
from hashlib import blake2b
from typing import Final

# About 75 MB. Beyond it a cleaning ends early, and the next one continues there.
MAX_KEYS: Final = 500_000
_DIGEST_BYTES: Final = 16


class KeyMap:
    """The last offset of each key, noted in the order of the log."""

    __slots__ = ("_max_keys", "_offsets")

    def __init__(self, max_keys: int = MAX_KEYS) -> None:
        self._max_keys = max_keys
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def note(self, key: bytes, offset: int) -> bool:
        """Record a written key; return False if it is new and there is no room for it."""
        digest = blake2b(key, digest_size=_DIGEST_BYTES).digest()
        if len(self._offsets) >= self._max_keys and digest not in self._offsets:
            return False
        self._offsets[digest] = offset
        return True

    def is_last(self, key: bytes, offset: int) -> bool:
        """Tell whether no later offset of this key was noted."""
        digest = blake2b(key, digest_size=_DIGEST_BYTES).digest()
        return self._offsets.get(digest, offset) <= offset

    def survivors(self) -> "Survivors":
        """Return the last offsets of all keys."""
        return Survivors(array("q", sorted(self._offsets.values())))


class Survivors:
    """Offsets that no later record has replaced; batches without any need not be decoded."""

    __slots__ = ("_offsets",)

    def __init__(self, offsets: "array[int]") -> None:
        self._offsets = offsets

    def are_within(self, first: int, last: int) -> bool:
        """Tell whether there is one between two offsets, both included."""
        at = bisect_left(self._offsets, first)
        return at < len(self._offsets) and self._offsets[at] <= last
