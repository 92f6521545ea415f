"""A real cluster for tests: what `./samsa up` starts, on free ports, in a folder of the test.

The supervisor is tied to the life of the test run, so that an interrupted run leaves nothing. On
exit everything is stopped as an operator would, and a process that is left is a failure.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from brokers.supervisor import client, leftovers
from brokers.supervisor.child import tie_to_parent
from brokers.supervisor.errors import NotRunning
from brokers.supervisor.home import Home
from brokers.supervisor.options import Options
from tests.suite.tables import place_tables

ROOT = Path(__file__).resolve().parents[1]
# A start takes two seconds on an idle machine, and CI has other tests beside it.
START_SECONDS = 90
STOP_SECONDS = 40
POLL_SECONDS = 0.05


class ClusterFailure(AssertionError):
    """The cluster did not do what a test needs; the message holds what its processes said."""


class Cluster:
    """A running home."""

    def __init__(self, home: Home, supervisor: "subprocess.Popen[bytes]") -> None:
        self.home = home
        self.supervisor = supervisor

    @property
    def folder(self) -> Path:
        return self.home.folder

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers, as clients take them."""
        return str(self.status()["bootstrap"])

    @property
    def console(self) -> str:
        return str(self.status()["console"])

    def status(self) -> Mapping[str, Any]:
        return client.ask(self.home, "status")

    @property
    def gateway(self) -> str:
        return str(self.status()["gateway"])

    def component(self, name: str) -> Mapping[str, Any]:
        return next(entry for entry in self.status()["components"] if entry["name"] == name)

    def pid(self, name: str) -> int:
        """The process of a component: agent, broker-1 …, web."""
        pid = self.component(name)["pid"]
        assert isinstance(pid, int), f"{name} does not run"
        return pid

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> int:
        """Signal a component and return the process that was hit."""
        pid = self.pid(name)
        os.kill(pid, number)
        return pid

    def wait_for_restart(self, name: str, killed: int, *, seconds: float = 30) -> float:
        """Wait until a killed component serves again; return how long that took."""
        started = time.monotonic()

        def is_back() -> bool:
            entry = self.component(name)
            return entry["state"] == "healthy" and entry["pid"] != killed

        self.wait(is_back, f"{name} to serve again", seconds=seconds)
        return time.monotonic() - started

    def wait_healthy(self, *, seconds: float = START_SECONDS) -> None:
        def is_healthy() -> bool:
            return all(entry["state"] == "healthy" for entry in self.status()["components"])

        self.wait(is_healthy, "all components to be healthy", seconds=seconds)

    def wait(self, fact: Callable[[], bool], what: str, *, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not fact():
            if time.monotonic() > end:
                raise ClusterFailure(f"waited {seconds} s for {what}\n{self.told()}")
            self.require_supervisor()

    def require_supervisor(self) -> None:
        """Fail when the supervisor ends within a moment; that is also how waiting loops pause."""
        with suppress(subprocess.TimeoutExpired):
            code = self.supervisor.wait(POLL_SECONDS)
            raise ClusterFailure(f"the supervisor ended with {code}: {self.complaint()}")

    def complaint(self) -> str:
        assert self.supervisor.stderr is not None
        return self.supervisor.stderr.read().decode(errors="replace")

    def told(self) -> str:
        """What is known of every component, for a failure's message."""
        logs = sorted(self.home.logs.glob("*.log"))
        tails = [f"--- {log.name}\n{log.read_text(errors='replace')[-2000:]}" for log in logs]
        states = json.dumps(self.status(), indent=1) if self.home.is_owned() else "not running"
        return "\n".join([states, *tails])


@contextmanager
def running_cluster(  # noqa: PLR0913 - one for each option of `up`
    folder: Path,
    *,
    brokers: int = 1,
    has_web: bool = False,
    gateway_workers: int = 0,
    connect_workers: int = 1,
    certificate: tuple[Path, Path] | None = None,
    web_bind: str = "",
    port: int = 0,
    environment: Mapping[str, str] | None = None,
    checkout: Path = ROOT,
) -> Iterator[Cluster]:
    """Start a cluster, hand it over when it is healthy, and stop it without a trace.

    Another checkout than the tests' own is run by the `.venv` that it has.
    """
    made, key = certificate or (None, None)
    options = Options(
        home=folder,
        brokers=brokers,
        port=port,
        web_port=0 if has_web else None,
        rest_port=0 if gateway_workers else None,
        gateway_workers=gateway_workers or 1,
        workers=connect_workers,
        web_cert=made,
        web_key=key,
        web_bind=web_bind,
    )
    cluster = start(options, environment or {}, checkout=checkout)
    try:
        yield cluster
    finally:
        stop(cluster)


def start(options: Options, environment: Mapping[str, str], *, checkout: Path = ROOT) -> Cluster:
    parent = os.getpid()
    python = sys.executable if checkout == ROOT else checkout / ".venv" / "bin" / "python"
    home = Home(options.home)
    if checkout == ROOT and not {**os.environ, **environment}.get("DATABASE_URL"):
        place_tables(options.home)
    supervisor = subprocess.Popen(
        [python, "-m", "brokers.supervisor", *options.arguments()],
        cwd=checkout,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: tie_to_parent(parent),  # noqa: PLW1509 (it calls the kernel only)
    )
    cluster = Cluster(home, supervisor)
    try:
        cluster.wait(lambda: answers(cluster), "its supervisor to answer", seconds=START_SECONDS)
        cluster.wait_healthy()
    except BaseException:
        # Also an interrupted test run stops what it started.
        stop(cluster, is_judged=False)
        raise
    return cluster


def answers(cluster: Cluster) -> bool:
    try:
        cluster.status()
    except NotRunning:
        return False
    return True


def stop(cluster: Cluster, *, is_judged: bool = True) -> None:
    """Stop in order; what is left after that is killed and, where it is judged, a failure."""
    supervisor = cluster.supervisor
    supervisor.terminate()
    try:
        supervisor.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        supervisor.kill()
        supervisor.wait()
    assert supervisor.stderr is not None
    supervisor.stderr.close()
    left = list(leftovers.marked(cluster.folder))
    leftovers.send(cluster.folder, signal.SIGKILL)
    if is_judged and (left or supervisor.returncode != 0):
        raise ClusterFailure(
            f"the supervisor ended with {supervisor.returncode}, processes left: {left}"
        )


def wait_until_gone(folder: Path) -> None:
    """Wait for the end of every process that a home has now."""
    for pid in list(leftovers.marked(folder)):
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        has_ended = poll.poll(STOP_SECONDS * 1000)
        os.close(pidfd)
        assert has_ended, f"process {pid} is still there"
