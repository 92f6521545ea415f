"""The mark of an agent, and what it says once the agent has ended."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brokers.controlplane import presence


def leave(home: Path, mark: str) -> None:
    (home / presence.MARK_FILE).write_text(mark)


def namespace() -> str:
    return presence.mark().split()[1]


def test_a_home_that_never_had_an_agent_misses_none(tmp_path: Path) -> None:
    assert not presence.is_gone(tmp_path)


@contextmanager
def program(*words: str) -> Iterator[int]:
    """Run something under these words until the block ends; its process id."""
    waiting = "import sys; print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", waiting, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        # Until it speaks, it may not be called what it will be called.
        process.stdout.readline()
        yield process.pid
        process.communicate()


def test_an_agent_is_there_while_its_process_is(tmp_path: Path) -> None:
    with program("agent") as process:
        leave(tmp_path, f"{process}\n{namespace()}\n")
        was_gone = presence.is_gone(tmp_path)

    assert not was_gone
    assert presence.is_gone(tmp_path)


def test_another_program_of_the_same_number_is_no_agent(tmp_path: Path) -> None:
    with program() as process:
        leave(tmp_path, f"{process}\n{namespace()}\n")

        assert presence.is_gone(tmp_path)


@pytest.mark.parametrize("mark", ["", "1\n", "x y", "1\npid:[1]\n", "\xff" * 300, "1 2 3"])
def test_who_cannot_be_seen_from_here_is_not_called_dead(tmp_path: Path, mark: str) -> None:
    leave(tmp_path, mark)

    assert not presence.is_gone(tmp_path)
