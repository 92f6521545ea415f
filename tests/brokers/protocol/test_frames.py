"""Frames out of a stream, however the stream is cut, and whatever sizes it declares."""

import mmap
import random
import struct
from collections.abc import Iterable

import pytest

from brokers.protocol import frames as frames_module
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

    assert feed(FrameSplitter(buffers), pieces) == BODIES
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


class TestHolding:
    def test_frames_that_are_held_come_later_in_order(self) -> None:
        splitter = FrameSplitter(FrameBuffers())
        stream = framed(b"one", b"two", b"three", b"four") + b"\x00\x00"
        shared = memoryview(bytearray(SHARED_BYTES))
        splitter.room(shared)[: len(stream)] = stream
        seen = []

        for frame in splitter.received(len(stream)):
            seen.append(bytes(frame))
            splitter.is_held = len(seen) == 2
        shared[:] = bytes(SHARED_BYTES)
        rest = [bytes(frame) for frame in splitter.resume()]

        assert seen == [b"one", b"two"]
        assert rest == [b"three", b"four"]
        assert splitter.is_inside_frame

    def test_holding_again_keeps_the_rest_again(self) -> None:
        splitter = FrameSplitter(FrameBuffers())
        stream = framed(b"one", b"two", b"three")
        splitter.room(memoryview(bytearray(SHARED_BYTES)))[: len(stream)] = stream
        seen = []
        frames = splitter.received(len(stream))

        for _ in range(3):
            for frame in frames:
                seen.append(bytes(frame))
                splitter.is_held = True
            frames = splitter.resume()

        assert seen == [b"one", b"two", b"three"]

    def test_a_frame_cut_in_two_behind_held_ones_is_completed(self) -> None:
        splitter = FrameSplitter(FrameBuffers())
        stream = framed(b"one", b"two", b"x" * 5000)
        shared = memoryview(bytearray(SHARED_BYTES))
        splitter.room(shared)[:SHARED_BYTES] = stream[:SHARED_BYTES]
        for _ in splitter.received(SHARED_BYTES):
            splitter.is_held = True

        assert [bytes(frame) for frame in splitter.resume()] == [b"two"]
        assert feed(splitter, [stream[SHARED_BYTES:]]) == [b"x" * 5000]

    def test_held_frames_can_be_written_to_as_all_others(self) -> None:
        splitter = FrameSplitter(FrameBuffers())
        stream = framed(b"one", b"two")
        splitter.room(memoryview(bytearray(SHARED_BYTES)))[: len(stream)] = stream
        for _ in splitter.received(len(stream)):
            splitter.is_held = True

        for frame in splitter.resume():
            frame[:1] = b"T"

            assert bytes(frame) == b"Two"

    @pytest.mark.parametrize("cut", [1, 3, 4, 5])
    def test_nothing_of_the_next_frame_is_lost_where_nothing_was_held(self, cut: int) -> None:
        splitter = FrameSplitter(FrameBuffers())
        stream = framed(b"two")
        assert feed(splitter, [framed(b"one") + stream[:cut]]) == [b"one"]

        assert list(splitter.resume()) == []

        assert splitter.is_inside_frame
        assert feed(splitter, [stream[cut:]]) == [b"two"]

    def test_receiving_over_held_frames_is_a_bug(self) -> None:
        splitter = FrameSplitter(FrameBuffers())
        stream = framed(b"one", b"two")
        shared = memoryview(bytearray(SHARED_BYTES))
        splitter.room(shared)[: len(stream)] = stream
        for _ in splitter.received(len(stream)):
            splitter.is_held = True

        with pytest.raises(AssertionError, match="resumed"):
            splitter.room(shared)


class TestMemory:
    def test_a_declared_size_costs_address_space_and_no_memory(self) -> None:
        """A peer that declares 100 MB and sends ten bytes must not be given 100 MB."""
        buffers = FrameBuffers()
        feed(FrameSplitter(buffers), [struct.pack(">i", 100_000_000) + b"ten bytes."])

        view = buffers.take(100_000_000)

        assert isinstance(view.obj, mmap.mmap)
        assert buffers.pending_bytes == 10

    def test_a_large_frame_waits_while_others_hold_all_the_room(self) -> None:
        buffers = FrameBuffers(limit=100_000)
        shared = memoryview(bytearray(SHARED_BYTES))
        first, second = FrameSplitter(buffers), FrameSplitter(buffers)
        feed(first, [struct.pack(">i", 600_000) + bytes(60_000)])
        feed(second, [struct.pack(">i", 600_000) + bytes(40_000)])

        assert len(second.room(shared)) == 0
        first.close()
        assert len(second.room(shared)) == 60_000

        second.close()
        assert buffers.pending_bytes == 0

    def test_a_large_frame_that_begins_far_beyond_the_limit_is_refused(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(frames_module, "BEYOND_BYTES", 1_000)
        buffers = FrameBuffers(limit=100_000)
        feed(FrameSplitter(buffers), [struct.pack(">i", 600_000) + bytes(100_000)])

        with pytest.raises(FrameMemoryExceeded, match="100000"):
            feed(FrameSplitter(buffers), [struct.pack(">i", 600_000) + bytes(2_000)])

        assert buffers.pending_bytes == 100_000

    def test_small_frames_pass_whatever_others_hold(self) -> None:
        buffers = FrameBuffers(limit=100_000)
        feed(FrameSplitter(buffers), [struct.pack(">i", 600_000) + bytes(99_990)])

        body = b"s" * 300
        stream = framed(body)

        assert feed(FrameSplitter(buffers), [stream[:100], stream[100:]]) == [body]

    def test_a_frame_that_is_complete_is_not_pending_any_more(self) -> None:
        buffers = FrameBuffers()
        splitter = FrameSplitter(buffers)

        feed(splitter, [framed(b"y" * 200_000)])

        assert buffers.pending_bytes == 0
        assert not splitter.is_inside_frame
        assert buffers.idle_bytes == 262_144

    def test_the_pages_of_a_closed_connection_are_not_given_to_another(self) -> None:
        buffers = FrameBuffers()
        splitter = FrameSplitter(buffers)
        feed(splitter, [struct.pack(">i", 200_000) + b"secret"])

        splitter.close()

        assert buffers.idle_bytes == 0
        assert bytes(buffers.take(200_000)[:6]) == bytes(6)

    def test_pages_are_kept_warm_for_the_next_frame_of_their_size(self) -> None:
        buffers = FrameBuffers()
        view = buffers.take(1_000_000)

        buffers.keep_warm(view)

        assert buffers.take(900_000).obj is view.obj
        assert buffers.idle_bytes == 0

    def test_the_pages_longest_unused_make_room_for_others(self) -> None:
        buffers = FrameBuffers()
        for view in [buffers.take(70_000) for _ in range(200)]:
            buffers.keep_warm(view)

        large = buffers.take(MAX_IDLE_BYTES // 2)
        buffers.keep_warm(large)

        assert buffers.idle_bytes <= MAX_IDLE_BYTES
        assert buffers.take(MAX_IDLE_BYTES // 2).obj is large.obj

    @pytest.mark.parametrize("size", [1, PAGED_FROM_BYTES, 2 * MAX_IDLE_BYTES])
    def test_small_and_huge_buffers_are_not_kept(self, size: int) -> None:
        buffers = FrameBuffers()

        buffers.keep_warm(buffers.take(size))

        assert buffers.idle_bytes == 0
