"""Splits a stream of bytes into length-prefixed frames, without trusting the length.

Has no sockets: the owner asks for a buffer for the next bytes, puts them there, and gets whole
frames back as views. Bytes arrive in one buffer shared by all connections and complete frames are
used in place; only the frame that a read cut in two moves to a buffer of its own, once.

A view is valid until the next frame is asked for, and in any case only until control returns to the
event loop: the next connection receives into the same memory. Callers that keep bytes copy them.
"""

import mmap
import struct
from collections.abc import Iterator
from typing import Final

from brokers.protocol.errors import DecodeError, ProtocolError

SIZE_PREFIX: Final = 4
MAX_FRAME_BYTES: Final = 104_857_600  # Kafka's default for socket.request.max.bytes
# A frame above this gets pages from the kernel, which use memory only when bytes really arrive in
# them: a peer that declares 100 MB and sends ten bytes holds one page.
PAGED_FROM_BYTES: Final = 65_536
# Pages kept for the next large frame. Fresh pages cost twice the time of warm ones, but a
# connection that once sent 50 MB must not keep them.
MAX_IDLE_BYTES: Final = 16 * 1024 * 1024
# The limit of half-received large frames, over all connections.
MAX_PENDING_BYTES: Final = 1024 * 1024 * 1024

SIZE: Final = struct.Struct(">i")


class FrameMemoryExceeded(ProtocolError):
    """Half-received frames exceed their limit; the connection that adds to them is closed."""


class FrameBuffers:
    """Buffers for frames that arrive in pieces, shared by the connections of one event loop.

    Received bytes count against the limit, not declared ones.
    """

    __slots__ = ("_idle", "idle_bytes", "limit", "pending_bytes")

    def __init__(self, limit: int = MAX_PENDING_BYTES) -> None:
        self.limit = limit
        self.pending_bytes = 0
        self.idle_bytes = 0
        self._idle: list[mmap.mmap] = []  # least recently used first

    def take(self, size: int) -> memoryview:
        """Return a writable view of exactly `size` bytes."""
        if size <= PAGED_FROM_BYTES:
            return memoryview(bytearray(size))
        capacity = _capacity(size)
        for index in range(len(self._idle) - 1, -1, -1):
            if len(self._idle[index]) == capacity:
                self.idle_bytes -= capacity
                return memoryview(self._idle.pop(index))[:size]
        return memoryview(mmap.mmap(-1, capacity))[:size]

    def charge(self, view: memoryview, count: int) -> None:
        """Count `count` more bytes received into a view that `take` returned."""
        # Small frames are bounded by the number of connections, and must not depend on other peers.
        if len(view) > PAGED_FROM_BYTES and self.pending_bytes + count > self.limit:
            raise FrameMemoryExceeded(
                f"{count} bytes more would bring half-received frames to"
                f" {self.pending_bytes + count} bytes, and the limit is {self.limit}"
            )
        self.pending_bytes += count

    def settle(self, count: int) -> None:
        """Release charged bytes that are no longer half-received."""
        self.pending_bytes -= count

    def keep_warm(self, view: memoryview) -> None:
        """End the use of a view; keep its pages for the next frame of their size, up to a limit."""
        pages = view.obj
        if not isinstance(pages, mmap.mmap) or len(pages) > MAX_IDLE_BYTES:
            return
        self._idle.append(pages)
        self.idle_bytes += len(pages)
        while self.idle_bytes > MAX_IDLE_BYTES:
            self.idle_bytes -= len(self._idle.pop(0))


def _capacity(size: int) -> int:
    """Round up to powers of two, so that frames of about the same size share their pages."""
    return 1 << (size - 1).bit_length()


class FrameSplitter:
    """The receiving half of one connection.

    Its owner may set `is_held` between two frames: the rest of the received bytes is then kept
    here, and `resume` yields its frames later.
    """

    __slots__ = (
        "_buffers",
        "_frame",
        "_head",
        "_held",
        "_received",
        "_shared",
        "is_held",
        "is_inside_frame",
        "limit",
    )

    def __init__(self, buffers: FrameBuffers, limit: int = MAX_FRAME_BYTES) -> None:
        self.limit = limit  # raised once the peer is authenticated
        self.is_held = False
        self._buffers = buffers
        self._head = b""  # the first bytes of a size prefix that was cut
        # Whole frames, and perhaps the beginning of one, that have to wait. Like all other frames
        # they are writable: batches get their offsets in the buffer that received them.
        self._held = bytearray()
        self._frame: memoryview | None = None  # the frame being received in pieces
        self._received = 0  # its received bytes
        self._shared: memoryview | None = None  # the buffer of the last `room`
        # Whether a frame is incomplete, which tells a slow sender from an idle one. Kept up to date
        # instead of computed, since it is read before every receive.
        self.is_inside_frame = False

    @property
    def has_held(self) -> bool:
        """Whether received bytes wait for `resume`, which must come before the next `room`."""
        return bool(self._held)

    def room(self, shared: memoryview) -> memoryview:
        """Return the buffer for the next bytes."""
        assert not self._held, "frames that were held must be resumed before more is received"
        if self._frame is not None:
            return self._frame[self._received :]
        self._shared = shared
        kept = len(self._head)
        shared[:kept] = self._head
        return shared[kept:]

    def received(self, count: int) -> Iterator[memoryview]:
        """Yield the frames that `count` more bytes in the room complete, in order; to be used up.

        Raises DecodeError at a size that is negative or over the limit; the stream is lost then.
        """
        self.is_held = False
        frame = self._frame
        if frame is None:
            assert self._shared is not None, "bytes were received before room was asked for"
            end = len(self._head) + count
            self._head = b""
            self.is_inside_frame = False
            yield from self._split(self._shared, end)
            return
        self._buffers.charge(frame, count)
        self._received += count
        if self._received == len(frame):
            self._frame = None
            self.is_inside_frame = False
            self._buffers.settle(self._received)
            yield frame
            self._buffers.keep_warm(frame)

    def resume(self) -> Iterator[memoryview]:
        """Yield the held frames, until the owner holds again; to be used up."""
        self.is_held = False
        if not self._held:
            # A partial frame, or a partial size, stays as it is.
            return
        held, self._held = memoryview(self._held), bytearray()
        yield from self._split(held, len(held))

    def _split(self, source: memoryview, end: int) -> Iterator[memoryview]:
        position = 0
        while end - position >= SIZE_PREFIX:
            if self.is_held:
                self._held = bytearray(source[position:end])
                return
            (size,) = SIZE.unpack_from(source, position)
            if size < 0 or size > self.limit:
                raise DecodeError(f"a frame declares {size} bytes, and the limit is {self.limit}")
            start = position + SIZE_PREFIX
            if start + size > end:
                self._begin(source[start:end], size)
                return
            position = start + size
            yield source[start:position]
        self._head = bytes(source[position:end])
        self.is_inside_frame = position < end

    def _begin(self, tail: memoryview, size: int) -> None:
        frame = self._buffers.take(size)
        self._buffers.charge(frame, len(tail))
        frame[: len(tail)] = tail
        self._frame = frame
        self._received = len(tail)
        self.is_inside_frame = True

    def close(self) -> None:
        """Close the connection. Pages are not reused: a late reader may still use them."""
        if self._frame is not None:
            self._buffers.settle(self._received)
            self._frame = None
        self.is_inside_frame = False
        self._held = bytearray()
