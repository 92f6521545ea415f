"""Only what carries the mark of a home is taken for something that was left behind there."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from brokers.supervisor.leftovers import mark, marked, send

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
