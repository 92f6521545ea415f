"""Represents a range of a log file that the kernel copies to a client's socket.

Takes the place of record data in a Fetch response. The codec reads its length and passes it on; the
connection sends it and releases the file, also if the client disconnects before.
"""

from collections.abc import Iterable

from brokers.protocol.schema import Message
from brokers.storage.reads import LogSlice


class FileRange:
    """Wraps a non-empty slice; an empty one is represented by `b""`."""

    __slots__ = ("_length", "_slice", "fd", "position")

    def __init__(self, piece: LogSlice) -> None:
        assert piece.length > 0, "an empty slice is answered as empty bytes"
        # Open as long as the slice is not released.
        self.fd = piece.file.fd
        self.position = piece.position
        self._length = piece.length
        self._slice: LogSlice | None = piece

    def __len__(self) -> int:
        return self._length

    def release(self) -> None:
        """Release the file. Further calls do nothing."""
        piece, self._slice = self._slice, None
        if piece is not None:
            self.fd = -1
            piece.release()


def release_all(value: object) -> None:
    """Release every range in a response that will not be sent, or in its buffers."""
    if isinstance(value, FileRange):
        value.release()
    elif isinstance(value, Message):
        for field in value.FIELDS:
            release_all(getattr(value, field.name))
    elif isinstance(value, Iterable) and not isinstance(
        value, str | bytes | bytearray | memoryview
    ):
        for item in value:
            release_all(item)
