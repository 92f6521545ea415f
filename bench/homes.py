"""A whole home under a benchmark: started, stopped and queried with `./samsa`.

Knows how to find its processes, and how to start one more broker just as the supervisor did, but
not the purpose of a benchmark.
"""

import http.client
import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.broker_targets import ROOT, START_SECONDS, Target
from bench.ports import claim_port
from bench.processes import Process

POLL_SECONDS: Final = 0.02
# A stop that takes longer is a failure.
STOP_SECONDS: Final = 120
PAGE_SECONDS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchHome:
    """A home that runs, of this checkout or of another one."""

    folder: Path
    checkout: Path = ROOT

    def status(self) -> Mapping[str, Any]:
        answer: dict[str, Any] = json.loads(self.says("status", "--json"))
        return answer

    def pids(self) -> dict[str, int]:
        """The processes of its components, by name."""
        return {entry["name"]: entry["pid"] for entry in self.status()["components"]}

    def first_broker(self) -> Target:
        broker = self.status()["brokers"][0]
        return Target(
            name="Samsa", host=broker["host"], port=broker["port"], pid=broker["pid"], is_ours=True
        )

    def says(self, *words: str) -> str:
        """Return what a command prints about this home."""
        return self._samsa(words)

    def stop(self) -> None:
        self._samsa(["down"])

    def start(self, *, brokers: int, environment: Mapping[str, str] | None = None) -> None:
        """Start on the ports that it had before, or on free ones."""
        ports = ("--port", "0", "--web-port", "0")
        self._samsa(["up", "--detach", "--brokers", str(brokers), *ports], environment)

    def _samsa(self, words: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            [str(self.checkout / "samsa"), *words, "--home", str(self.folder)],
            check=False,
            timeout=START_SECONDS,
            capture_output=True,
            text=True,
            env=environment,
        )
        assert done.returncode == 0, f"./samsa {words[0]} failed:\n{done.stdout}{done.stderr}"
        return done.stdout


@contextmanager
def running_home(*, brokers: int) -> Iterator[BenchHome]:
    """A home of its own with that many brokers, until the block ends."""
    with tempfile.TemporaryDirectory(prefix="samsa-bench-") as folder:
        home = BenchHome(folder=Path(folder, "home"))
        try:
            home.start(brokers=brokers)
            yield home
        finally:
            home.stop()


@contextmanager
def another_broker(like: int) -> Iterator[tuple[Target, float]]:
    """One more broker of the same cluster, started as `like` was; yields it with its start time.

    The time is `time.perf_counter` of the moment before the process existed. It is not awaited.
    """
    model = Process(like)
    with tempfile.TemporaryDirectory(prefix="samsa-bench-") as folder:
        environment = model.environment()
        del environment["SAMSA_READY_FD"]
        port = claim_port()
        started = time.perf_counter()
        with subprocess.Popen(
            model.command(),
            env={**environment, "SAMSA_LOG_DIR": f"{folder}/data", "SAMSA_PORT": str(port)},
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            host = environment["SAMSA_BIND"]
            yield (
                Target(name="another", host=host, port=port, pid=process.pid, is_ours=True),
                started,
            )
            process.terminate()


def found_clean(home: Path) -> bool:
    """Whether the last start of a home's first broker found what a clean stop leaves."""
    text = (home / "logs" / "broker-1.log").read_text(encoding="utf-8")
    loads = [line for line in text.splitlines() if '"logs.loaded"' in line]
    return '"was_clean": true' in loads[-1]


def end(pid: int) -> None:
    """Asks a process to end, and waits until it has."""
    pidfd = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGTERM)
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        if not poll.poll(STOP_SECONDS * 1000):
            raise TimeoutError(f"process {pid} has not ended in {STOP_SECONDS} s")
    finally:
        os.close(pidfd)


def metrics(pid: int) -> dict[str, float]:
    """What a broker says at its inspection port; series with labels by their whole name."""
    process = Process(pid)
    environment = process.environment()
    secret = Path(environment["SAMSA_SECRET_FILE"]).read_text(encoding="ascii").split()[0]
    for port in process.listening_ports():
        link = http.client.HTTPConnection(environment["SAMSA_BIND"], port, timeout=PAGE_SECONDS)
        try:
            link.request("GET", "/metrics", headers={"Authorization": f"Bearer {secret}"})
            lines = link.getresponse().read().decode().splitlines()
        except (OSError, http.client.HTTPException):
            continue  # the port for Kafka clients, which closes a connection that speaks HTTP
        finally:
            link.close()
        pairs = [line.rpartition(" ") for line in lines if not line.startswith("#")]
        return {name: float(value) for name, _space, value in pairs}
    raise ConnectionError(f"broker process {pid} has no inspection port that answers")
