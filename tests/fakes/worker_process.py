"""A worker of the gateway beside those of a home, at a port that it shares with nobody."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from brokers.supervisor.child import tie_to_parent
from brokers.supervisor.components import valkey_socket
from tests.cluster import ROOT, Cluster

# A start takes two seconds on an idle machine.
START_S = 90
STOP_S = 20
POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerProcess:
    name: str
    address: tuple[str, int]
    process: "subprocess.Popen[bytes]"

    def kill(self) -> None:
        """End it without a chance to say anything."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(STOP_S)


@contextmanager
def worker_beside(
    home: Cluster, name: str, *, log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[WorkerProcess]:
    """Run a worker until the block ends; what it says goes to a file."""
    parent = os.getpid()
    with socket.create_server(("127.0.0.1", 0)) as listener, log.open("wb") as said:
        address = listener.getsockname()
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "gateway", "--fd", str(listener.fileno())),
                *("--door", "rest", "--worker", name),
                *("--socket", str(home.home.worker_socket(name))),
            ],
            cwd=ROOT,
            env={
                **os.environ,
                "SAMSA_HOME": str(home.folder),
                "REDIS_URL": f"unix://{valkey_socket(home.home)}",
                **(environment or {}),
            },
            pass_fds=(listener.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            preexec_fn=lambda: tie_to_parent(parent),  # noqa: PLW1509 (it calls the kernel only)
        )
    # Only the worker has the socket now: when it dies, its port is nobody's.
    try:
        wait_until_it_serves(home.home.worker_socket(name), process, log)
        yield WorkerProcess(name=name, address=address, process=process)
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_S)


def wait_until_it_serves(own: Path, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + START_S
    while not is_serving(own):
        # A process that ends does so within a moment, which is also how this loop pauses.
        with suppress(subprocess.TimeoutExpired):
            process.wait(POLL_S)
        is_there = process.poll() is None and time.monotonic() < end
        assert is_there, f"it does not serve: {log.read_text(errors='replace')[-2000:]}"


def is_serving(own: Path) -> bool:
    """Ask a worker at its own socket, which it has once it serves at its port."""
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(START_S)
        try:
            asking.connect(str(own))
            asking.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return b" 200 " in asking.recv(4_096)
        except OSError:
            return False
