"""Kafka's text checkpoints: written as Kafka writes them, read strictly."""

from pathlib import Path

import pytest

from brokers.storage.checkpoints import OffsetCheckpoint
from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import LocalFiles

GOOD = b"0\n2\norders 0 17\nwith-dash.x_y 3 9223372036854775807\n"


def checkpoint(folder: Path, content: bytes | None = None) -> OffsetCheckpoint:
    path = folder / "recovery-point-offset-checkpoint"
    if content is not None:
        path.write_bytes(content)
    return OffsetCheckpoint(LocalFiles(), str(path))


def test_a_checkpoint_is_text_exactly_as_kafka_writes_it(tmp_path: Path) -> None:
    saved = checkpoint(tmp_path)

    saved.write({("orders", 0): 17, ("with-dash.x_y", 3): 2**63 - 1})

    assert Path(saved.path).read_bytes() == GOOD
    assert saved.read() == {("orders", 0): 17, ("with-dash.x_y", 3): 2**63 - 1}


def test_an_empty_map_is_a_checkpoint_too(tmp_path: Path) -> None:
    saved = checkpoint(tmp_path)

    saved.write({})

    assert Path(saved.path).read_bytes() == b"0\n0\n"
    assert saved.read() == {}


def test_writing_leaves_no_temporary_file_and_replaces_what_was_there(tmp_path: Path) -> None:
    saved = checkpoint(tmp_path, b"garbage")

    saved.write({("t", 0): 1})

    assert [path.name for path in tmp_path.iterdir()] == ["recovery-point-offset-checkpoint"]
    assert saved.read() == {("t", 0): 1}


def test_a_missing_checkpoint_is_not_a_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        checkpoint(tmp_path).read()


@pytest.mark.parametrize("length", range(len(GOOD)))
def test_a_checkpoint_cut_at_any_byte_is_corrupt(tmp_path: Path, length: int) -> None:
    with pytest.raises(StorageCorrupt):
        checkpoint(tmp_path, GOOD[:length]).read()


@pytest.mark.parametrize(
    "content",
    [
        b"1\n0\n",  # a version from the future
        b"0\n1\norders 0 17\n\n",  # a line too many
        b"0\n2\norders 0 17\n",  # a line missing
        b"0\n-1\n",
        b"0\n01\norders 0 17\n",
        b"0\n1\norders 0\n",
        b"0\n1\norders 0 17 18\n",
        b"0\n1\norders  0 17\n",
        b"0\n1\norders 0 -17\n",
        b"0\n1\norders 0 1_7\n",
        b"0\n1\norders 0 9223372036854775808\n",
        b"0\n1\norders 2147483648 17\n",
        b"0\n1\n../etc 0 17\n",
        b"0\n2\norders 0 17\norders 0 18\n",  # twice the same partition
        b"0\n1\norders 0 \xd9\xa1\n",
        b"\x00" * 64,
    ],
)
def test_a_malformed_line_makes_the_whole_checkpoint_corrupt(
    tmp_path: Path, content: bytes
) -> None:
    with pytest.raises(StorageCorrupt):
        checkpoint(tmp_path, content).read()


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    saved = checkpoint(tmp_path, b"")
    with Path(saved.path).open("r+b") as file:
        file.truncate(2**40)

    with pytest.raises(StorageCorrupt, match="at most"):
        saved.read()
