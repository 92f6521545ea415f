"""The topic id of a partition folder."""

from pathlib import Path

import pytest

from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import LocalFiles
from brokers.storage.partition_metadata import (
    decode_id,
    encode_id,
    read_partition_metadata,
    write_partition_metadata,
)

TOPIC_ID = bytes(range(16))


def test_the_file_is_text_exactly_as_kafka_writes_it(tmp_path: Path) -> None:
    write_partition_metadata(LocalFiles(), str(tmp_path), TOPIC_ID)

    written = (tmp_path / "partition.metadata").read_bytes()
    assert written == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert read_partition_metadata(LocalFiles(), str(tmp_path)) == TOPIC_ID


def test_a_folder_without_the_file_has_no_id(tmp_path: Path) -> None:
    assert read_partition_metadata(LocalFiles(), str(tmp_path)) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version: 0\n",
        b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw",
        b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0OD",
        b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw==",
        b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0OD!",
        b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODx",  # bits behind the 128
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",  # the id of no topic
        b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\nmore",
        b"\xff" * 43,
        bytes(43),
    ],
)
def test_a_damaged_file_is_corrupt(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "partition.metadata").write_bytes(content)

    with pytest.raises(StorageCorrupt):
        read_partition_metadata(LocalFiles(), str(tmp_path))


@pytest.mark.parametrize("raw", [bytes(16), b"\xff" * 16, TOPIC_ID])
def test_ids_are_read_as_they_are_written(raw: bytes) -> None:
    assert len(encode_id(raw)) == 22
    assert decode_id(encode_id(raw)) == raw


def test_text_that_is_not_an_id_is_recognized() -> None:
    assert decode_id("") is None
    assert decode_id("ä" * 22) is None
