"""Homes that tests of the command line start with fake components, in a process of their own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from brokers.supervisor import leftovers
from cli.commands import main
from tests.cluster import ROOT

FAKE_HOUSE = [sys.executable, "-m", "tests.brokers.supervisor.fake_house"]


def samsa(*arguments: str | Path, **environment: str) -> Result:
    """Run a command of `./samsa` in this process."""
    return CliRunner(env=environment).invoke(main, [str(argument) for argument in arguments])


def fake_command(home: Path, *specs: str, flags: tuple[str, ...] = ()) -> list[str]:
    ports = ["--brokers", "1", "--port", "0", "--web-port", "0"]
    return [*FAKE_HOUSE, *specs, "--", "--home", str(home), *ports, *flags]


@contextmanager
def fake_home(home: Path, *specs: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A home that runs, and is healthy unless a SPEC keeps it from that."""
    with subprocess.Popen(
        fake_command(home, *specs), cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True
    ) as supervisor:
        assert supervisor.stdout is not None
        wanted = b"crash" if specs and "crash" in specs[0] else b"Stop"
        for line in supervisor.stdout:
            if wanted in line or b"starting it again" in line:
                break
        try:
            yield supervisor
        finally:
            supervisor.kill()
            leftovers.send(home, signal.SIGKILL)


def told(result: Result) -> Mapping[str, Any]:
    """The JSON on standard output."""
    found: Mapping[str, Any] = json.loads(result.stdout)
    return found


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
