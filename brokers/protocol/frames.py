"""Splits a stream of bytes into length-prefixed frames, without trusting the length.

Has no sockets: the owner asks for a buffer for the next bytes, puts them there, and gets whole
frames back as views. Bytes arrive in one buffer shared by all connections and complete frames are
used in place; only the frame that a read cut in two moves to a buffer of its own, once.

A view is valid until the next frame is asked for, and in any case only until control returns to the
event loop: the next connection receives into the same memory. Callers that keep bytes copy them.
"""

import mmap
import struct
from collections.abc import Callable, Iterator
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
# The limit of half-received large frames, over all connections: one of the largest size and some.
MAX_PENDING_BYTES: Final = MAX_FRAME_BYTES + 4 * 1024 * 1024
# The beginnings of frames that were received already, and the one that goes first, may exceed it by
# this much.
BEYOND_BYTES: Final = 16 * 1024 * 1024

SIZE: Final = struct.Struct(">i")


class FrameMemoryExceeded(ProtocolError):
    """Half-received frames exceed their limit; the connection that adds to them is closed."""


class FrameBuffers:
    """Buffers for frames that arrive in pieces, shared by the connections of one event loop.

    Received bytes count against the limit, not declared ones, and those of large frames only: small
    ones are bounded by the number of connections. `make_room` is told of a frame that begins beyond
    the limit, and of the bytes that it needs.
    """

    __slots__ = ("_idle", "_make_room", "first", "idle_bytes", "limit", "pending_bytes")

    def __init__(
        self,
        limit: int = MAX_PENDING_BYTES,
        *,
        make_room: "Callable[[FrameSplitter, int], None] | None" = None,
    ) -> None:
        self.limit = limit
        self._make_room = make_room
        # The frame that may go beyond the limit, so that one is complete where all wait for room.
        self.first: FrameSplitter | None = None
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

    def room_of(self, frames: "FrameSplitter") -> int:
        """Return how many more bytes of a large frame may be received now."""
        limit = self.limit + BEYOND_BYTES if frames is self.first else self.limit
        return max(0, limit - self.pending_bytes)

    def begin(self, frames: "FrameSplitter", count: int) -> None:
        """Count the first bytes of a large frame, which are here already."""
        if count > self.room_of(frames):
            self._idle.clear()
            self.idle_bytes = 0
            if self._make_room is not None:
                self._make_room(frames, count)
        if self.pending_bytes + count > self.limit + BEYOND_BYTES:
            raise FrameMemoryExceeded(
                f"{count} bytes more would bring half-received frames to"
                f" {self.pending_bytes + count} bytes, and the limit is {self.limit}"
            )
        self.pending_bytes += count

    def charge(self, count: int) -> None:
        """Count more bytes of a large frame, which had room."""
        self.pending_bytes += count

    def settle(self, frames: "FrameSplitter", count: int) -> None:
        """Release charged bytes that are no longer half-received."""
        self.pending_bytes -= count
        if frames is self.first:
            self.first = None

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
        "frame_bytes",
        "is_held",
        "is_inside_frame",
        "limit",
        "pending",
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
        self.frame_bytes = 0  # its declared ones
        self.pending = 0  # of the received ones, those that count: all of a large frame
        self._shared: memoryview | None = None  # the buffer of the last `room`
        # Whether a frame is incomplete, which tells a slow sender from an idle one. Kept up to date
        # instead of computed, since it is read before every receive.
        self.is_inside_frame = False

    @property
    def has_held(self) -> bool:
        """Whether received bytes wait for `resume`, which must come before the next `room`."""
        return bool(self._held)

    def room(self, shared: memoryview) -> memoryview:
        """Return the buffer for the next bytes; an empty one while there is no memory for them."""
        assert not self._held, "frames that were held must be resumed before more is received"
        if self._frame is not None:
            if self.frame_bytes > PAGED_FROM_BYTES:
                return self._frame[self._received : self._received + self._buffers.room_of(self)]
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
        self._received += count
        if self.frame_bytes > PAGED_FROM_BYTES:
            self._buffers.charge(count)
            self.pending += count
        if self._received == len(frame):
            self._end()
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
        self.frame_bytes = size
        if size > PAGED_FROM_BYTES:
            self._buffers.begin(self, len(tail))
            self.pending = len(tail)
        frame = self._buffers.take(size)
        frame[: len(tail)] = tail
        self._frame = frame
        self._received = len(tail)
        self.is_inside_frame = True

    def close(self) -> None:
        """Close the connection. Pages are not reused: a late reader may still use them."""
        self._end()
        self._held = bytearray()

    def _end(self) -> None:
        """The frame is complete, or never will be."""
        self._frame = None
        self.is_inside_frame = False
        self._buffers.settle(self, self.pending)
        self.pending = 0
