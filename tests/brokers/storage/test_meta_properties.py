"""Whose log dir it is: both of Kafka's versions, Java's escapes, and no guessing."""

from pathlib import Path

import pytest

from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import LocalFiles
from brokers.storage.meta_properties import (
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)

OURS = MetaProperties(node_id=3, cluster_id="x=:c #!\\-_9", directory_id=bytes(range(16)))


def read(folder: Path, content: bytes) -> MetaProperties | None:
    (folder / "meta.properties").write_bytes(content)
    return read_meta_properties(LocalFiles(), str(folder))


def test_written_properties_are_read(tmp_path: Path) -> None:
    write_meta_properties(LocalFiles(), str(tmp_path), OURS)

    assert read_meta_properties(LocalFiles(), str(tmp_path)) == OURS


def test_a_file_that_kafka_wrote_is_read(tmp_path: Path) -> None:
    """Written by the MetaProperties class of Apache Kafka 4.3.0."""
    content = (
        b"#\n#Wed Nov 18 08:57:50 UTC 2026\nnode.id=3\ndirectory.id=AAECAwQFBgcICQoLDA0ODw\n"
        b"version=1\ncluster.id=x\\=\\:c \\#\\!\\\\-_9\n"
    )

    assert read(tmp_path, content) == OURS


def test_a_file_of_zookeepers_time_is_read(tmp_path: Path) -> None:
    content = b"! old\r\nversion = 0\r\n  broker.id:7\r\ncluster.id\tabc\r\n\r\n"

    assert read(tmp_path, content) == MetaProperties(node_id=7, cluster_id="abc", directory_id=None)


def test_an_unclaimed_dir_has_no_owner(tmp_path: Path) -> None:
    assert read_meta_properties(LocalFiles(), str(tmp_path)) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 100,
        b"version=2\nnode.id=3\ncluster.id=c\n",
        b"version=1\ncluster.id=c\n",
        b"version=1\nbroker.id=3\ncluster.id=c\n",
        b"version=1\nnode.id=-3\ncluster.id=c\n",
        b"version=1\nnode.id=3\n",
        b"version=1\nnode.id=3\ncluster.id=\n",
        b"version=1\nnode.id=3\ncluster.id=c\ndirectory.id=short\n",
        b"version=1\nnode.id=2147483648\ncluster.id=c\n",
        b"#" * 100_000,
    ],
)
def test_a_file_that_does_not_say_is_corrupt(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(StorageCorrupt):
        read(tmp_path, content)
