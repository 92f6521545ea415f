"""Encodes and decodes Kafka's primitive types.

Pure. The input may be hostile: each length is checked against the remaining bytes.
"""

import struct
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from spark_integration.datasource.wire.errors import WireCorrupt

T = TypeVar("T")

INT8: Final = struct.Struct(">b")
INT16: Final = struct.Struct(">h")
INT32: Final = struct.Struct(">i")
INT64: Final = struct.Struct(">q")
UUID_BYTES: Final = 16
# An unsigned varint of 32 bits.
MAX_VARINT_BYTES: Final = 5


class Reader:
    """Reads one response sequentially."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self._data = memoryview(data)
        self._position = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._position

    def raw(self, size: int) -> memoryview:
        if not 0 <= size <= self.left:
            raise WireCorrupt(f"a response has a field of {size} bytes with {self.left} bytes left")
        start = self._position
        self._position += size
        return self._data[start : self._position]

    def int8(self) -> int:
        return int(INT8.unpack(self.raw(1))[0])

    def int16(self) -> int:
        return int(INT16.unpack(self.raw(2))[0])

    def int32(self) -> int:
        return int(INT32.unpack(self.raw(4))[0])

    def int64(self) -> int:
        return int(INT64.unpack(self.raw(8))[0])

    def boolean(self) -> bool:
        return self.int8() != 0

    def uuid(self) -> bytes:
        return bytes(self.raw(UUID_BYTES))

    def varint(self) -> int:
        value = 0
        for place in range(MAX_VARINT_BYTES):
            byte = self.raw(1)[0]
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return value
        raise WireCorrupt("a response has a varint of more than five bytes")

    def string(self) -> str | None:
        size = self.int16()
        return None if size < 0 else text_of(self.raw(size))

    def blob(self) -> memoryview | None:
        size = self.int32()
        return None if size < 0 else self.raw(size)

    def array(self, item: Callable[[], T]) -> list[T]:
        """Read an array; null becomes empty."""
        return self._items(self.int32(), item)

    def compact_string(self) -> str | None:
        size = self.varint() - 1
        return None if size < 0 else text_of(self.raw(size))

    def compact_blob(self) -> memoryview | None:
        size = self.varint() - 1
        return None if size < 0 else self.raw(size)

    def compact_array(self, item: Callable[[], T]) -> list[T]:
        return self._items(self.varint() - 1, item)

    def skip_tags(self) -> None:
        for _ in range(self.varint()):
            self.varint()
            self.raw(self.varint())

    def _items(self, count: int, item: Callable[[], T]) -> list[T]:
        # No item is shorter than a byte.
        if count > self.left:
            raise WireCorrupt(f"a response has {count} items with {self.left} bytes left")
        return [item() for _ in range(count)]


def text_of(data: memoryview) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise WireCorrupt(f"a response has a text that is not UTF-8: {error}") from None


def string(text: str | None) -> bytes:
    if text is None:
        return INT16.pack(-1)
    data = text.encode()
    return INT16.pack(len(data)) + data


def blob(data: bytes) -> bytes:
    return INT32.pack(len(data)) + data


def array(items: Sequence[bytes]) -> bytes:
    return INT32.pack(len(items)) + b"".join(items)


def varint(value: int) -> bytes:
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def compact_string(text: str) -> bytes:
    data = text.encode()
    return varint(len(data) + 1) + data


def compact_array(items: Sequence[bytes] | None) -> bytes:
    if items is None:
        return varint(0)
    return varint(len(items) + 1) + b"".join(items)
