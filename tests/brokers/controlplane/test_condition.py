"""What an agent tells about itself in its home, and who reads it."""

import json
import os
from pathlib import Path

import pytest

from brokers.controlplane import condition as file
from tests.builders.conditions import NOW_MS, condition


def test_what_was_written_is_read(tmp_path: Path) -> None:
    said = condition(condition=file.REGRESSED, message="it was set back")

    file.write(tmp_path, said)

    assert file.read(tmp_path) == said
    assert said.is_regressed
    assert not list(tmp_path.glob("run/*.new"))


def test_a_status_is_its_owners_alone_and_names_what_others_read(tmp_path: Path) -> None:
    file.write(tmp_path, condition())

    written = tmp_path / file.STATUS_FILE
    assert written.stat().st_mode & 0o777 == 0o600
    told = json.loads(written.read_text())
    assert told["condition"] == "well"
    assert told["pid"] == os.getpid()
    assert told["written_at_ms"] == NOW_MS


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', "null", "\ud800"])
def test_what_is_no_status_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / file.STATUS_FILE).write_bytes(text.encode("utf-8", "surrogatepass"))

    assert file.read(tmp_path) is None


def test_a_home_without_a_status_says_nothing(tmp_path: Path) -> None:
    assert file.read(tmp_path) is None
    file.remove(tmp_path)
