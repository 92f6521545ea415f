"""A disk that goes on failing is known as one, also by the processes that come after."""

import errno
from pathlib import Path

from brokers.storage.disk_failures import MAX_FAILURES, WITHIN_MS, note_failure, recent_failures
from brokers.storage.errors import LogDirFailed
from brokers.storage.files import LocalFiles
from tests.builders.logs import NOW_MS

FILES = LocalFiles()
FAILURE = LogDirFailed("/data/t-0/0.log", "fsync", OSError(errno.EIO, "Input/output error"))


def test_last_failures_of_a_day_are_listed_with_their_reason(tmp_path: Path) -> None:
    for number in range(MAX_FAILURES + 2):
        note_failure(FILES, str(tmp_path), FAILURE, NOW_MS + number)

    found = recent_failures(FILES, str(tmp_path), NOW_MS + 10)

    assert len(found) == MAX_FAILURES
    assert found[-1] == f"{NOW_MS + MAX_FAILURES + 1} {FAILURE}"
    assert "fsync of /data/t-0/0.log failed: Input/output error" in found[-1]
    assert recent_failures(FILES, str(tmp_path), NOW_MS + WITHIN_MS + 10) == []


def test_a_mark_that_makes_no_sense_counts_as_none(tmp_path: Path) -> None:
    assert recent_failures(FILES, str(tmp_path), NOW_MS) == []
    (tmp_path / "samsa.disk-failures").write_bytes(b"\xff\xfe\n\nnonsense 1\n-5 x\n")
    assert recent_failures(FILES, str(tmp_path), NOW_MS) == []
    (tmp_path / "samsa.disk-failures").write_bytes(bytes(100_000))
    assert recent_failures(FILES, str(tmp_path), NOW_MS) == []
