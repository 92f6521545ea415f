"""One command starts all of it, mends what is killed, and stops without a trace."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from brokers.supervisor import leftovers
from brokers.supervisor.errors import StartRefused
from cli import up
from tests.cli.lifecycle import fake_command, samsa, told
from tests.cluster import ROOT, START_SECONDS, wait_until_gone

# What a killed component may cost.
BACK_WITHIN = 5
# A look costs the supervisor and this process some milliseconds of CPU.
LOOK_SECONDS = 0.05
# The processes of a home with two brokers, the supervisor aside.
COMPONENTS = ("agent", "broker-1", "broker-2", "web", "collector")


def samsa_process(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """Run `./samsa` as a process of its own, as `--detach` needs it."""
    return subprocess.run(
        [sys.executable, "-m", "cli", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
    )


@contextmanager
def stopped_after(*homes: Path) -> Iterator[None]:
    """See to it that nothing of these homes survives the test."""
    try:
        yield
    finally:
        for home in homes:
            samsa("down", "--home", home)


def start(home: Path) -> "subprocess.CompletedProcess[str]":
    ports = ("--brokers", "2", "--port", "0", "--web-port", "0")
    return samsa_process("up", "--detach", "--home", home, *ports)


def start_and_check(home: Path) -> Mapping[str, Any]:
    """Start a home with two brokers; return what `status` says of it."""
    done = start(home)
    assert done.returncode == 0, done.stdout + done.stderr
    result = samsa("status", "--json", "--home", home)
    assert result.exit_code == 0
    status = told(result)
    # All come at once, in any order; broker-1 is broker 1 all the same.
    assert [broker["id"] for broker in status["brokers"]] == [1, 2]
    assert status["bootstrap"] in done.stdout
    assert (home / "secrets" / "admin-password").stat().st_mode & 0o777 == 0o600
    return status


def stop_and_check(home: Path) -> None:
    """Stop a home, and find nothing of it running."""
    assert samsa("down", "--home", home).exit_code == 0
    assert list(leftovers.marked(home)) == []
    assert samsa("status", "--home", home).exit_code == 1


@pytest.mark.slow
def test_homes_start_side_by_side_and_stop_without_a_trace_each_by_itself(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    with stopped_after(one, two):
        first, second = start_and_check(one), start_and_check(two)

        stop_and_check(one)
        assert samsa("status", "--home", two).exit_code == 0
        start_and_check(one)
        stop_and_check(one)

        assert first["bootstrap"] != second["bootstrap"]
        assert samsa("status", "--home", two).exit_code == 0
        # The death of its supervisor stops the brokers cleanly, too.
        os.kill(second["components"][0]["pid"], signal.SIGKILL)
        wait_until_gone(two)
        marks = sorted(path.parent.name for path in two.glob("data/*/.kafka_cleanshutdown"))
        assert marks == ["broker-1", "broker-2"]
        assert list(leftovers.marked(two)) == []


@pytest.mark.slow
@pytest.mark.alone
def test_every_killed_component_is_back_in_time(tmp_path: Path) -> None:
    with stopped_after(tmp_path):
        assert start(tmp_path).returncode == 0
        before = told(samsa("status", "--json", "--home", tmp_path))

        for name in COMPONENTS:
            entries = told(samsa("status", "--json", "--home", tmp_path))["components"]
            killed = next(entry["pid"] for entry in entries if entry["name"] == name)
            os.kill(killed, signal.SIGKILL)
            assert is_healthy_again(tmp_path, name, killed), f"{name} is not back in time"

        after = told(samsa("status", "--json", "--home", tmp_path))
        assert after["bootstrap"] == before["bootstrap"]
        assert after["console"] == before["console"]
        ids = [[broker["id"] for broker in told["brokers"]] for told in (before, after)]
        assert ids[0] == ids[1]


def is_healthy_again(home: Path, name: str, killed: int) -> bool:
    end, pause = time.monotonic() + BACK_WITHIN, threading.Event()
    while time.monotonic() < end:
        pause.wait(LOOK_SECONDS)
        result = samsa("status", "--json", "--home", home)
        entries = told(result)["components"]
        pid = next(entry["pid"] for entry in entries if entry["name"] == name)
        if result.exit_code == 0 and pid != killed:
            return True
    return False


@pytest.mark.slow
def test_a_taken_port_is_named_and_nothing_runs(tmp_path: Path) -> None:
    with stopped_after(tmp_path), socket.create_server(("127.0.0.1", 0)) as squatter:
        port = squatter.getsockname()[1]

        refused = samsa_process(
            *("up", "--detach", "--home", tmp_path, "--brokers", "1", "--port", str(port))
        )

        assert refused.returncode == 1
        assert f"port {port}, meant for broker-1, is taken by another program" in refused.stderr
        assert refused.stderr.count("\n") == 1
        assert list(leftovers.marked(tmp_path)) == []


@pytest.mark.slow
def test_a_start_that_cannot_succeed_ends_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with stopped_after(tmp_path):
        command = fake_command(tmp_path, "broker-1=crash", flags=("--detached",))

        assert up.start_detached(command) == 1

    shown = capsys.readouterr()
    assert "the disk is made of cheese" in shown.out
    assert "broker-1 cannot start (ended with exit code 3)" in shown.err
    assert shown.err.endswith("has more: the disk is made of cheese\n")
    assert list(leftovers.marked(tmp_path)) == []


@pytest.mark.slow
def test_a_start_without_its_console_says_so_and_leaves_the_brokers_running(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with stopped_after(tmp_path):
        command = fake_command(tmp_path, "web=crash", flags=("--detached",))

        assert up.start_detached(command) == up.NO_CONSOLE_CODE

        shown = capsys.readouterr()
        assert "Kafka     127.0.0.1:" in shown.out
        assert "web cannot start (ended with exit code 3)" in shown.err
        assert str(tmp_path / "logs" / "web.log") in shown.err
        result = samsa("status", "--json", "--home", tmp_path)
        states = {entry["name"]: entry["state"] for entry in told(result)["components"]}
        assert result.exit_code == 1
        assert states["broker-1"] == states["agent"] == "healthy" != states["web"]


@pytest.mark.slow
def test_a_start_that_takes_too_long_is_left_running_and_said_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up, "HEALTHY_SECONDS", 1)
    with stopped_after(tmp_path):
        assert up.start_detached(fake_command(tmp_path, "agent=silent", flags=("--detached",))) == 1

        assert "not all is healthy after 1 s" in capsys.readouterr().err
        # Agent, broker, web server and collector; on a busy machine they start after that second.
        end, pause = time.monotonic() + START_SECONDS, threading.Event()
        while len(list(leftovers.marked(tmp_path))) != 4:
            pause.wait(LOOK_SECONDS)
            assert time.monotonic() < end, list(leftovers.marked(tmp_path))
        assert samsa("status", "--home", tmp_path).exit_code == 1


def test_a_supervisor_that_hangs_up_and_lives_is_healthy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up, "HUNG_UP_SECONDS", 0.1)
    end = tmp_path / "end"
    os.mkfifo(end)
    program = f"import os; os.close(1); os.close(2); open({str(end)!r}).read()"

    assert up.start_detached([sys.executable, "-c", program]) == 0

    assert "all is healthy" in capsys.readouterr().out
    with end.open("w"):
        pass


def test_an_address_of_the_network_needs_to_be_wanted(tmp_path: Path) -> None:
    result = samsa("up", "--home", tmp_path, "--bind", "10.1.2.3")

    assert result.exit_code == 2
    assert "add --insecure if that network is trusted" in result.stderr


def test_a_node_needs_a_database(tmp_path: Path) -> None:
    result = samsa("node", "--home", tmp_path, DATABASE_URL="")

    assert result.exit_code == 1
    assert "DATABASE_URL is not set: set it to the database of the cluster" in result.stderr


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mysql://here/x", "begins with mysql:, but only PostgreSQL"),
        ("just words", "begins with no scheme"),
        (
            "postgres://user:secret@127.0.0.1:1/x",
            r"no server answers at 127\.0\.0\.1:1",
        ),
        ("postgres://user:secret@[::1/x", "DATABASE_URL is not a URL"),
        ("postgres://user:secret@host:port/x", "DATABASE_URL is not a URL"),
    ],
)
def test_a_database_that_cannot_be_is_refused_without_its_password(url: str, words: str) -> None:
    with pytest.raises(StartRefused, match=words) as refused:
        up.check_database(url)

    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "url", ["", "postgres:///x", "postgres://%2Frun%2Fpg/x", "postgresql:///x?host=/run/pg"]
)
def test_a_database_that_may_be_there_is_left_to_the_agent(url: str) -> None:
    up.check_database(url)
