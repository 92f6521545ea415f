"""npm is asked once for the packages of a lock file, and for those of another lock file again."""

from pathlib import Path

import pytest

from cli.installer import InstallError
from tests.suite.npm import NodePackages

# Notes that it was asked, and installs one package where it is called.
WORKS = """#!/bin/sh
echo "$@" >> "$0.log"
mkdir -p node_modules/kafkajs
"""
FAILS = """#!/bin/sh
echo 'npm error the registry does not answer'
exit 1
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    folder = tmp_path / "client"
    folder.mkdir()
    for name in ("package.json", "package-lock.json"):
        (folder / name).write_text("{}", encoding="utf-8")
    return folder


def npm(folder: Path, script: str) -> None:
    program = folder / "npm"
    program.write_text(script, encoding="utf-8")
    program.chmod(0o755)


def test_packages_are_installed_once_by_their_lock_file(project: Path, tmp_path: Path) -> None:
    npm(tmp_path, WORKS)
    packages = NodePackages(project, tmp_path / "venv")

    packages.ensure()
    packages.ensure()

    assert packages.is_here()
    assert Path(packages.search_path, "kafkajs").is_dir()
    assert (tmp_path / "npm.log").read_text(encoding="utf-8").startswith("ci ")
    assert len((tmp_path / "npm.log").read_text(encoding="utf-8").splitlines()) == 1
    assert [folder.name for folder in (tmp_path / "venv").iterdir()] == [packages.folder.name]


def test_another_lock_file_has_another_folder(project: Path, tmp_path: Path) -> None:
    before = NodePackages(project, tmp_path / "venv")

    (project / "package-lock.json").write_text('{"lockfileVersion": 3}', encoding="utf-8")

    assert NodePackages(project, tmp_path / "venv").folder != before.folder


def test_a_failure_is_told_in_npms_words_and_leaves_nothing(project: Path, tmp_path: Path) -> None:
    npm(tmp_path, FAILS)
    packages = NodePackages(project, tmp_path / "venv")

    with pytest.raises(InstallError, match="the registry does not answer"):
        packages.ensure()

    assert not packages.is_here()
    assert list((tmp_path / "venv").iterdir()) == []
