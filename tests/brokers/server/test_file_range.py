"""A piece of a log holds its file until it is sent, or until nobody will send it."""

from pathlib import Path

import pytest

from brokers.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from brokers.server.file_range import FileRange, release_all
from brokers.storage.handles import LogFile
from brokers.storage.reads import LogSlice


def test_a_range_knows_what_a_socket_needs() -> None:
    file = LogFile("x.log")
    file.fd = 9

    piece = FileRange(LogSlice(file, 100, 50, 7))

    assert (len(piece), piece.fd, piece.position) == (50, 9, 100)
    piece.release()
    assert piece.fd == -1, "the number may be another file's by now"


def test_an_empty_slice_is_no_range() -> None:
    with pytest.raises(AssertionError, match="empty"):
        FileRange(LogSlice(LogFile("x.log"), 0, 0, 0))


def test_an_answer_that_is_not_sent_lets_go_of_all_its_files() -> None:
    file = LogFile("x.log")
    ranges = [FileRange(LogSlice(file, 0, 10, 0)) for _ in range(3)]
    partitions = [PartitionData(partition_index=n, records=r) for n, r in enumerate(ranges)]
    answer = FetchResponse(responses=[FetchableTopicResponse(partitions=partitions)])
    assert file.pins == 3

    release_all(answer)

    assert file.pins == 0


def test_buffers_are_looked_through_too(tmp_path: Path) -> None:
    file = LogFile("x.log")

    release_all([b"head", FileRange(LogSlice(file, 0, 10, 0)), memoryview(b"tail")])

    assert file.pins == 0
