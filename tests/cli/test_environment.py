"""The environment is made once, mended when it is not whole, and left alone otherwise."""

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.environment import SETS, Environment, version_of
from cli.installer import InstallError


class Disk:
    """Stands for venv and installers: makes what they would make, and keeps count."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.made = 0
        self.installed: list[str] = []
        self.failure: BaseException | None = None
        for packages in SETS.values():
            (root / packages.requirements).write_text("one==1\n", encoding="utf-8")

    def environment(self) -> Environment:
        return Environment(self.root, installer=self.install, maker=self.make)

    def make(self, folder: Path) -> None:
        self.made += 1
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").symlink_to(sys.executable)
        (folder / "lib" / "python3.11" / "site-packages").mkdir(parents=True)

    def install(
        self, python: Path, requirements: Path, *, with_dependencies: bool, uv_requirements: Path
    ) -> None:
        if self.failure is not None:
            raise self.failure
        self.installed.append(requirements.name)
        (metadata,) = python.parents[1].glob("lib/python*/site-packages")
        (metadata / "one-1.dist-info").mkdir(exist_ok=True)
        (metadata / "one-1.dist-info" / "INSTALLER").touch()


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def test_a_second_start_installs_nothing(disk: Disk) -> None:
    disk.environment().ensure("run")

    disk.environment().ensure("run")

    assert (disk.made, disk.installed) == (1, ["requirements-run.txt"])


def test_a_checkout_is_found_from_anywhere(disk: Disk) -> None:
    disk.environment().ensure("run")

    (found,) = disk.root.glob(".venv/lib/python*/site-packages/*.pth")

    assert found.read_text(encoding="utf-8").strip() == str(disk.root)


def test_another_set_joins_the_environment_that_is_there(disk: Disk) -> None:
    disk.environment().ensure("run")

    disk.environment().ensure("test")

    assert disk.made == 1
    assert disk.environment().has("run")
    assert disk.environment().has("test")


def test_changed_requirements_are_installed_into_the_same_environment(disk: Disk) -> None:
    disk.environment().ensure("run")
    (disk.root / "requirements-run.txt").write_text("one==2\n", encoding="utf-8")

    assert not disk.environment().has("run")
    disk.environment().ensure("run")

    assert (disk.made, len(disk.installed)) == (1, 2)


def test_an_interrupted_installation_is_made_anew(disk: Disk) -> None:
    disk.environment().ensure("run")
    disk.failure = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        disk.environment().ensure("test")
    disk.failure = None

    assert not disk.environment().has("run")
    disk.environment().ensure("run")

    assert disk.made == 2
    assert disk.environment().has("run")


def test_an_interrupted_extra_is_installed_again_in_the_environment_that_runs(disk: Disk) -> None:
    disk.environment().ensure("run")
    disk.failure = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        disk.environment().ensure("spark")
    disk.failure = None

    assert disk.environment().has("run")
    assert not disk.environment().has("spark")
    disk.environment().ensure("spark")

    assert disk.made == 1
    assert disk.environment().has("run")
    assert disk.environment().has("spark")


def test_an_interrupted_extra_that_replaced_a_package_of_others_has_them_mended(
    disk: Disk,
) -> None:
    disk.environment().ensure("run")
    disk.failure = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        disk.environment().ensure("spark")
    disk.failure = None
    (half,) = disk.root.glob(".venv/lib/python*/site-packages/*.dist-info/INSTALLER")
    half.unlink()

    assert not disk.environment().has("run")
    disk.environment().ensure("run")

    assert disk.made == 1
    assert disk.environment().has("run")


def test_an_extra_that_was_uninstalled_by_hand_is_missing(disk: Disk) -> None:
    disk.environment().ensure("run")
    disk.environment().ensure("spark")
    (package,) = disk.root.glob(".venv/lib/python*/site-packages/*.dist-info")
    shutil.rmtree(package)

    assert not disk.environment().has("spark")
    disk.environment().ensure("spark")

    assert disk.environment().has("spark")


def test_a_failed_installation_leaves_what_was_whole(disk: Disk) -> None:
    disk.environment().ensure("run")
    disk.failure = InstallError("no network")

    with pytest.raises(InstallError):
        disk.environment().ensure("test")

    assert disk.environment().has("run")
    assert not disk.environment().has("test")


@pytest.mark.parametrize("state", ["", "{", "[]", '{"root": "/elsewhere"}'])
def test_a_broken_state_file_means_a_new_environment(disk: Disk, state: str) -> None:
    disk.environment().ensure("run")
    (disk.root / ".venv" / "samsa-state.json").write_text(state, encoding="utf-8")

    disk.environment().ensure("run")

    assert disk.made == 2


def test_an_environment_without_its_interpreter_is_made_anew(disk: Disk) -> None:
    disk.environment().ensure("run")
    (disk.root / ".venv" / "bin" / "python").unlink()

    disk.environment().ensure("run")

    assert disk.made == 2


def test_an_environment_of_another_python_is_made_anew(disk: Disk) -> None:
    disk.environment().ensure("run")
    state_file = disk.root / ".venv" / "samsa-state.json"
    state = json.loads(state_file.read_text(encoding="utf-8"))
    state_file.write_text(json.dumps({**state, "python": "3.10", "run": ""}), encoding="utf-8")

    disk.environment().ensure("run")

    assert disk.made == 2


def test_two_at_once_install_once(disk: Disk) -> None:
    starts = [threading.Thread(target=disk.environment().ensure, args=["run"]) for _ in range(4)]

    for start in starts:
        start.start()
    for start in starts:
        start.join()

    assert (disk.made, disk.installed) == (1, ["requirements-run.txt"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_checkout_of_another_user_is_refused_with_a_sentence(disk: Disk) -> None:
    disk.root.chmod(0o555)

    with pytest.raises(InstallError, match="your own clone"):
        disk.environment().ensure("run")


def test_the_version_of_an_interpreter_that_does_not_start_is_unknown(tmp_path: Path) -> None:
    assert version_of(tmp_path / "python") == ""
    assert version_of("/bin/false") == ""


def test_every_set_has_its_requirements_file() -> None:
    root = Path(__file__).resolve().parents[2]

    missing = [s.requirements for s in SETS.values() if not (root / s.requirements).is_file()]

    assert missing == []


@pytest.fixture
def launcher(tmp_path: Path) -> Callable[..., str]:
    """`samsa` beside a stand-in for the environment, which says who runs it and stops there."""
    root = Path(__file__).resolve().parents[2]
    shutil.copy(root / "samsa", tmp_path / "samsa")
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "environment.py").write_text(
        "import sys; sys.exit(f'run by {sys.executable}')", encoding="utf-8"
    )

    def run(path: str) -> str:
        process = os.popen(f"cd / && PATH={path} {tmp_path}/samsa --help 2>&1")  # noqa: S605
        with process:
            return process.read()

    return run


def test_the_launcher_passes_over_interpreters_that_cannot_build(
    tmp_path: Path, launcher: Callable[..., str]
) -> None:
    folders = [tmp_path / "shims", tmp_path / "whole"]
    for folder in folders:
        folder.mkdir()
    (folders[0] / "python3.13").write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
    (folders[0] / "python3.13").chmod(0o755)
    (folders[0] / "python3.12").write_text("not for this user", encoding="utf-8")
    (folders[1] / "python3.13").symlink_to(sys.executable)

    said = launcher(f"{folders[0]}:{folders[1]}:/bin:/usr/bin")

    assert "run by" in said
    assert str(folders[0]) not in said
