"""A home whose folder of files is empty."""

from pathlib import Path

import pytest


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of files of a home that the process believes to be its own."""
    monkeypatch.setenv("SAMSA_HOME", str(tmp_path / "home"))
    folder = tmp_path / "home" / "files"
    folder.mkdir(parents=True)
    return folder
