"""The mark of a clean shutdown: read once, gone at once."""

import random
from pathlib import Path

import pytest

from brokers.storage.clean_shutdown import take_clean_shutdown, write_clean_shutdown
from brokers.storage.files import LocalFiles
from tests.fakes.crash_files import CrashDisk


def test_the_file_is_exactly_as_kafka_writes_it(tmp_path: Path) -> None:
    write_clean_shutdown(LocalFiles(), str(tmp_path), 42)

    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":42}'


def test_the_mark_is_taken_once(tmp_path: Path) -> None:
    write_clean_shutdown(LocalFiles(), str(tmp_path), 42)

    assert take_clean_shutdown(LocalFiles(), str(tmp_path)) == 42
    assert take_clean_shutdown(LocalFiles(), str(tmp_path)) is None


def test_a_mark_without_an_epoch_is_a_clean_end_too(tmp_path: Path) -> None:
    (tmp_path / ".kafka_cleanshutdown").write_bytes(b'{"version":0}')

    assert take_clean_shutdown(LocalFiles(), str(tmp_path)) == -1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"version":1,"brokerEpoch":42}',
        b'{"version":0,"brokerEpoch":"42"}',
        b'{"version":0,"brokerEpoch":true}',
        b'{"version":0,"brokerEpoch":-2}',
        b"[" * 4_000,
        b"{" * 10_000,
    ],
)
def test_a_mark_that_says_nothing_is_an_unclean_end(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".kafka_cleanshutdown").write_bytes(content)

    assert take_clean_shutdown(LocalFiles(), str(tmp_path)) is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_mark_that_was_taken_does_not_come_back_with_the_power(tmp_path: Path) -> None:
    """KAFKA-10471: a crash during start must not look like the clean end before it."""
    for seed in range(20):
        disk = CrashDisk(tmp_path)
        with disk.files() as files:
            write_clean_shutdown(files, str(disk.live), 42)
            take_clean_shutdown(files, str(disk.live))
        disk.lose_power(random.Random(seed))

        assert take_clean_shutdown(LocalFiles(), str(disk.live)) is None
