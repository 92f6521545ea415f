"""Splits a stream of JSON objects into whole objects as bytes arrive.

Pure. Examines only brackets and strings; the decoder decides whether an object is JSON. Between two
pieces, it keeps the beginning of one object.
"""

import re
from collections.abc import Iterator
from typing import Final

# The text of one record: many times the largest value that topics accept by default.
MAX_OBJECT_BYTES: Final = 16 * 1024 * 1024
# No application's record is deeper; a decoder needs a stack frame for each level.
MAX_DEPTH: Final = 100

BLANKS: Final = re.compile(rb"[ \t\r\n]*")
OUTSIDE: Final = re.compile(rb'[{}\[\]"]')
INSIDE: Final = re.compile(rb'["\\]')
OPENS: Final = {ord("{"): ord("}"), ord("["): ord("]")}
QUOTE: Final = ord('"')
SHOWN: Final = 20


class Malformed(Exception):
    """The input is no sequence of JSON objects: nothing after this can be parsed."""


class TooLarge(Malformed):
    """An object that is larger than the limit."""


class Splitter:
    """Call `feed` until it raises, and `finish` at the end."""

    def __init__(self, *, max_bytes: int = MAX_OBJECT_BYTES, max_depth: int = MAX_DEPTH) -> None:
        self._max_bytes = max_bytes
        self._max_depth = max_depth
        # The beginning of an incomplete object, and the closing brackets that it needs.
        self._kept = bytearray()
        self._awaited = bytearray()
        self._is_in_string = False
        self._is_escaped = False

    @property
    def kept(self) -> int:
        """Return how many bytes of an incomplete object are buffered."""
        return len(self._kept)

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the objects that end in a piece; buffer what follows the last one."""
        begin = at = 0
        while True:
            if not self._awaited:
                begin = at = self._begin(piece, at)
                if begin == len(piece):
                    return
            at = self._advance(piece, at)
            size = len(self._kept) + at - begin
            if size > self._max_bytes:
                raise TooLarge(
                    f"a record has more than {self._max_bytes} bytes: send it in smaller ones"
                )
            if self._awaited:
                self._kept += piece[begin:]
                return
            yield bytes(self._kept) + piece[begin:at] if self._kept else piece[begin:at]
            self._kept.clear()

    def finish(self) -> None:
        """Raise Malformed if the stream ends within an object."""
        if self._awaited:
            raise Malformed(
                f"the stream ends after {len(self._kept)} bytes of a record that is not complete"
            )

    def _begin(self, piece: bytes, at: int) -> int:
        """Return the start of the next object, or the end of the piece."""
        found = BLANKS.match(piece, at)
        assert found is not None
        begin = found.end()
        if begin < len(piece) and piece[begin] != ord("{"):
            shown = piece[begin : begin + SHOWN]
            raise Malformed(
                f"a record is a JSON object and begins with {{, here is {shown!r}: "
                "send objects one after the other, with nothing or blanks between them"
            )
        return begin

    def _advance(self, piece: bytes, at: int) -> int:
        """Return the end of the object, or the end of the piece."""
        awaited = self._awaited
        while True:
            if self._is_in_string:
                at = self._leave_string(piece, at)
                if self._is_in_string:
                    return at
            found = OUTSIDE.search(piece, at)
            if found is None:
                return len(piece)
            at = found.end()
            sign = piece[at - 1]
            if sign == QUOTE:
                self._is_in_string = True
            elif sign in OPENS:
                if len(awaited) >= self._max_depth:
                    raise Malformed(f"a record is deeper than {self._max_depth} levels")
                awaited.append(OPENS[sign])
            elif awaited.pop() != sign:
                raise Malformed(f"a record closes a bracket that is not open: {chr(sign)}")
            elif not awaited:
                return at

    def _leave_string(self, piece: bytes, at: int) -> int:
        """Return the position after a string, or the end of the piece."""
        if self._is_escaped and at < len(piece):
            self._is_escaped = False
            at += 1
        while True:
            found = INSIDE.search(piece, at)
            if found is None:
                return len(piece)
            at = found.end()
            if piece[at - 1] == QUOTE:
                self._is_in_string = False
                return at
            if at == len(piece):
                self._is_escaped = True
                return at
            at += 1
