"""How many workers a run gets: none where it is small or must be seen, many where it waits."""

import argparse
from pathlib import Path

import pytest

from cli import durations, workers
from cli.workers import most, wanted

MANY = 6
LONG_RUN = {"a.py::long": 1000.0, "a.py::short": 0.1, "b.py::x": 2.0, "c.py::x": 11.0}


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cores, enough memory, and the durations above."""
    monkeypatch.setattr(durations, "FILE", tmp_path / "durations.json")
    monkeypatch.setattr(durations, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    durations.save(LONG_RUN)
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: {0, 1})
    monkeypatch.setattr(workers, "available_bytes", lambda: 8 << 30)
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).touch()


def options(*places: str, **given: object) -> argparse.Namespace:
    unset = {"numprocesses": None, "dist": "no", "capture": "fd", "file_or_dir": list(places)}
    return argparse.Namespace(**{**unset, **given})


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        (["a.py"], MANY),
        (["b.py"], 1),
        (["c.py"], 3),
        (["b.py", "c.py"], 4),
        (["a.py::short"], 1),
        (["a.py::long"], MANY),
        (["nowhere.py"], 1),
    ],
)
def test_a_run_gets_as_many_workers_as_its_tests_are_worth(
    places: list[str], expected: int
) -> None:
    assert wanted(options(*places)) == expected


@pytest.mark.parametrize(
    "given",
    [
        {"numprocesses": 3},
        {"numprocesses": 0},
        {"dist": "loadfile"},
        {"tx": ["3*popen"]},
        {"usepdb": True},
        {"capture": "no"},
        {"collectonly": True},
        {"lf": True},
        {"stepwise": True},
    ],
    ids=str,
)
def test_what_the_user_chose_or_must_see_gets_no_workers_of_ours(given: dict[str, object]) -> None:
    assert wanted(options("a.py", **given)) == 1


def test_without_xdist_there_are_no_workers() -> None:
    assert wanted(argparse.Namespace(capture="fd", file_or_dir=["a.py"])) == 1


def test_little_memory_means_few_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "available_bytes", lambda: 2 * workers.WORKER_BYTES + 1)
    assert most() == 2

    monkeypatch.setattr(workers, "available_bytes", lambda: 0)
    assert most() == 1


def test_memory_is_read_from_the_kernel() -> None:
    assert workers.available_bytes() > 0
