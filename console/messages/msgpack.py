"""Converts MessagePack to the text of a JSON document, with exact numbers.

Pure and bounded: bytes are untrusted input, and every length is checked against the bytes left. A
value that JSON cannot express becomes an object with one field that starts with `$`.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from struct import Struct
from typing import Final

MAX_DEPTH: Final = 32
# Values of one document, which take some milliseconds.
MAX_VALUES: Final = 20_000
CONSTANTS: Final[Mapping[int, str]] = {0xC0: "null", 0xC2: "false", 0xC3: "true"}
NUMBERS: Final[Mapping[int, Struct]] = {
    0xCA: Struct(">f"),
    0xCB: Struct(">d"),
    0xCC: Struct(">B"),
    0xCD: Struct(">H"),
    0xCE: Struct(">I"),
    0xCF: Struct(">Q"),
    0xD0: Struct(">b"),
    0xD1: Struct(">h"),
    0xD2: Struct(">i"),
    0xD3: Struct(">q"),
}
# First byte -> bytes of the length that follows.
STRINGS: Final[Mapping[int, int]] = {0xD9: 1, 0xDA: 2, 0xDB: 4}
BINARIES: Final[Mapping[int, int]] = {0xC4: 1, 0xC5: 2, 0xC6: 4}
ARRAYS: Final[Mapping[int, int]] = {0xDC: 2, 0xDD: 4}
MAPS: Final[Mapping[int, int]] = {0xDE: 2, 0xDF: 4}
EXTENSIONS: Final[Mapping[int, int]] = {0xC7: 1, 0xC8: 2, 0xC9: 4}
FIXED_EXTENSIONS: Final[Mapping[int, int]] = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}


class NotMsgpack(ValueError):
    """Invalid input; the text says what was wrong, and where."""


def text_of(data: bytes) -> str:
    """Return the single value that fills the bytes."""
    reader = _Reader(data)
    text = reader.value(1)
    if reader.position != len(data):
        raise NotMsgpack(f"{len(data) - reader.position} bytes are left behind the value")
    return text


def is_container(data: bytes) -> bool:
    """Tell whether the first byte is that of an array or a map."""
    first = data[0]
    return 0x80 <= first <= 0x9F or first in ARRAYS or first in MAPS


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0
        self._values = 0

    def value(self, depth: int) -> str:
        self._values += 1
        if depth > MAX_DEPTH or self._values > MAX_VALUES:
            raise NotMsgpack(f"more than {MAX_DEPTH} levels or {MAX_VALUES} values")
        first = self._take(1)[0]
        if first <= 0x7F:
            return str(first)
        if first >= 0xE0:
            return str(first - 0x100)
        if first <= 0x8F:
            return self._map(first & 0x0F, depth)
        if first <= 0x9F:
            return self._array(first & 0x0F, depth)
        if first <= 0xBF:
            return self._string(first & 0x1F)
        return self._long(first, depth)

    def _long(self, first: int, depth: int) -> str:
        """Return a value whose first byte gives only its type."""
        if first in CONSTANTS:
            return CONSTANTS[first]
        if first in NUMBERS:
            number = NUMBERS[first]
            return str(number.unpack(self._take(number.size))[0])
        if first in FIXED_EXTENSIONS:
            return self._extension(FIXED_EXTENSIONS[first])
        for table, read in self._sized(depth):
            if first in table:
                return read(int.from_bytes(self._take(table[first])))
        raise NotMsgpack(f"byte {self.position - 1} is 0x{first:02x}, which begins no value")

    def _sized(self, depth: int) -> tuple[tuple[Mapping[int, int], Callable[[int], str]], ...]:
        return (
            (STRINGS, self._string),
            (BINARIES, self._binary),
            (ARRAYS, lambda count: self._array(count, depth)),
            (MAPS, lambda count: self._map(count, depth)),
            (EXTENSIONS, self._extension),
        )

    def _take(self, length: int) -> bytes:
        end = self.position + length
        if end > len(self._data):
            raise NotMsgpack(
                f"{length} bytes are announced at byte {self.position},"
                f" {len(self._data) - self.position} are left"
            )
        taken = self._data[self.position : end]
        self.position = end
        return taken

    def _string(self, length: int) -> str:
        taken = self._take(length)
        try:
            return json.dumps(taken.decode(), ensure_ascii=False)
        except UnicodeDecodeError:
            return f'{{"$bytes":"{b64encode(taken).decode()}"}}'

    def _binary(self, length: int) -> str:
        return f'{{"$bytes":"{b64encode(self._take(length)).decode()}"}}'

    def _extension(self, length: int) -> str:
        kind = int.from_bytes(self._take(1), signed=True)
        return f'{{"$ext":{kind},"bytes":"{b64encode(self._take(length)).decode()}"}}'

    def _array(self, count: int, depth: int) -> str:
        # Every value takes a byte, so a count beyond the bytes left is invalid.
        self._expect(count)
        return f"[{','.join([self.value(depth + 1) for _ in range(count)])}]"

    def _map(self, count: int, depth: int) -> str:
        self._expect(2 * count)
        pairs = []
        for _ in range(count):
            key = self.value(depth + 1)
            # A JSON key is a string; other keys become the text of their value.
            key = key if key.startswith('"') else json.dumps(key)
            pairs.append(f"{key}:{self.value(depth + 1)}")
        return f"{{{','.join(pairs)}}}"

    def _expect(self, values: int) -> None:
        left = len(self._data) - self.position
        if values > left:
            raise NotMsgpack(
                f"{values} values are announced at byte {self.position}, {left} bytes are left"
            )
