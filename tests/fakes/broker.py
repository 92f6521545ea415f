"""A whole broker inside of the test's process: real sockets, real files, the twin for metadata.

    async with running_broker(tmp_path, topics={"orders": 4}) as broker:
        client = await broker.connect()

Serves every API that a broker serves. Clients that block run in a thread of their own: see
`in_thread`.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from brokers.clock import Clock, SystemClock
from brokers.config import BrokerConfig
from brokers.key_files import write_keys
from brokers.server.broker import Broker, Ready
from brokers.server.context import Context
from brokers.server.logs import Log
from brokers.server.served import HANDLERS, LANES
from brokers.storage.files import Files
from tests.fakes.listener import HOST, ByteClient
from tests.fakes.twin import Door, Twin

T = TypeVar("T")

SECRET = "1.a-secret-of-the-tests"  # noqa: S105 - that it is none is its point
METRICS_SECRET = "1.for-metrics-only"  # noqa: S105
READY_SECONDS = 20.0


@dataclass
class RunningBroker:
    """One broker that serves, and what a test may want of it."""

    broker: Broker
    twin: Twin
    door: Door
    ready: Ready
    living: "asyncio.Task[None]"  # ends with the broker, and raises what ended it
    lines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def host(self) -> str:
        return self.ready.host

    @property
    def port(self) -> int:
        return self.ready.port

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def context(self) -> Context:
        return self.broker.context

    async def connect(self) -> ByteClient:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        return ByteClient(reader, writer)

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Runs what blocks, while the broker goes on."""
        return await asyncio.to_thread(work)


@asynccontextmanager
async def running_broker(  # noqa: PLR0913 - every value defaulted
    tmp_path: Path,
    *,
    twin: Twin | None = None,
    topics: Mapping[str, int] | None = None,
    configs: Mapping[str, str] | None = None,
    defaults: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    files: Files | None = None,
    log_dir: str = "data",
    has_keys: bool = True,
) -> AsyncIterator[RunningBroker]:
    """`topics` are names with their numbers of partitions, all with `configs`."""
    clock = clock or SystemClock()
    twin = twin or Twin(clock=clock)
    lines: list[dict[str, Any]] = []
    secret_file = tmp_path / "inspection-secret"
    metrics_file = tmp_path / "metrics-secret"
    if has_keys:
        write_keys(secret_file, (SECRET,))
        write_keys(metrics_file, (METRICS_SECRET,))
    door = twin.attach()
    broker = Broker(
        BrokerConfig(
            agent_socket="",
            log_dir=str(tmp_path / log_dir),
            bind=HOST,
            secret_file=str(secret_file),
            metrics_secret_file=str(metrics_file),
            defaults=defaults or {},
        ),
        store=door,
        modules=HANDLERS,
        lanes=LANES,
        clock=clock,
        log=Log(clock, write=lambda line: lines.append(json.loads(line))),
        files=files,
    )
    living = asyncio.create_task(broker.run())
    try:
        ready = await _until_ready(broker, living)
        running = RunningBroker(broker, twin, door, ready, living, lines)
        for name, partitions in (topics or {}).items():
            twin.create_topic(name, partitions=partitions, configs=configs)
        await broker.context.wait_applied(twin.image.version)
        yield running
    finally:
        broker.stop()
        with suppress(Exception):
            await living
        door.kill()


async def _until_ready(broker: Broker, living: "asyncio.Task[None]") -> Ready:
    """Waits for the broker, or for why it will never be ready."""
    async with asyncio.timeout(READY_SECONDS):
        either: set[asyncio.Future[Any]] = {broker.ready, living}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if not broker.ready.done():
        await living
    return broker.ready.result()
