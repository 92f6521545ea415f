"""A piece of a log on its way to a client: the kernel copies it from the file to the socket.

Stands in a Fetch answer where record data belongs. The codec asks for its length and passes it on;
the connection sends it and lets go of the file, also when the client is gone before.
"""

from collections.abc import Iterable

from brokers.protocol.schema import Message
from brokers.storage.reads import LogSlice


class FileRange:
    """Wraps a slice that is not empty; an empty one has nothing to send and is `b""`."""

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
        """Lets go of the file. Any further call does nothing."""
        piece, self._slice = self._slice, None
        if piece is not None:
            self.fd = -1
            piece.release()


def release_all(value: object) -> None:
    """Lets go of every range in an answer that will not be sent, or in its buffers."""
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
