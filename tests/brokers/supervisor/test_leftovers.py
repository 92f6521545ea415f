"""Only what carries the mark of a home is taken for something that was left behind there."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from brokers.supervisor import leftovers
from brokers.supervisor.leftovers import KILL_SECONDS, kill_all, mark, marked, send

WAITS = "import signal; signal.pause()"


@contextmanager
def waiting(**environment: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A process with this in its environment."""
    with subprocess.Popen(
        [sys.executable, "-c", WAITS], env={**os.environ, **environment}
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_marked_process_is_found_by_any_name_of_its_home(tmp_path: Path) -> None:
    home, link = tmp_path / "home", tmp_path / "link"
    home.mkdir()
    link.symlink_to(home)

    with waiting(**mark(link)) as process:
        assert list(marked(home)) == [process.pid]
        assert list(marked(link)) == [process.pid]


def test_a_process_that_only_uses_the_home_is_not_touched(tmp_path: Path) -> None:
    with waiting(SAMSA_HOME=str(tmp_path)) as process:
        assert send(tmp_path, signal.SIGKILL) == []
        assert process.poll() is None


def test_homes_whose_names_begin_alike_are_told_apart(tmp_path: Path) -> None:
    with waiting(**mark(tmp_path / "home-2")):
        assert list(marked(tmp_path / "home")) == []


def test_a_signal_reaches_all_that_are_marked(tmp_path: Path) -> None:
    with waiting(**mark(tmp_path)) as one, waiting(**mark(tmp_path)) as two:
        assert sorted(send(tmp_path, signal.SIGTERM)) == sorted([one.pid, two.pid])

        assert one.wait(20) == two.wait(20) == -signal.SIGTERM


def test_a_process_does_not_find_itself(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from brokers.supervisor.leftovers import marked;"
        f" print(list(marked(Path({str(tmp_path)!r}))))"
    )
    told = subprocess.check_output(
        [sys.executable, "-c", code], env={**os.environ, **mark(tmp_path)}, text=True
    )

    assert told == "[]\n"


def test_what_ignores_the_stop_is_killed_and_another_home_is_not(tmp_path: Path) -> None:
    one, two = tmp_path / "home", tmp_path / "home-2"
    with waiting(**mark(one)) as mine, waiting(**mark(two)) as strange:
        scans = kill_all(one, time.monotonic)
        next(scans)

        assert mine.wait(20) == -signal.SIGKILL
        assert len(list(scans)) == 1
        assert strange.poll() is None


def test_a_scan_that_missed_a_process_is_followed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[list[int]] = [[], [7], [], []]
    monkeypatch.setattr(leftovers, "send", lambda _home, _number: found.pop(0))

    # One pause before each scan but the first.
    assert len(list(kill_all(tmp_path, lambda: 0.0))) == 3
    assert found == []


def test_a_process_that_hangs_in_the_kernel_is_not_waited_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "send", lambda _home, _number: [7])
    clock = count()

    assert len(list(kill_all(tmp_path, lambda: float(next(clock))))) < KILL_SECONDS
