"""Unpacks bodies that calls send with `Content-Encoding: gzip`, before any limit of bodies counts.

Whatever reads a body gets plain bytes in small pieces, so a body that unpacks to more than fits is
refused like a plain one of that size.
"""

import asyncio
import zlib
from typing import Final

from gateway.rest.calls import Message, Receive, Scope
from gateway.rest.codes import ApiError, Code

ENCODING: Final = b"content-encoding"
GZIP: Final = frozenset({"gzip", "x-gzip"})
PLAIN: Final = frozenset({"", "identity"})
# Window bits of zlib, plus its sign for the format gzip.
GZIP_FORMAT: Final = zlib.MAX_WBITS | 16
# Unpacked at once: a fifth of a millisecond.
PIECE_BYTES: Final = 64 * 1024
# What a stream, whose size has no limit, may unpack to for each packed byte. Records of JSON have
# a ratio of 5 to 30; 1,000 is the most of the format.
MAX_RATIO: Final = 200
# Equal records of a test reach any ratio: count from this many unpacked bytes.
COUNTED_FROM: Final = 4 * 1024 * 1024
SHOWN: Final = 80


def plain(scope: Scope, receive: Receive) -> tuple[Scope, Receive]:
    """Return a call as if its body had been sent without an encoding.

    Raises ApiError for an encoding that is not known.
    """
    given = b",".join(value for name, value in scope["headers"] if name.lower() == ENCODING)
    encoding = given.decode("latin-1").strip().lower()
    if encoding in PLAIN:
        return scope, receive
    if encoding not in GZIP:
        raise ApiError(
            Code.UNSUPPORTED_TYPE,
            f"Content-Encoding is {encoding[:SHOWN]!r}: send the body with gzip, or without this"
            " header",
        )
    headers = [pair for pair in scope["headers"] if pair[0].lower() != ENCODING]
    return {**scope, "headers": headers}, Inflated(receive).next


class Inflated:
    """A body, as messages of its plain bytes."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._inflater = zlib.decompressobj(GZIP_FORMAT)
        self._packed = b""
        self._is_used_up = True
        self._bytes_in = 0
        self._bytes_out = 0
        self._has_more = True
        self._is_over = False

    async def next(self) -> Message:
        """Return the next message of the client, unpacked. Raises ApiError once, if it cannot."""
        if self._is_over:
            # Only a disconnect matters from here on.
            return await self._receive()
        while True:
            if self._is_used_up and self._has_more:
                message = await self._receive()
                if message["type"] != "http.request":
                    return message
                self._packed = message.get("body", b"")
                self._has_more = message.get("more_body", False)
                self._bytes_in += len(self._packed)
            else:
                # A small body may unpack to many pieces.
                await asyncio.sleep(0)
            try:
                piece = self._unpacked()
            except ApiError:
                self._is_over = True
                raise
            self._is_over = self._is_used_up and not self._has_more
            if piece or self._is_over:
                return {"type": "http.request", "body": piece, "more_body": not self._is_over}

    def _unpacked(self) -> bytes:
        """Unpack one piece; keep what has to be unpacked later."""
        if self._inflater.eof and self._packed:
            # Members of a file may follow each other.
            self._inflater = zlib.decompressobj(GZIP_FORMAT)
        try:
            piece = self._inflater.decompress(self._packed, PIECE_BYTES)
        except zlib.error as error:
            raise ApiError(
                Code.BAD_REQUEST,
                f"the body is not gzip, as Content-Encoding says, after {self._bytes_out} plain"
                f" bytes: {error}",
            ) from None
        self._packed = self._inflater.unused_data or self._inflater.unconsumed_tail
        # The library may keep bytes of a full piece without more input.
        self._is_used_up = not self._packed and len(piece) < PIECE_BYTES
        self._bytes_out += len(piece)
        if self._bytes_out > max(COUNTED_FROM, MAX_RATIO * self._bytes_in):
            raise ApiError(
                Code.TOO_LARGE,
                f"the body unpacks to more than {MAX_RATIO} times its {self._bytes_in} packed"
                " bytes: send it without gzip",
            )
        is_last = self._is_used_up and not self._has_more
        if is_last and self._bytes_in and not self._inflater.eof:
            raise ApiError(
                Code.BAD_REQUEST,
                f"the gzip body ends in the middle, after {self._bytes_out} plain bytes: send all"
                " of it",
            )
        return piece
