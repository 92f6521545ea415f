"""Length-prefixed frames out of a stream of bytes, without trusting the length.

Knows no sockets: the owner asks where the next bytes should be put, puts them there, and gets whole
frames back as views.  Bytes arrive in one buffer shared by all connections and complete frames are
used in place; only the frame that a read cut in two moves to a buffer of its own, once.

Views are valid until the owner asks for room again: whoever wants bytes for longer copies them.
"""

import mmap
import struct
from collections.abc import Iterator
from typing import Final

from brokers.protocol.errors import DecodeError, ProtocolError

SIZE_PREFIX: Final = 4
MAX_FRAME_BYTES: Final = 104_857_600  # Kafka's default for socket.request.max.bytes
# A frame above this gets pages from the kernel, which cost nothing before bytes really arrive in
# them: a peer that declares 100 MB and sends ten bytes holds one page.
PAGED_FROM_BYTES: Final = 65_536
# Pages kept for the next large frame.  Fresh pages cost twice the time of warm ones, but a
# connection that once sent 50 MB must not hold them for ever.
MAX_IDLE_BYTES: Final = 16 * 1024 * 1024
# Everything that half-received frames of all connections may declare together.
MAX_PENDING_BYTES: Final = 1024 * 1024 * 1024

_SIZE: Final = struct.Struct(">i")


class FrameMemoryExceeded(ProtocolError):
    """Too many half-received frames at once; the connection that asks for more has to go."""


class FrameBuffers:
    """Buffers for frames that arrive in pieces, shared by the connections of one event loop."""

    __slots__ = ("_idle", "idle_bytes", "limit", "pending_bytes")

    def __init__(self, limit: int = MAX_PENDING_BYTES) -> None:
        self.limit = limit
        self.pending_bytes = 0
        self.idle_bytes = 0
        self._idle: dict[int, list[mmap.mmap]] = {}

    def take(self, size: int) -> memoryview:
        """A writable view of exactly `size` bytes."""
        if self.pending_bytes + size > self.limit:
            raise FrameMemoryExceeded(
                f"a frame of {size} bytes would bring half-received frames to"
                f" {self.pending_bytes + size} bytes, and the limit is {self.limit}"
            )
        self.pending_bytes += size
        if size <= PAGED_FROM_BYTES:
            return memoryview(bytearray(size))
        capacity = _capacity(size)
        idle = self._idle.get(capacity)
        if idle:
            self.idle_bytes -= capacity
            return memoryview(idle.pop())[:size]
        return memoryview(mmap.mmap(-1, capacity))[:size]

    def give_back(self, view: memoryview) -> None:
        """End the use of a view that `take` returned; large ones are kept warm up to a limit."""
        self.pending_bytes -= len(view)
        pages = view.obj
        if not isinstance(pages, mmap.mmap):
            return
        capacity = len(pages)
        if self.idle_bytes + capacity <= MAX_IDLE_BYTES:
            self.idle_bytes += capacity
            self._idle.setdefault(capacity, []).append(pages)


def _capacity(size: int) -> int:
    """Powers of two, so that frames of about the same size share their pages."""
    return 1 << (size - 1).bit_length()


class FrameSplitter:
    """The receiving half of one connection."""

    __slots__ = ("_buffers", "_frame", "_head", "_received", "_shared", "limit")

    def __init__(self, buffers: FrameBuffers, limit: int = MAX_FRAME_BYTES) -> None:
        self.limit = limit  # may be raised once the peer is known
        self._buffers = buffers
        self._head = b""  # the first bytes of a size prefix that was cut
        self._frame: memoryview | None = None  # the frame being received in pieces
        self._received = 0  # bytes of it that are there
        self._shared: memoryview | None = None  # where the last room was given

    @property
    def is_inside_frame(self) -> bool:
        """Whether the peer owes bytes: what tells a slow sender from an idle one."""
        return self._frame is not None or bool(self._head)

    def room(self, shared: memoryview) -> memoryview:
        """Where to put the next bytes.  Ends the life of all views given out before."""
        frame = self._frame
        if frame is not None and self._received == len(frame):
            self._buffers.give_back(frame)
            self._frame = frame = None
        if frame is not None:
            return frame[self._received :]
        self._shared = shared
        kept = len(self._head)
        shared[:kept] = self._head
        return shared[kept:]

    def received(self, count: int) -> Iterator[memoryview]:
        """The frames that `count` more bytes in the room complete, in order.

        Raises DecodeError at a size that is negative or over the limit; the stream is lost then.
        """
        frame = self._frame
        if frame is not None:
            self._received += count
            if self._received == len(frame):
                yield frame
            return
        shared = self._shared
        assert shared is not None, "bytes were received before room was asked for"
        end = len(self._head) + count
        self._head = b""
        position = 0
        while end - position >= SIZE_PREFIX:
            (size,) = _SIZE.unpack_from(shared, position)
            if size < 0 or size > self.limit:
                raise DecodeError(f"a frame declares {size} bytes, and the limit is {self.limit}")
            start = position + SIZE_PREFIX
            if start + size > end:
                self._begin(shared[start:end], size)
                return
            position = start + size
            yield shared[start:position]
        self._head = bytes(shared[position:end])

    def _begin(self, tail: memoryview, size: int) -> None:
        self._frame = self._buffers.take(size)
        self._frame[: len(tail)] = tail
        self._received = len(tail)

    def close(self) -> None:
        """Give back what is held; the connection is gone."""
        if self._frame is not None:
            self._buffers.give_back(self._frame)
            self._frame = None
