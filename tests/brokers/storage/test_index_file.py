"""Index files as Kafka leaves them and as crashes leave them."""

from pathlib import Path

import pytest

from brokers.storage.files import LocalFiles
from brokers.storage.index_file import read_entries, write_entries
from tests.fakes.faulty_files import FaultyFiles

FILES = LocalFiles()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", b""),
        (b"12345678", b"12345678"),
        (b"12345678abc", b"12345678"),
        (b"12345678" + bytes(80), b"12345678"),
        (b"123456\0\0" + bytes(80), b"123456\0\0"),
        (bytes(80), b""),
        (b"12345678" + bytes(83), b"12345678"),
    ],
)
def test_only_whole_entries_in_front_of_the_preallocated_zeros_are_read(
    tmp_path: Path, content: bytes, expected: bytes
) -> None:
    (tmp_path / "0.index").write_bytes(content)

    assert read_entries(FILES, str(tmp_path / "0.index"), 8) == expected


def test_a_missing_file_has_no_entries(tmp_path: Path) -> None:
    assert read_entries(FILES, str(tmp_path / "0.index"), 8) == b""


@pytest.mark.parametrize("before", [b"", b"12345678", b"12345678" + bytes(24), b"12345678broken"])
def test_writing_replaces_everything_behind_the_kept_entries(tmp_path: Path, before: bytes) -> None:
    (tmp_path / "0.index").write_bytes(before)

    write_entries(FILES, str(tmp_path / "0.index"), b"abcdefgh", min(8, len(before)))

    assert (tmp_path / "0.index").read_bytes() == before[:8] + b"abcdefgh"


def test_short_writes_are_continued(tmp_path: Path) -> None:
    files = FaultyFiles()
    files.shorten("pwrite", 3)

    write_entries(files, str(tmp_path / "0.index"), b"abcdefghijklmnop", 0)

    assert (tmp_path / "0.index").read_bytes() == b"abcdefghijklmnop"
