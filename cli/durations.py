"""Stores the durations of tests, to choose the number of workers and the order of tests.

Stored beside the installed packages: every checkout measures for itself, and a new one guesses
from the marks in test files. A wrong guess costs seconds of waiting, but never correctness.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from cli.environment import ROOT

FILE: Final = ROOT / ".venv" / "test-durations.json"
# The project has about ten thousand tests; beyond this, ids of removed tests are dropped.
MAX_ENTRIES: Final = 50_000
# Without a measurement, the first of these marks in a file gives the duration of each test.
GUESSES: Final = (
    ("pytest.mark.timeout(", 20.0),
    ("pytest.mark.campaign", 15.0),
    ("pytest.mark.interop", 3.0),
    ("pytest.mark.slow", 0.5),
)
GUESS: Final = 0.02


def load() -> dict[str, float]:
    """Return seconds by test id; empty before the first run."""
    try:
        known = json.loads(FILE.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        # For example, an incomplete file, or one of another version: it is only a hint.
        return {}
    return {str(name): float(seconds) for name, seconds in known.items()}


def save(measured: Mapping[str, float]) -> None:
    """Add the measurements of a run."""
    known = {**load(), **measured}
    if len(known) > MAX_ENTRIES:
        known = dict(measured)
    # Two runs may end at the same time; each replaces the file atomically.
    written = FILE.with_suffix(f".{os.getpid()}")
    written.write_text(json.dumps(known), encoding="utf-8")
    written.replace(FILE)


def guess(path: str) -> float:
    """Guess the seconds of a test in a file, by the marks in it."""
    try:
        text = (ROOT / path).read_text(encoding="utf-8")
    except OSError:
        return GUESS
    return next((seconds for mark, seconds in GUESSES if mark in text), GUESS)


def expected(places: Iterable[Path], known: Mapping[str, float]) -> float:
    """Return the seconds of all tests in files and folders, run sequentially."""
    by_file: dict[str, float] = {}
    for name, seconds in known.items():
        path = name.partition("::")[0]
        by_file[path] = by_file.get(path, 0.0) + seconds
    return sum(
        by_file[path] if (path := relative(file)) in by_file else count_tests(file) * guess(path)
        for file in test_files(places)
    )


def relative(file: Path) -> str:
    """Return the path of a file as in the ids of its tests."""
    return os.path.relpath(file, ROOT)


def test_files(places: Iterable[Path]) -> set[Path]:
    return {
        file.resolve()
        for place in places
        for file in (place.rglob("test_*.py") if place.is_dir() else [place])
    }


def count_tests(file: Path) -> int:
    try:
        return file.read_text(encoding="utf-8").count("def test_")
    except OSError:
        return 0
