"""Housekeeping: what goes, what is saved, and that nothing of it stops the broker."""

import asyncio
import errno
from pathlib import Path

import pytest

from brokers.disk_room import MIB, Room
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import MAGIC_POSITION
from brokers.replication.housekeeping import FIRST_SECONDS, Housekeeping, Intervals
from brokers.storage import index_rebuild
from tests.brokers.replication.parts import REPLICATED, GatedFiles, Rig, image, rig, topic, until
from tests.builders.logs import NOW_MS, batch, shifted_index
from tests.fakes.faulty_files import Fault, FaultyFiles

FULL = Room(device=1, size_bytes=300 * MIB, used_bytes=300 * MIB, free_bytes=0)
SMALL = {**REPLICATED, "retention.ms": "1000", "internal.segment.bytes": "300"}


def fill(broker: Rig, count: int = 4) -> None:
    for _ in range(count):
        broker.leader().append(batch(timestamp=NOW_MS), broker.clock.now_ms())


def keeper(broker: Rig, intervals: Intervals | None = None) -> Housekeeping:
    return Housekeeping(broker.replicas, clock=broker.clock, intervals=intervals)


def deleted_in(folder: str) -> list[Path]:
    return list(Path(folder).glob("*.deleted"))


async def flushed(broker: Rig) -> None:
    broker.leader().ask_flush()
    end_offset = broker.leader().log.end_offset
    await until(lambda: broker.leader().log.flushed_offset == end_offset)


def test_old_segments_go_and_their_start_is_saved_first(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs={"t": SMALL})) as broker:
            fill(broker)
            await flushed(broker)
            broker.manual.advance(3_600_000)
            await keeper(broker).apply_retention()

            assert broker.leader().log_start_offset == 4
            assert list((tmp_path / "t-0").glob("*.deleted"))
            await keeper(broker).unlink_deleted()
            assert list((tmp_path / "t-0").glob("*.deleted"))
            broker.manual.advance(60_001)
            await keeper(broker).unlink_deleted()
            assert not list((tmp_path / "t-0").glob("*.deleted"))

    asyncio.run(run())


def test_nothing_above_the_high_watermark_goes(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        configs = {"t": {"retention.ms": "1000", "internal.segment.bytes": "300"}}
        async with rig(tmp_path, image(topic(), configs=configs), files=files) as broker:
            files.gate.clear()
            fill(broker)
            broker.manual.advance(3_600_000)
            await keeper(broker).apply_retention()
            assert broker.leader().log_start_offset == 0

    asyncio.run(run())


def test_a_full_disk_is_reported_and_the_next_round_succeeds(tmp_path: Path) -> None:
    async def run() -> None:
        files = FaultyFiles()
        async with rig(tmp_path, image(topic(), configs={"t": SMALL}), files=files) as broker:
            fill(broker)
            await flushed(broker)
            broker.manual.advance(3_600_000)
            files.plan(Fault(at=0, error=errno.ENOSPC, is_lasting=True))
            every = Intervals(
                tick=0,
                postponed=0,
                rebuild=0,
                flush=0,
                purge=0,
                unlink=0,
                retention=0,
                checkpoint=0,
                producers=0,
            )
            task = asyncio.ensure_future(keeper(broker, every).run())
            await until(lambda: any("retention" in event for event, _ in broker.troubles))
            files.heal()
            await until(lambda: broker.leader().log_start_offset == 4)
            task.cancel()
            assert broker.failures == []

    asyncio.run(run())


def test_a_disk_that_gets_full_is_reported_once_and_deleted_files_go_at_once(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        files = FaultyFiles()
        async with rig(tmp_path, image(topic(), configs={"t": SMALL}), files=files) as broker:
            chores = keeper(broker)
            fill(broker)
            await flushed(broker)
            broker.manual.advance(3_600_000)
            await chores.apply_retention()
            await chores.unlink_deleted()
            folder = broker.leader().log.folder
            assert deleted_in(folder), "a reader may still come for them"
            files.disk_room = FULL

            await chores.measure_room()
            await chores.measure_room()
            await chores.unlink_deleted()

            assert [event for event, _ in broker.troubles] == ["disk.full"]
            assert not deleted_in(folder)
            with pytest.raises(KafkaError, match="the broker's disk is full"):
                fill(broker)

    asyncio.run(run())


def test_old_segments_go_soon_after_the_start_of_a_broker(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs={"t": SMALL})) as broker:
            fill(broker)
            await flushed(broker)
            task = asyncio.ensure_future(keeper(broker, Intervals(tick=0)).run())
            await asyncio.sleep(0)
            broker.manual.advance(int(FIRST_SECONDS * 1000))

            await until(lambda: broker.leader().log_start_offset == 4)

            task.cancel()

    asyncio.run(run())


def test_old_segments_go_when_the_disk_gets_full(tmp_path: Path) -> None:
    async def run() -> None:
        files = FaultyFiles()
        async with rig(tmp_path, image(topic(), configs={"t": SMALL}), files=files) as broker:
            fill(broker)
            await flushed(broker)
            broker.manual.advance(3_600_000)
            files.disk_room = FULL

            await keeper(broker).measure_room()

            assert broker.leader().log_start_offset == 4

    asyncio.run(run())


def test_a_log_without_sync_is_flushed_after_its_time(tmp_path: Path) -> None:
    async def run() -> None:
        configs = {"t": {**REPLICATED, "flush.ms": "1000"}}
        async with rig(tmp_path, image(topic(), configs=configs)) as broker:
            chores = keeper(broker)
            fill(broker)
            await chores.ask_flushes()
            broker.manual.advance(999)
            await chores.ask_flushes()
            for _ in range(20):
                await asyncio.sleep(0)
            assert broker.leader().log.flushed_offset == 0
            broker.manual.advance(1)
            await chores.ask_flushes()
            await until(lambda: broker.leader().log.flushed_offset == 4)

    asyncio.run(run())


def test_complete_segments_of_a_log_without_sync_are_flushed(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs={"t": SMALL})) as broker:
            fill(broker)
            assert broker.leader().log.has_rolled
            await keeper(broker).ask_flushes()
            await until(lambda: not broker.leader().log.has_rolled)
            log = broker.leader().log
            await until(lambda: 0 < log.flushed_offset <= log.segments.active.base_offset)

    asyncio.run(run())


def test_checkpoints_are_written_when_something_has_happened(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs={"t": REPLICATED})) as broker:
            chores = keeper(broker)
            fill(broker)
            await flushed(broker)
            await chores.write_checkpoints()
            points = tmp_path / "recovery-point-offset-checkpoint"
            assert "t 0 4" in points.read_text()
            assert "t 0 4" in (tmp_path / "replication-offset-checkpoint").read_text()

            points.unlink()
            await chores.write_checkpoints()
            assert not points.exists()
            fill(broker, 1)
            await chores.write_checkpoints()
            assert points.exists()

    asyncio.run(run())


def test_removed_partitions_are_unlinked(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            await broker.apply(image(version=2, deleted=[1]))
            await keeper(broker).purge()

    asyncio.run(run())
    assert not [entry for entry in tmp_path.iterdir() if entry.is_dir()]


def test_silent_producers_are_forgotten(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs={"t": REPLICATED})) as broker:
            broker.leader().append(batch(producer=7), broker.clock.now_ms())
            broker.manual.advance(2 * 86_400_000)
            await keeper(broker).expire_producers()
            assert len(broker.leader().log.producers) == 0

    asyncio.run(run())


def test_a_failed_disk_ends_the_loop_and_is_reported(tmp_path: Path) -> None:
    async def run() -> None:
        files = FaultyFiles()
        async with rig(tmp_path, image(topic(), configs={"t": REPLICATED}), files=files) as broker:
            fill(broker)
            files.plan(Fault(at=0, error=errno.EIO, is_lasting=True))
            async with asyncio.timeout(10):
                await keeper(broker, Intervals(tick=0, checkpoint=0)).run()
            assert len(broker.failures) >= 1
            files.heal()

    asyncio.run(run())


def test_wrong_indexes_are_made_again_and_damage_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = {"t": {"internal.segment.bytes": "20000", "index.interval.bytes": "300"}}

    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs=configs)) as broker:
            fill(broker, 300)
            await broker.replicas.close(broker_epoch=1)
        segment, index = (tmp_path / "t-0" / f"{0:020}{end}" for end in (".log", ".index"))
        data = bytearray(segment.read_bytes())
        data[30 * len(batch()) + MAGIC_POSITION] = 9
        segment.write_bytes(data)
        index.write_bytes(shifted_index(index.read_bytes()))
        async with rig(tmp_path, image(topic(), configs=configs)) as broker:
            monkeypatch.setattr(index_rebuild, "STEP_BYTES", 1_000)
            partition = broker.leader()
            codes = []
            for offset in (100, 100):
                with pytest.raises(KafkaError) as caught:
                    partition.read(offset, 1_000, min_one_batch=True)
                codes.append(caught.value.code)
            assert codes == [ErrorCode.KAFKA_STORAGE_ERROR] * 2

            await keeper(broker).rebuild_indexes()
            await keeper(broker).rebuild_indexes()

            for offset in (29, 31, 100):
                found = partition.read(offset, 1, min_one_batch=True)
                assert found.base_offset == offset
                found.release()
            with pytest.raises(KafkaError, match="from offset 30 to 30") as caught:
                partition.read(30, 1, min_one_batch=True)
            assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
            assert [event for event, _error in broker.troubles] == ["log.damaged"]

    asyncio.run(run())
