"""The last flush of all logs: what it brings to the disk, and what it need not."""

import asyncio
import errno
from pathlib import Path

from brokers.replication.closing import flush_last
from brokers.storage.names import CLEAN_SHUTDOWN
from tests.brokers.replication.parts import REPLICATED, Rig, image, rig, topic
from tests.builders.logs import NOW_MS, batch
from tests.fakes.faulty_files import SYNCS, Fault, FaultyFiles

LIVE = {"t": REPLICATED}


class Watched(FaultyFiles):
    """Knows which files were synced, also while it fails in other calls."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[str] = []

    def datasync(self, fd: int) -> None:
        super().datasync(fd)
        self.held.append(self._paths[fd])


def synced(files: FaultyFiles) -> list[str]:
    """What was synced, each once, by the part of its path that says what it is."""
    found = {Path(call.path) for call in files.calls if call.kind in SYNCS}
    return sorted(f"{path.parent.name}/{path.suffix or path.name}" for path in found)


async def last_flush(broker: Rig) -> None:
    flusher = broker.replicas.flusher
    await flusher.stop()
    await flush_last(broker.replicas.log_dir.logs.values(), flusher)


def test_logs_that_were_never_written_need_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        files = FaultyFiles()
        async with rig(tmp_path, image(topic(partitions=3)), files=files) as broker:
            files.calls.clear()

            await last_flush(broker)

            assert files.calls == []

    asyncio.run(run())


def test_a_written_log_leaves_all_that_makes_the_next_start_quick(tmp_path: Path) -> None:
    async def run() -> None:
        files = FaultyFiles()
        cluster = image(topic(partitions=2), configs=LIVE)
        async with rig(tmp_path / "data", cluster, files=files) as broker:
            broker.leader(index=1).append(batch(producer=7), NOW_MS)
            files.calls.clear()

            await last_flush(broker)

            kinds = [".index", ".log", ".snapshot", ".timeindex", ".tmp"]
            assert synced(files) == ["data/t-1", *(f"t-1/{kind}" for kind in kinds)]
            assert broker.replicas.log_dir.logs["t", 1].flushed_offset == 1
            files.calls.clear()
            assert broker.replicas.log_dir.close(broker_epoch=1)
            assert [name for name in synced(files) if name.startswith("t-")] == []

    (tmp_path / "data").mkdir()
    asyncio.run(run())


def test_a_small_log_leaves_it_unsynced_for_all_can_be_made_again(tmp_path: Path) -> None:
    async def run() -> None:
        files = FaultyFiles()
        async with rig(tmp_path, files=files) as broker:
            broker.leader().append(batch(), NOW_MS)
            await broker.replicas.flusher.stop()
            files.calls.clear()

            await last_flush(broker)

            assert synced(files) == []
            names = {path.name for path in (tmp_path / "t-0").iterdir()}
            assert {f"{0:020}.index", f"{0:020}.timeindex", f"{1:020}.snapshot"} <= names

    asyncio.run(run())


def test_a_log_that_was_only_read_since_a_clean_start_needs_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        cluster = image(topic(), configs=LIVE)
        async with rig(tmp_path, cluster) as broker:
            broker.leader().append(batch(), NOW_MS)
            assert await broker.replicas.close(broker_epoch=1)
        files = FaultyFiles()
        async with rig(tmp_path, cluster, files=files) as broker:
            broker.leader().read(0, 1000, min_one_batch=True).release()
            files.calls.clear()

            await last_flush(broker)

            assert files.calls == []
            assert await broker.replicas.close(broker_epoch=2)
        async with rig(tmp_path, cluster) as broker:
            assert broker.leader().high_watermark == 1

    asyncio.run(run())


def test_a_log_that_a_full_disk_refuses_keeps_the_dir_from_being_clean(tmp_path: Path) -> None:
    async def run() -> None:
        files = Watched()
        async with rig(tmp_path, image(topic(), configs=LIVE), files=files) as broker:
            broker.leader().append(batch(), NOW_MS)
            files.held.clear()
            kinds = frozenset({"open"})
            files.plan(Fault(at=0, error=errno.ENOSPC, kinds=kinds, is_lasting=True))

            assert not await broker.replicas.close(broker_epoch=1)

            assert [Path(path).suffix for path in files.held] == [".log"]
        assert not (tmp_path / CLEAN_SHUTDOWN).exists()

    asyncio.run(run())
