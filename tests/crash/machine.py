"""A machine with one broker on it that can lose its power, and the agent next door that cannot.

The agent serves a twin from this process, so metadata outlives the machine. The port stays the
same, so a client finds the broker again.
"""

import asyncio
import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from bench.ports import claim_port
from tests.fakes.agent_server import AgentServer
from tests.fakes.crash_files import CrashDisk
from tests.fakes.twin import Twin

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 30


class Machine:
    """Used as a context manager by `running_machine`."""

    def __init__(self, folder: Path, *, lies: bool) -> None:
        self.disk = CrashDisk(folder / "machine")
        self.port = claim_port()
        self._socket = folder / "agent.sock"
        self._output = folder / "broker.txt"
        self._lies = lies
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the broker and wait until it serves."""
        reading, writing = os.pipe()
        with self._output.open("ab") as output, os.fdopen(reading, "rb") as ready:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "tests.crash.broker_child"),
                    *(str(self.disk.live), str(self.disk.journal)),
                ],
                cwd=ROOT,
                env={
                    **os.environ,
                    "SAMSA_AGENT_SOCKET": str(self._socket),
                    "SAMSA_LOG_DIR": str(self.disk.live),
                    "SAMSA_PORT": str(self.port),
                    "SAMSA_READY_FD": str(writing),
                    "SAMSA_TEST_LIES": "1" if self._lies else "0",
                },
                pass_fds=(writing,),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
            os.close(writing)
            is_told, *_ = select.select([ready], [], [], START_SECONDS)
            line = ready.readline() if is_told else b""
        assert line, f"the broker does not serve:\n{self.said()}"
        assert json.loads(line)["port"] == self.port

    def lose_power(self, rng: Random) -> None:
        """Stop everything at once, and lose what was not on the disk."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self.disk.lose_power(rng)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def said(self) -> str:
        return self._output.read_text(encoding="utf-8", errors="replace")[-3000:]


@contextmanager
def running_machine(folder: Path, *, lies: bool = False) -> Iterator[Machine]:
    with agent_beside(folder / "agent.sock"):
        machine = Machine(folder, lies=lies)
        try:
            machine.start()
            yield machine
        finally:
            machine.stop()


@contextmanager
def agent_beside(path: Path) -> Iterator[None]:
    """Serve a twin to whoever connects, from a thread with a loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="agent", daemon=True)
    thread.start()

    async def start() -> AgentServer:
        twin = Twin()
        server = AgentServer(path, twin.attach, detach=lambda door: door.kill())  # type: ignore[attr-defined]
        await server.start()
        return server

    server = asyncio.run_coroutine_threadsafe(start(), loop).result(START_SECONDS)
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(START_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(START_SECONDS)
        loop.close()
