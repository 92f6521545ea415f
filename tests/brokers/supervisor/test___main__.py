"""The supervisor as a process: signals, its own death, and what a detached start is told."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brokers.supervisor import client, daemon, leftovers
from brokers.supervisor.home import Home
from tests.brokers.supervisor.houses import running, within
from tests.cluster import ROOT, wait_until_gone

pytestmark = pytest.mark.slow

PATIENCE = 30


@contextmanager
def process(
    home: Path, *specs: str, flags: tuple[str, ...] = ()
) -> Iterator["subprocess.Popen[str]"]:
    """Run a house of fakes as a program, and see to it that nothing survives the test."""
    program = [sys.executable, "-m", "tests.brokers.supervisor.fake_house", *specs, "--"]
    ports = ["--brokers", "1", "--port", "0", "--web-port", "0"]
    with subprocess.Popen(
        [*program, "--home", str(home), *ports, *flags],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as supervisor:
        try:
            yield supervisor
        finally:
            supervisor.kill()
            leftovers.send(home, signal.SIGKILL)


def read_until(supervisor: "subprocess.Popen[str]", words: str) -> list[str]:
    assert supervisor.stdout is not None
    lines = []
    for line in supervisor.stdout:
        lines.append(line.rstrip("\n"))
        if words in line:
            return lines
    raise AssertionError(f"{words!r} never came: {lines}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_everything_in_order(tmp_path: Path, number: signal.Signals) -> None:
    # Whoever runs the tests may be under nohup, which every child would respect.
    previous = signal.signal(number, signal.SIG_DFL)
    try:
        with process(tmp_path, "broker-1=runaway") as supervisor:
            read_until(supervisor, "Stop      Ctrl-C")

            supervisor.send_signal(number)

            assert supervisor.wait(PATIENCE) == 0
            assert list(leftovers.marked(tmp_path)) == []
    finally:
        signal.signal(number, previous)


def test_a_terminal_that_closes_is_ignored_under_nohup(tmp_path: Path) -> None:
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with process(tmp_path) as supervisor:
            read_until(supervisor, "Stop")

            supervisor.send_signal(signal.SIGHUP)

            components = client.ask(Home(tmp_path), "status")["components"]
            assert [entry["state"] for entry in components] == ["healthy"] * 5
            supervisor.terminate()
            assert supervisor.wait(PATIENCE) == 0
    finally:
        signal.signal(signal.SIGHUP, previous)


def test_the_death_of_the_supervisor_stops_the_rest(tmp_path: Path) -> None:
    with process(tmp_path) as supervisor:
        read_until(supervisor, "Stop")
        assert len(list(leftovers.marked(tmp_path))) == 4

        supervisor.kill()

        wait_until_gone(tmp_path)
        assert list(leftovers.marked(tmp_path)) == []


def test_a_start_clears_what_a_killed_supervisor_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon, "LEFTOVER_SECONDS", 0.3)
    # A child of a broker that ignores its end; its parent dies with the supervisor.
    with process(tmp_path, "broker-1=offspring") as supervisor:
        read_until(supervisor, "Stop")
        supervisor.kill()
        supervisor.wait()
        left = list(leftovers.marked(tmp_path))
        assert left

        async def scenario() -> None:
            async with running(tmp_path) as house:
                await house.audience.hears("all is healthy")

                assert not set(left) & set(leftovers.marked(tmp_path))

        within(scenario)


def test_a_second_interrupt_ends_everything_at_once(tmp_path: Path) -> None:
    with process(tmp_path, "broker-1=stubborn") as supervisor:
        read_until(supervisor, "Stop")
        supervisor.send_signal(signal.SIGINT)
        read_until(supervisor, "once more")

        # Copies of a signal within half a second count as one, so this one comes again and again.
        while supervisor.poll() is None:
            supervisor.send_signal(signal.SIGINT)
            try:
                supervisor.wait(0.2)
            except subprocess.TimeoutExpired:
                continue

        assert list(leftovers.marked(tmp_path)) == []


def test_a_detached_start_is_told_until_it_is_healthy(tmp_path: Path) -> None:
    with process(tmp_path, flags=("--detached",)) as supervisor:
        assert supervisor.stdout is not None

        # The supervisor closes its end when it is healthy, and lives on.
        messages = [json.loads(line) for line in supervisor.stdout]

        assert supervisor.poll() is None
        assert "Samsa is starting" in messages[0]["say"]
        assert messages[-1]["started"][0].startswith("Kafka     127.0.0.1:")
        supervisor.terminate()
        assert supervisor.wait(PATIENCE) == 0


def test_what_a_run_writes_is_the_owners_alone(tmp_path: Path) -> None:
    with process(tmp_path) as supervisor:
        read_until(supervisor, "Stop")

        written = [path for path in tmp_path.rglob("*") if path.is_file()]

        assert written
        assert [path for path in written if path.stat().st_mode & 0o077] == []
        supervisor.terminate()
        supervisor.wait(PATIENCE)


def test_a_refusal_is_one_sentence_and_exit_code_one(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with process(tmp_path / "file") as supervisor:
        said, _ = supervisor.communicate(timeout=PATIENCE)

    assert supervisor.returncode == 1
    assert said.startswith("samsa: the home ")
    assert said.count("\n") == 1
