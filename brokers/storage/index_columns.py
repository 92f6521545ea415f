"""Encodes and decodes the entries of an index file, which are pairs of big-endian numbers.

Pure. In memory the entries are two native arrays, so that C bisect can search either; both rise.
"""

import sys
from array import array
from dataclasses import dataclass
from typing import Final, TypeAlias

# The keys and the values of some entries.
Columns: TypeAlias = "tuple[array[int], array[int]]"
KEYS: Final = 0
VALUES: Final = 1

# Type codes of arrays.
UINT32: Final = "I"
INT64: Final = "q"

_WORD_BYTES: Final = 4
_IS_SWAPPED: Final = sys.byteorder == "little"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Entries whose keys have this type; the values are of type `UINT32`, and come last."""

    key: str
    entry_size: int

    def encode(self, columns: Columns) -> "array[int]":
        """Return the content of a file."""
        keys, values = columns[KEYS][:], columns[VALUES][:]
        if _IS_SWAPPED:
            keys.byteswap()
            values.byteswap()
        key_words = self._key_words
        stride, parts = key_words + 1, array(UINT32, keys.tobytes())
        words = array(UINT32, bytes(self.entry_size * len(keys)))
        for place in range(key_words):
            words[place::stride] = parts[place::key_words]
        words[key_words::stride] = values
        return words

    def decode(self, data: bytes) -> Columns:
        """Return the entries of a file; `data` has no part of another one."""
        words, key_words = array(UINT32, data), self._key_words
        values = words[key_words :: key_words + 1]
        del words[key_words :: key_words + 1]
        keys = array(self.key, words.tobytes())
        if _IS_SWAPPED:
            keys.byteswap()
            values.byteswap()
        return keys, values

    @property
    def _key_words(self) -> int:
        return self.entry_size // _WORD_BYTES - 1
