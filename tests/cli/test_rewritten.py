"""Asserts are rewritten once, in parts of about the same size, and only while most are missing."""

from pathlib import Path

import pytest

from cli import rewritten


@pytest.fixture
def tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tests"
    folder.mkdir()
    for number, size in enumerate((50, 30, 30, 10)):
        (folder / f"test_{number}.py").write_bytes(b"#" * size)
    monkeypatch.setattr(rewritten, "TESTS", folder)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "stored"))
    return folder


def refuse(*arguments: object, **options: object) -> None:
    raise AssertionError(arguments)


def test_parts_have_about_the_same_number_of_bytes(tests: Path) -> None:
    parts = rewritten.divide(sorted(tests.iterdir()))

    sizes = [sum(file.stat().st_size for file in part) for part in parts]
    assert sizes == [60, 60]


def test_nothing_starts_while_most_files_are_stored(
    tests: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = (tmp_path / "stored").joinpath(*tests.parts[1:])
    stored.mkdir(parents=True)
    for number in range(3):
        (stored / f"test_{number}.cpython-311-pytest-9.2.0.pyc").touch()
    monkeypatch.setattr("subprocess.Popen", refuse)

    rewritten.rewrite_tests()


def test_a_new_checkout_stores_all_files(
    tests: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    class Started:
        def __init__(self, command: list[str], **options: object) -> None:
            started.append(command)

        def wait(self) -> None:
            pass

    monkeypatch.setattr("subprocess.Popen", Started)

    rewritten.rewrite_tests()

    named = sorted(word for command in started for word in command if word.endswith(".py"))
    assert named == sorted(map(str, tests.iterdir()))
