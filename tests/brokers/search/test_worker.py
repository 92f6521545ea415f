"""The process that searches: lines out, and no life without its parent."""

import io
import json
import os
from pathlib import Path

import pytest

from brokers.search.question import encode_job
from brokers.search.worker import ParentGone, work
from brokers.storage.files import LocalFiles
from tests.brokers.search.test_log_search import Pace, contains, filled, job


def test_a_job_in_lines_out(tmp_path: Path) -> None:
    target = io.BytesIO()
    source = io.BytesIO(encode_job(job(filled(tmp_path), contains("needle"))))

    work(LocalFiles(), Pace(), source, target, parent=os.getppid())

    lines = [json.loads(line) for line in target.getvalue().splitlines()]
    assert [line["offset"] for line in lines[:-1]] == [7, 17, 27, 37, 47]
    assert lines[-1]["kind"] == "done"


def test_a_search_ends_when_its_broker_is_gone(tmp_path: Path) -> None:
    source = io.BytesIO(encode_job(job(filled(tmp_path))))

    with pytest.raises(ParentGone):
        work(LocalFiles(), Pace(), source, io.BytesIO(), parent=1)
