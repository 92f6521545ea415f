"""Workers write to memory where it has room, and to the disk where anything speaks against it."""

import os
import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.suite.folders import LEAST_FREE_BYTES, write_to_memory


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give this process a folder of its own for temporary files, and memory with room."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    set_free(monkeypatch, LEAST_FREE_BYTES)
    return tmp_path


def set_free(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))


def test_temporary_folders_are_made_in_memory_that_has_room(disk: Path, tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    memory.mkdir()

    write_to_memory(memory)

    folder = memory / f"samsa-{os.getuid()}"
    assert os.environ["TMPDIR"] == tempfile.gettempdir() == str(folder)
    assert folder.stat().st_mode & 0o777 == 0o711


def test_a_machine_without_such_memory_writes_to_its_disk(disk: Path) -> None:
    write_to_memory(disk / "nowhere")

    assert tempfile.gettempdir() == str(disk)


def test_memory_that_is_nearly_full_is_left_alone(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_free(monkeypatch, LEAST_FREE_BYTES - 1)

    write_to_memory(tmp_path)

    assert tempfile.gettempdir() == str(disk)


def test_a_link_that_somebody_laid_is_not_followed(disk: Path, tmp_path: Path) -> None:
    memory, elsewhere = tmp_path / "memory", tmp_path / "elsewhere"
    memory.mkdir()
    elsewhere.mkdir()
    (memory / f"samsa-{os.getuid()}").symlink_to(elsewhere)

    write_to_memory(memory)

    assert tempfile.gettempdir() == str(disk)
