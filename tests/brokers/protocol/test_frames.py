"""Frames out of a stream, however the stream is cut, and whatever sizes it declares."""

import mmap
import random
import struct
from collections.abc import Iterable

import pytest

from brokers.protocol.errors import DecodeError
from brokers.protocol.frames import (
    MAX_IDLE_BYTES,
    PAGED_FROM_BYTES,
    FrameBuffers,
    FrameMemoryExceeded,
    FrameSplitter,
)

SHARED_BYTES = 4096


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


def feed(splitter: FrameSplitter, pieces: Iterable[bytes]) -> list[bytes]:
    """Put the pieces through the splitter as a socket would, copying each frame out at once."""
    shared = memoryview(bytearray(SHARED_BYTES))
    frames = []
    for piece in pieces:
        rest = piece
        while rest:
            room = splitter.room(shared)
            taken = min(len(room), len(rest))
            room[:taken] = rest[:taken]
            frames += [bytes(frame) for frame in splitter.received(taken)]
            rest = rest[taken:]
    return frames


BODIES = [b"", b"a", b"hello", bytes(range(256)) * 4, b"x" * 5000, b"", b"y" * 70_000, b"end"]


def test_frames_come_back_whole_when_the_stream_comes_at_once() -> None:
    splitter = FrameSplitter(FrameBuffers())

    assert feed(splitter, [framed(*BODIES)]) == BODIES
    assert not splitter.is_inside_frame


def test_frames_come_back_whole_when_the_stream_comes_byte_by_byte() -> None:
    splitter = FrameSplitter(FrameBuffers())
    bodies = BODIES[:5]
    stream = framed(*bodies)

    assert feed(splitter, [stream[i : i + 1] for i in range(len(stream))]) == bodies


@pytest.mark.parametrize("seed", range(20))
def test_frames_come_back_whole_when_the_stream_is_cut_at_random(seed: int) -> None:
    rng = random.Random(seed)
    stream = framed(*BODIES)
    cuts = sorted(rng.sample(range(1, len(stream)), 30))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    buffers = FrameBuffers()
    splitter = FrameSplitter(buffers)

    assert feed(splitter, pieces) == BODIES

    splitter.room(memoryview(bytearray(SHARED_BYTES)))
    assert buffers.pending_bytes == 0


def test_a_tail_is_remembered_as_the_beginning_of_the_next_frame() -> None:
    splitter = FrameSplitter(FrameBuffers())

    assert feed(splitter, [framed(b"one") + b"\x00\x00"]) == [b"one"]
    assert splitter.is_inside_frame
    assert feed(splitter, [b"\x00\x03two"]) == [b"two"]


def test_whole_frames_are_views_into_the_shared_buffer() -> None:
    splitter = FrameSplitter(FrameBuffers())
    backing = bytearray(SHARED_BYTES)
    room = splitter.room(memoryview(backing))
    stream = framed(b"first", b"second")
    room[: len(stream)] = stream

    frames = list(splitter.received(len(stream)))

    assert [bytes(frame) for frame in frames] == [b"first", b"second"]
    assert all(frame.obj is backing for frame in frames)


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1, 1001])
def test_a_size_that_is_negative_or_over_the_limit_is_refused_before_allocation(size: int) -> None:
    buffers = FrameBuffers()
    splitter = FrameSplitter(buffers, limit=1000)

    with pytest.raises(DecodeError, match=str(size)):
        feed(splitter, [struct.pack(">i", size) + b"abc"])

    assert buffers.pending_bytes == 0


def test_a_frame_of_exactly_the_limit_passes() -> None:
    assert feed(FrameSplitter(FrameBuffers(), limit=1000), [framed(b"z" * 1000)]) == [b"z" * 1000]


def test_a_declared_size_costs_address_space_and_no_memory() -> None:
    """A peer that declares 100 MB and sends ten bytes must not be given 100 MB."""
    buffers = FrameBuffers()

    view = buffers.take(100_000_000)

    assert isinstance(view.obj, mmap.mmap)
    assert len(view) == 100_000_000


def test_half_received_frames_have_a_limit_together() -> None:
    buffers = FrameBuffers(limit=1_000_000)
    first, second = FrameSplitter(buffers), FrameSplitter(buffers)
    feed(first, [struct.pack(">i", 600_000) + b"begin"])

    with pytest.raises(FrameMemoryExceeded, match="1000000"):
        feed(second, [struct.pack(">i", 600_000) + b"begin"])

    first.close()
    assert buffers.pending_bytes == 0
    feed(second, [b""])


def test_large_buffers_are_kept_warm_up_to_a_limit() -> None:
    buffers = FrameBuffers()
    size = MAX_IDLE_BYTES // 2
    views = [buffers.take(size) for _ in range(4)]

    for view in views:
        buffers.give_back(view)

    assert buffers.idle_bytes == MAX_IDLE_BYTES
    again = buffers.take(size)
    assert any(again.obj is view.obj for view in views)


def test_small_buffers_are_not_kept() -> None:
    buffers = FrameBuffers()

    buffers.give_back(buffers.take(PAGED_FROM_BYTES))

    assert buffers.idle_bytes == 0
    assert buffers.pending_bytes == 0
