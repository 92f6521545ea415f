"""What each test took in earlier runs: how many workers a run is worth, and what to start first.

Kept beside the installed packages: every checkout measures for itself, and a fresh one guesses
from the marks in a test file. A wrong guess costs seconds of waiting and no correctness.
"""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from cli.environment import ROOT

FILE: Final = ROOT / ".venv" / "test-durations.json"
# The project has some ten thousand tests; ids of tests that are gone are dropped beyond this.
MAX_ENTRIES: Final = 50_000
# The first mark that a file has says what one of its tests takes, where nobody has measured it.
GUESSES: Final = (
    ("pytest.mark.timeout(", 20.0),
    ("pytest.mark.interop", 3.0),
    ("pytest.mark.slow", 0.5),
)
GUESS: Final = 0.02


def load() -> dict[str, float]:
    """Return seconds by the id of the test; nothing where no run has ended yet."""
    try:
        known = json.loads(FILE.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        # Also a file that another version wrote or that was cut short: it is only a hint.
        return {}
    return {str(name): float(seconds) for name, seconds in known.items()}


def save(measured: Mapping[str, float]) -> None:
    """Add what a run measured to what is known."""
    known = {**load(), **measured}
    if len(known) > MAX_ENTRIES:
        known = dict(measured)
    # Two runs may end at the same time; each puts a whole file in place.
    written = FILE.with_suffix(f".{os.getpid()}")
    written.write_text(json.dumps(known), encoding="utf-8")
    written.replace(FILE)


def guess(path: str) -> float:
    """Guess the seconds of one test of a file, by the marks in it."""
    try:
        text = (ROOT / path).read_text(encoding="utf-8")
    except OSError:
        return GUESS
    return next((seconds for mark, seconds in GUESSES if mark in text), GUESS)


def expected(places: Iterable[Path], known: Mapping[str, float]) -> float:
    """Return the seconds that all tests below files and folders take, one after the other."""
    by_file: dict[str, float] = {}
    for name, seconds in known.items():
        path = name.partition("::")[0]
        by_file[path] = by_file.get(path, 0.0) + seconds
    return sum(
        by_file[path] if (path := relative(file)) in by_file else count_tests(file) * guess(path)
        for file in test_files(places)
    )


def relative(file: Path) -> str:
    """Return a file as the ids of its tests name it."""
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
