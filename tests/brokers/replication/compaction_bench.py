"""A broker's logs and a compactor over them, with a worker that does as a test says."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from brokers.replication.compactor import Compactor, WorkerFailed
from brokers.replication.partition import Partition
from brokers.server.metrics import Metrics
from brokers.storage.clean_worker import decode_job, encode_result
from brokers.storage.cleaning import Job, clean
from brokers.storage.errors import StorageError
from brokers.storage.files import Files, LocalFiles
from tests.brokers.replication.parts import Rig, image, rig, topic, until
from tests.builders.cleaning import keyed, latest, rows_of
from tests.builders.logs import NOW_MS

HOUR = 3_600_000
COMPACT = {"cleanup.policy": "compact", "internal.segment.bytes": "600"}
ROWS = [(b"k%d" % (number % 5), b"%d" % number + b"v" * 40) for number in range(40)]


class Worker:
    """A process that cleans, without the process: held back or failing when a test says so."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: WorkerFailed | None = None
        self.failures: dict[str, WorkerFailed] = {}  # by folder
        self.cancelled = 0
        self.has_room_for_one = False  # of the new files

    async def run(self, job: bytes) -> bytes:
        self.jobs.append(decode_job(job))
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if failure := self.failures.get(Path(self.jobs[-1].folder).name, self.failure):
            raise failure
        try:
            result = clean(LocalFiles(), self.jobs[-1])
            if self.has_room_for_one:
                first_dirty = self.jobs[-1].first_dirty
                result = replace(result, end=first_dirty, groups=result.groups[:1])
            return encode_result(result)
        except (OSError, StorageError) as error:
            raise WorkerFailed(f"it ended with 1: {error}") from error


@dataclass
class Bench:
    """A broker's logs with a compactor over them."""

    broker: Rig
    worker: Worker
    counted: Metrics
    compactor: Compactor

    def leader(self, name: str = "t") -> Partition:
        return self.broker.leader(name)

    async def fill(
        self, rows: Sequence[tuple[bytes, bytes | None]] = ROWS, name: str = "t"
    ) -> None:
        partition = self.leader(name)
        for row in rows:
            partition.append(keyed(row, timestamp=self.broker.clock.now_ms()), NOW_MS)
        end = partition.log.end_offset
        await until(lambda: partition.high_watermark == end)

    def first_dirty(self, name: str = "t") -> int:
        return self.broker.replicas.log_dir.first_dirty((name, 0))

    def values(self, name: str = "t") -> dict[bytes | None, bytes]:
        return latest(rows_of(self.leader(name).log))


@asynccontextmanager
async def bench(
    folder: Path,
    configs: dict[str, dict[str, str]] | None = None,
    files: Files | None = None,
) -> AsyncIterator[Bench]:
    configs = configs or {"t": COMPACT}
    topics = [topic(name, id=number) for number, name in enumerate(configs, 1)]
    async with rig(folder, image(*topics, configs=configs), files=files) as broker:
        worker, counted = Worker(), Metrics()
        compactor = Compactor(
            broker.replicas,
            clock=broker.clock,
            run_worker=worker.run,
            counts=counted,
            backoff_seconds=0,
        )
        yield Bench(broker, worker, counted, compactor)


async def cleaning_under_way(made: Bench) -> "asyncio.Task[bool]":
    made.worker.gate.clear()
    task = asyncio.ensure_future(made.compactor.clean_next())
    await until(lambda: len(made.worker.jobs) > 0)
    return task
