"""Answers leave in order and whole, whatever the socket takes at a time; files are let go of."""

import os
import socket
from collections.abc import Iterator, Sized
from pathlib import Path

import pytest

from brokers.server.file_range import FileRange
from brokers.server.output import JOINED_BYTES, TURN_BYTES, FileShrank, Output
from brokers.storage.handles import LogFile
from brokers.storage.reads import LogSlice

SCRATCH = memoryview(bytearray(JOINED_BYTES))
SIZE = 3 * 1024 * 1024
Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    left, right = socket.socketpair()
    left.setblocking(False)
    right.setblocking(False)
    with left, right:
        yield left, right


@pytest.fixture
def log_file(tmp_path: Path) -> Iterator[LogFile]:
    path = tmp_path / "0.log"
    path.write_bytes(os.urandom(SIZE))
    file = LogFile(str(path))
    file.fd = os.open(path, os.O_RDONLY)
    yield file
    os.close(file.fd)


def received(output: Output, reader: socket.socket) -> bytes:
    """All that the queue holds, read as it comes."""
    taken = bytearray()
    while output.size:
        output.drain()
        try:
            while data := reader.recv(1 << 20):
                taken += data
        except BlockingIOError:
            continue
    return bytes(taken)


def test_small_answers_leave_together(pair: Pair) -> None:
    output = Output(pair[0], SCRATCH)
    output.add([b"head", b"body"])
    output.add([b"next"])

    assert output.drain() == 12

    assert pair[1].recv(100) == b"headbodynext"
    assert output.size == 0


def test_what_the_socket_does_not_take_stays_in_its_order(pair: Pair) -> None:
    output = Output(pair[0], SCRATCH)
    parts: list[Sized] = [os.urandom(50_000) for _ in range(40)]
    output.add(parts)

    assert received(output, pair[1]) == b"".join(parts)  # type: ignore[arg-type]


def test_file_bytes_stand_between_the_bytes_around_them(pair: Pair, log_file: LogFile) -> None:
    output = Output(pair[0], SCRATCH)
    piece = FileRange(LogSlice(log_file, 1000, 2_000_000, 0))
    output.add([b"head", piece, b"tail"])
    output.add([b"next"])

    data = received(output, pair[1])

    expected = Path(log_file.path).read_bytes()[1000:2_001_000]
    assert data == b"head" + expected + b"tailnext"
    assert log_file.pins == 0


def test_one_turn_sends_no_more_than_its_share(log_file: LogFile, tmp_path: Path) -> None:
    left, right = socket.socketpair()
    with left, right:
        left.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 * SIZE)
        left.setblocking(False)
        output = Output(left, SCRATCH)
        output.add([b"head", FileRange(LogSlice(log_file, 0, SIZE, 0))])

        sent = output.drain()

        assert 0 < sent <= TURN_BYTES
        assert output.size == SIZE + 4 - sent
        output.close()


def test_an_answer_at_once_has_its_files_bytes_and_lets_go_of_them(
    pair: Pair, log_file: LogFile
) -> None:
    output = Output(pair[0], SCRATCH)
    piece = FileRange(LogSlice(log_file, 1000, 20_000, 0))

    assert output.send_at_once([b"head", piece, b"tail"]) == 20_008

    expected = Path(log_file.path).read_bytes()[1000:21_000]
    assert pair[1].recv(1 << 20) == b"head" + expected + b"tail"
    assert (output.size, log_file.pins) == (0, 0)


@pytest.mark.parametrize("size", [20_000, SIZE])
def test_what_does_not_leave_at_once_waits_in_its_order(
    pair: Pair, log_file: LogFile, size: int
) -> None:
    output, expected, sent = Output(pair[0], SCRATCH), bytearray(), 1
    content = Path(log_file.path).read_bytes()[:size]

    while not output.size:
        sent = output.send_at_once([b"head", FileRange(LogSlice(log_file, 0, size, 0))])
        expected += b"head" + content
    assert sent < size + 4
    output.add([b"next"])

    assert received(output, pair[1]) == expected + b"next"
    assert log_file.pins == 0


def test_an_answer_at_once_to_nobody_lets_go_of_its_files(pair: Pair, log_file: LogFile) -> None:
    output = Output(pair[0], SCRATCH)
    pair[1].close()

    with pytest.raises(OSError, match="pipe"):
        output.send_at_once([b"head", FileRange(LogSlice(log_file, 0, 100, 0))])
    with pytest.raises(FileShrank, match="5 bytes at"):
        output.send_at_once([b"head", FileRange(LogSlice(log_file, SIZE - 5, 10, 0))])

    assert (output.size, log_file.pins) == (0, 0)


def test_closing_lets_go_of_files_that_were_not_sent(pair: Pair, log_file: LogFile) -> None:
    output = Output(pair[0], SCRATCH)
    output.add([b"head", FileRange(LogSlice(log_file, 0, SIZE, 0))])
    output.add([b"head", FileRange(LogSlice(log_file, 0, 10, 0))])
    output.drain()

    output.close()

    assert log_file.pins == 0
    assert output.size == 0


def test_a_file_that_lacks_promised_bytes_is_said_and_never_waited_for(
    pair: Pair, log_file: LogFile
) -> None:
    output = Output(pair[0], SCRATCH)
    output.add([b"head", FileRange(LogSlice(log_file, SIZE - 5, 10, 0))])

    with pytest.raises(FileShrank, match="5 bytes at"):
        received(output, pair[1])
    output.close()


def test_a_range_is_released_once_however_often_it_is_asked(log_file: LogFile) -> None:
    piece = FileRange(LogSlice(log_file, 0, 10, 0))
    assert log_file.pins == 1

    piece.release()
    piece.release()

    assert log_file.pins == 0


def test_a_large_answer_in_memory_leaves_in_turns_too() -> None:
    left, right = socket.socketpair()
    with left, right:
        left.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 * SIZE)
        left.setblocking(False)
        right.setblocking(False)
        output = Output(left, SCRATCH)
        data = os.urandom(SIZE)
        output.add([b"head", data])

        first = output.drain()

        assert 0 < first <= TURN_BYTES
        assert right.recv(4) == b"head"
        assert received(output, right) == data
