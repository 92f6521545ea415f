"""A broker over the file layer whose machine can lose power: `python -m tests.crash.broker_child`.

As `python -m brokers.server`, but for the files. With SAMSA_TEST_LIES=1 the layer is a build that
answers before fdatasync: a record file's sync returns at once and was none.
"""

import asyncio
import json
import os
import sys

from brokers.clock import SystemClock
from brokers.config import broker_config
from brokers.server.agent_link import AgentLink
from brokers.server.broker import Broker, Ready
from brokers.server.logs import Log
from brokers.server.served import HANDLERS, LANES
from tests.fakes.crash_files import CrashFiles


class LyingFiles(CrashFiles):
    """Leaves record files to the kernel, and says that they are on the disk."""

    def __init__(self, root: str, journal: str) -> None:
        super().__init__(root, journal)
        self._record_files: set[int] = set()

    def open(self, path: str, flags: int) -> int:
        fd = super().open(path, flags)
        (self._record_files.add if path.endswith(".log") else self._record_files.discard)(fd)
        return fd

    def datasync(self, fd: int) -> None:
        if fd not in self._record_files:
            super().datasync(fd)


async def serve(files: CrashFiles) -> None:
    config, clock = broker_config(), SystemClock()
    link = AgentLink(config.agent_socket, clock=clock)
    log = Log(clock, component="broker")
    broker = Broker(
        config, store=link, modules=HANDLERS, lanes=LANES, clock=clock, log=log, files=files
    )
    broker.ready.add_done_callback(lambda ready: tell(config.ready_fd, ready.result()))
    await broker.run()


def tell(fd: int, ready: Ready) -> None:
    os.write(fd, json.dumps({"port": ready.port}).encode() + b"\n")
    os.close(fd)


if __name__ == "__main__":
    live, journal = sys.argv[1:]
    layer = LyingFiles if os.environ.get("SAMSA_TEST_LIES") == "1" else CrashFiles
    asyncio.run(serve(layer(live, journal)))
