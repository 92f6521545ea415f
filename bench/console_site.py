"""A web server and a collector of a cluster at its limits, for as long as a block lasts.

The web server is the real one. The collector is, but for the feeds, which `console_watcher`
replays. The brokers of the cluster are one listener that counts: who asks one counts as a call.
"""

import http.client
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.broker_targets import ROOT
from bench.children import done_by

HOST: Final = "127.0.0.1"
CLUSTER_ID: Final = "AtItsLimitsAtItsLimit0"
# Tables of 100,000 partitions are made and read in seconds, on a quiet machine.
PATIENCE_SECONDS: Final = 180.0
STOP_SECONDS: Final = 15.0
PAGE_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Got:
    """One answer. `seconds` is until its last byte was here."""

    status: int
    kind: str
    body: bytes
    seconds: float


class BrokerCalls:
    """Listens where the cluster says its brokers are, and counts who comes."""

    def __init__(self) -> None:
        self.count = 0
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._take, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _take(self) -> None:
        while True:
            try:
                caller, _address = self._listener.accept()
            except OSError:
                return  # closed
            self.count += 1
            caller.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A console that serves; its people are signed in."""

    port: int
    pid: int  # of the web server
    cookie_name: str
    cookies: tuple[str, ...]
    calls: BrokerCalls

    def get(self, path: str, *, person: int = 0) -> Got:
        link = http.client.HTTPConnection(HOST, self.port, timeout=PAGE_SECONDS)
        try:
            began = time.perf_counter()
            link.request("GET", path, headers=self.headers(person))
            answer = link.getresponse()
            body = answer.read()
            seconds = time.perf_counter() - began
        finally:
            link.close()
        kind = answer.headers.get_content_type()
        return Got(status=answer.status, kind=kind, body=body, seconds=seconds)

    def headers(self, person: int = 0) -> Mapping[str, str]:
        return {"Cookie": f"{self.cookie_name}={self.cookies[person]}"}


@contextmanager
def running_site(size: Mapping[str, int], *, people: int) -> Iterator[Site]:
    """Start all of it; `size` is that of the feeds, with how many partitions move each second."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="samsa-bench-")))
        calls = BrokerCalls()
        stack.callback(calls.close)
        # Such a name takes 107 bytes; this folder is short.
        collector = folder / "c.sock"
        place = {"folder": str(folder), "socket": str(collector), "host": HOST, "port": calls.port}
        job = {**size, **place, "cluster_id": CLUSTER_ID, "people": people}
        told = done_by("bench.console_rows", job, seconds=PATIENCE_SECONDS)
        stack.enter_context(watcher(job))
        port, pid = stack.enter_context(web_server(folder, collector))
        site = Site(
            port=port,
            pid=pid,
            cookie_name=told["name"],
            cookies=tuple(told["cookies"]),
            calls=calls,
        )
        wait_until_read(site)
        yield site


@contextmanager
def watcher(job: Mapping[str, Any]) -> Iterator[None]:
    with subprocess.Popen(
        [sys.executable, "-m", "bench.console_watcher"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(dict(job)).encode() + b"\n")
            process.stdin.flush()
            readable, _, _ = select.select([process.stdout], [], [], PATIENCE_SECONDS)
            assert readable, f"the collector was not ready after {PATIENCE_SECONDS} s"
            assert process.stdout.readline() == b"ready\n", "the collector has ended"
            yield
        finally:
            process.stdin.close()
            end(process)


@contextmanager
def web_server(folder: Path, collector: Path) -> Iterator[tuple[int, int]]:
    """Start it on a free port; yield the port and the process."""
    listener = socket.create_server((HOST, 0))
    log = folder / "web.log"
    with listener, log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "gateway", "--fd", str(listener.fileno()), "--grace", "3"],
            env={
                **os.environ,
                "SAMSA_HOME": str(folder),
                "SAMSA_COLLECTOR_SOCKET": str(collector),
                "SAMSA_BIND": HOST,
            },
            pass_fds=[listener.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            cwd=ROOT,
        )
        try:
            yield listener.getsockname()[1], process.pid
        finally:
            process.terminate()
            end(process)


def wait_until_read(site: Site) -> None:
    """Wait until a page shows what the collector told, which its mirror takes a moment to read."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        got = site.get(f"/groups?cluster={CLUSTER_ID}")
        if got.status == 200 and b"group-0" in got.body:
            return
        assert time.monotonic() < deadline, f"/groups says {got.status}: {got.body[-2000:]!r}"
        time.sleep(0.2)


def end(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
