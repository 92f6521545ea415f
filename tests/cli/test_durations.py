"""What is known of earlier runs, and what is guessed where nothing is."""

import json
from pathlib import Path

import pytest

from cli import durations
from cli.environment import ROOT


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "durations.json"
    monkeypatch.setattr(durations, "FILE", made)
    return made


def test_what_a_run_measured_is_added_to_what_was_known(file: Path) -> None:
    durations.save({"a.py::one": 1.0, "a.py::two": 2.0})
    durations.save({"a.py::two": 3.0})

    assert durations.load() == {"a.py::one": 1.0, "a.py::two": 3.0}
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("content", [None, b"", b"{", b"\xff"])
def test_a_file_that_cannot_be_read_says_nothing(file: Path, content: bytes | None) -> None:
    if content is not None:
        file.write_bytes(content)

    assert durations.load() == {}


def test_tests_that_are_gone_are_dropped_when_there_are_too_many(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durations, "MAX_ENTRIES", 2)
    durations.save({"old.py::one": 1.0, "old.py::two": 1.0})

    durations.save({"new.py::one": 1.0})

    assert json.loads(file.read_text()) == {"new.py::one": 1.0}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("def test_a(): ...", 0.02),
        ("pytestmark = pytest.mark.slow", 0.5),
        ("pytestmark = [pytest.mark.interop, pytest.mark.slow]", 3.0),
        ("pytestmark = [pytest.mark.campaign, pytest.mark.interop]", 15.0),
        ("pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]", 20.0),
    ],
)
def test_a_test_that_was_never_run_is_guessed_by_its_marks(
    tmp_path: Path, text: str, seconds: float
) -> None:
    (tmp_path / "test_it.py").write_text(text, encoding="utf-8")

    assert durations.guess(str(tmp_path / "test_it.py")) == seconds


def test_a_place_takes_what_its_files_took_and_a_guess_for_the_others(tmp_path: Path) -> None:
    measured, new = tmp_path / "test_measured.py", tmp_path / "deep" / "test_new.py"
    new.parent.mkdir()
    measured.touch()
    new.write_text("def test_a(): ...\ndef test_b(): ...\n", encoding="utf-8")
    path = durations.relative(measured)

    seconds = durations.expected([tmp_path], {f"{path}::a": 4.0, f"{path}::b": 2.0, "c.py::c": 9})

    assert seconds == pytest.approx(6.0 + 2 * 0.02)


def test_files_are_named_as_the_ids_of_their_tests_name_them() -> None:
    assert durations.relative(ROOT / "tests" / "cli" / "test_test.py") == "tests/cli/test_test.py"
