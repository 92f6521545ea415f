"""The process that cleans, as its parent sees it."""

import errno
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from brokers.storage.clean_worker import (
    FAILED,
    MAX_MESSAGE_BYTES,
    REFUSED,
    ParentGone,
    decode_job,
    decode_result,
    encode_job,
    main,
    work,
)
from brokers.storage.cleaning import CleaningFailed
from brokers.storage.files import LocalFiles
from tests.builders.cleaning import (
    compacted,
    compacted_log,
    fill_keys,
    latest,
    plan,
    rows_of,
    swap_cleaned,
)
from tests.builders.logs import NOW_MS, files_of

ROWS = [(b"k%d" % (number % 5), b"v" * 40) for number in range(200)]
ROOT = Path(__file__).parents[3]


def run(job: bytes, parent: int = 0) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "brokers.storage.clean_worker", str(parent or os.getpid())]
    return subprocess.run(
        command, input=job, capture_output=True, cwd=ROOT, env={}, timeout=30, check=False
    )


def test_a_process_without_an_environment_cleans_a_log(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, compacted(segment_bytes=2_000))
    fill_keys(log, ROWS)
    truth, size, cleaning = latest(rows_of(log)), log.size_bytes, plan(log)

    ended = run(encode_job(cleaning))

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert swap_cleaned(log, cleaning, decode_result(ended.stdout), NOW_MS)
    assert latest(rows_of(log)) == truth
    assert log.size_bytes < size / 4


def test_a_process_that_cannot_says_why_in_one_line(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, compacted(segment_bytes=2_000))
    fill_keys(log, ROWS)
    cleaning = plan(log)
    Path(log.segments[0].file.path).unlink()

    ended = run(encode_job(cleaning))

    assert (ended.returncode, ended.stdout) == (1, b"")
    assert ended.stderr.count(b"\n") == 1
    assert b".log" in ended.stderr
    assert not files_of(log, ".cleaned")


@pytest.mark.parametrize("job", [b"", b"[]", b"{}", b'{"sources":[{}]}', b'{"sources":[],"x":1}'])
def test_malformed_job_is_refused(job: bytes) -> None:
    with pytest.raises(CleaningFailed):
        decode_job(job)
    with pytest.raises(CleaningFailed):
        decode_result(job)


def test_a_message_without_end_is_not_read(tmp_path: Path) -> None:
    job = io.BytesIO(b" " * (MAX_MESSAGE_BYTES + 2))

    with pytest.raises(CleaningFailed, match="exceeds"):
        work(LocalFiles(), job, io.BytesIO(), parent=os.getppid())


def test_a_worker_whose_parent_is_gone_stops_and_touches_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = compacted_log(tmp_path, compacted(segment_bytes=2_000))
    fill_keys(log, ROWS)
    parents = iter([42, 42, 1])
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    answer = io.BytesIO()

    with pytest.raises(ParentGone):
        work(LocalFiles(), io.BytesIO(encode_job(plan(log))), answer, parent=42)

    assert not answer.getvalue()


def test_a_worker_that_comes_too_late_for_its_parent_writes_nothing(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, compacted(segment_bytes=2_000))
    fill_keys(log, ROWS)

    ended = run(encode_job(plan(log)), parent=1)

    assert (ended.returncode, ended.stdout) == (FAILED, b"")
    assert b"ParentGone" in ended.stderr
    assert not files_of(log, ".cleaned")


@pytest.mark.parametrize(
    ("call", "number"), [("write", errno.ENOSPC), ("open", errno.EMFILE), ("open", errno.EACCES)]
)
def test_refusal_differs_from_a_log_that_cannot_be_cleaned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    real = getattr(LocalFiles, call)

    def refuse(files: LocalFiles, *given: Any) -> Any:
        if isinstance(given[0], str) and not given[0].endswith(".cleaned"):
            return real(files, *given)
        raise OSError(number, "refused")

    log = compacted_log(tmp_path, compacted(segment_bytes=2_000))
    fill_keys(log, ROWS)
    job = io.TextIOWrapper(io.BytesIO(encode_job(plan(log))))
    monkeypatch.setattr(sys, "argv", ["clean_worker", str(os.getppid())])
    monkeypatch.setattr(sys, "stdin", job)
    monkeypatch.setattr(os, "nice", lambda _: 0)
    monkeypatch.setattr(LocalFiles, call, refuse)

    assert main() == REFUSED


def test_a_job_says_which_segments_hold_aborted_transactions(tmp_path: Path) -> None:
    log = compacted_log(tmp_path, compacted(segment_bytes=2_000))
    fill_keys(log, ROWS)
    log.segments[1].open_txn_index()

    job = decode_job(encode_job(plan(log)))

    assert [source.is_whole for source in job.sources[:3]] == [False, True, False]
