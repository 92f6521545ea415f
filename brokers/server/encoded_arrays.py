"""Builds responses from array elements that are encoded one by one.

Knows no API. The codec encodes a message in one go; for a long array that makes other clients wait,
or repeats the same work for every client. Here each element is encoded separately, in any turn of
the loop, and inserted into the encoded message around it. The only assumptions about the wire are
that the array is encoded where its field is, and that the bytes after it have a fixed size.
"""

from collections.abc import Sequence
from functools import cache
from typing import Generic, TypeVar

from brokers.protocol.codec import codec
from brokers.protocol.primitives import uvarint
from brokers.protocol.schema import Message

M = TypeVar("M", bound=Message)


class EncodedArray(Generic[M]):
    """One array of structures in one message. A value: make it once, when a module is imported."""

    __slots__ = ("_field", "_message")

    def __init__(self, message: type[M], field: str) -> None:
        self._message = message
        self._field = field

    def element(self, one: Message, version: int) -> bytes:
        """Encode one element as in a message of this version."""
        frame = self._message()
        setattr(frame, self._field, [one])
        whole = b"".join(codec(self._message, version).encode(frame))
        before, after = _around(self._message, self._field, version)
        return whole[before : len(whole) - after]

    def whole(self, frame: M, version: int, elements: Sequence[bytes]) -> bytes:
        """Encode `frame`, whose array is empty, with the encoded elements in the array's place."""
        assert not getattr(frame, self._field), "all elements are given as bytes"
        encoded = b"".join(codec(self._message, version).encode(frame))
        end = len(encoded) - _around(self._message, self._field, version)[1]
        start = end - len(_array_length(self._message, 0, version))
        length = _array_length(self._message, len(elements), version)
        return b"".join((encoded[:start], length, *elements, encoded[end:]))


@cache
def _around(message: type[Message], name: str, version: int) -> tuple[int, int]:
    """Count the bytes before the array's first element if all else has its default, and
    after its last one in any message.
    """
    names = [field.name for field in message.FIELDS]
    following = [field for field in message.FIELDS[names.index(name) + 1 :] if field.is_in(version)]
    assert all(field.kind.size and field.tag is None for field in following), (
        f"the fields after {name} in {message.__name__} have no fixed size"
    )
    after = sum(field.kind.size for field in following) + _is_flexible(message, version)
    empty = b"".join(codec(message, version).encode(message()))
    return len(empty) - after, after


def _array_length(message: type[Message], count: int, version: int) -> bytes:
    return uvarint(count + 1) if _is_flexible(message, version) else count.to_bytes(4, "big")


def _is_flexible(message: type[Message], version: int) -> bool:
    return message.FLEXIBLE is not None and version >= message.FLEXIBLE
