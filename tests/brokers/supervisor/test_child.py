"""A child is watched from its first moment, and its end is told with its reason."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest

from brokers.supervisor.child import NEVER_BEGAN, Child, how_it_ended
from tests.cluster import ROOT


def ran(program: str, *, number: signal.Signals | None = None) -> int:
    """Run a program to its end and return its status; signal it first, where that is wanted."""

    async def scenario() -> int:
        child = Child((sys.executable, "-c", program), dict(os.environ), folder=Path.cwd())
        if number is not None:
            os.kill(child.pid, number)
        status = await asyncio.wait_for(child.exited, 20)
        os.close(child.output)
        os.close(child.ready_pipe)
        return status

    return asyncio.run(scenario())


def test_an_exit_code_is_told() -> None:
    assert ran("raise SystemExit(3)") == 3


def test_a_signal_is_told() -> None:
    assert ran("import signal; signal.pause()", number=signal.SIGKILL) == -signal.SIGKILL


def test_the_end_is_put_into_words() -> None:
    assert how_it_ended(3) == "ended with exit code 3"
    assert how_it_ended(-signal.SIGKILL) == "was killed by signal 9 (SIGKILL)"
    assert how_it_ended(-250) == "was killed by signal 250"


def test_a_child_leads_its_own_group_and_reads_nothing() -> None:
    program = "import os, sys; sys.exit(os.getpgrp() == os.getpid() and sys.stdin.read() == '')"

    assert ran(program) == 1


def test_a_child_whose_parent_died_before_it_was_tied_does_not_begin() -> None:
    # Nobody is its own parent: as if the right one had just gone.
    program = "from brokers.supervisor.child import *; tie_to_parent(os.getpid()); print('began')"

    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, stdout=PIPE, check=False)

    assert (done.returncode, done.stdout) == (NEVER_BEGAN, b"")


def test_a_child_that_cannot_be_watched_is_ended_and_leaves_nothing_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(_fd: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr("brokers.supervisor.child.os.dup", full)

    with pytest.raises(OSError, match="Too many open files"):
        Child((sys.executable, "-c", "pass"), dict(os.environ), folder=Path.cwd())

    assert len(os.listdir("/proc/self/fd")) == before


def test_a_program_that_is_not_there_is_an_error_and_leaves_nothing_open() -> None:
    async def scenario() -> None:
        Child(("/no/such/program",), {}, folder=Path.cwd())

    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        asyncio.run(scenario())

    assert len(os.listdir("/proc/self/fd")) == before
