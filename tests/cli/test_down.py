"""`down` leaves no process, whatever state the home is in."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from brokers.supervisor import leftovers
from brokers.supervisor.home import Home
from cli import down
from tests.cli.lifecycle import fake_home, samsa

PATIENCE = 20


@pytest.mark.slow
def test_a_running_home_is_stopped(tmp_path: Path) -> None:
    with fake_home(tmp_path) as supervisor:
        result = samsa("down", "--home", tmp_path)

        assert supervisor.wait(PATIENCE) == 0
        assert list(leftovers.marked(tmp_path)) == []

    assert result.exit_code == 0
    assert f"{tmp_path} stopped in " in result.stdout


@pytest.mark.slow
def test_what_outlived_its_supervisor_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(down, "LEFTOVER_SECONDS", 0.3)
    with fake_home(tmp_path, "broker-1=offspring") as supervisor:
        supervisor.kill()
        supervisor.wait()
        assert list(leftovers.marked(tmp_path))

        samsa("down", "--home", tmp_path)

        assert list(leftovers.marked(tmp_path)) == []


@pytest.mark.slow
def test_what_left_its_group_is_stopped(tmp_path: Path) -> None:
    with fake_home(tmp_path, "broker-1=runaway"):
        samsa("down", "--home", tmp_path)

        assert list(leftovers.marked(tmp_path)) == []


def test_a_process_that_one_scan_missed_is_found_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans: list[list[int]] = [[], [7]]
    monkeypatch.setattr(leftovers, "marked", lambda _home: scans.pop(0))

    assert down.is_any_left(tmp_path)


@pytest.mark.slow
def test_a_supervisor_that_hangs_is_killed_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(down, "STOP_SECONDS", 0.3)
    with fake_home(tmp_path) as supervisor:
        # Frozen: the kernel takes the request, and nobody reads it.
        os.kill(supervisor.pid, signal.SIGSTOP)
        monkeypatch.setattr("brokers.supervisor.client.ASK_SECONDS", 0.3)

        result = samsa("down", "--home", tmp_path)

        assert supervisor.wait(PATIENCE) == -signal.SIGKILL
        assert list(leftovers.marked(tmp_path)) == []
        assert "does not answer" in result.stderr


def test_a_supervisor_that_has_let_go_of_its_home_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Says that it is there, ends when its input does, and goes by the name that supervisors have.
    code = "import sys; print(flush=True); sys.stdin.read()"
    program = [sys.executable, "-c", code, "brokers.supervisor"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as leaving:
        assert leaving.stdout is not None
        leaving.stdout.readline()
        place = Home(tmp_path)
        waits: list[float] = []

        def sleep(seconds: float) -> None:
            waits.append(seconds)
            assert leaving.stdin is not None
            leaving.stdin.close()

        monkeypatch.setattr(Home, "owner", lambda _home: leaving.pid)
        monkeypatch.setattr("brokers.supervisor.client.ask", lambda _home, _command: {})
        monkeypatch.setattr(down, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))

        down.stop_supervisor(place)

        assert waits
        assert not down.is_supervisor(leaving.pid)
        assert leaving.wait(PATIENCE) == 0


def test_a_home_that_does_not_run_is_no_failure(tmp_path: Path) -> None:
    result = samsa("down", "--home", tmp_path)

    assert (result.exit_code, result.stdout) == (0, f"{tmp_path} is not running\n")


def test_a_process_that_is_no_supervisor_is_never_killed() -> None:
    """The lock is taken before its owner has written who it is."""
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as stranger:
        for number in (0, -1, stranger.pid):
            down.kill(number)

        assert stranger.poll() is None
        stranger.terminate()
