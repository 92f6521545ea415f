"""New partitions, many at a time: the loop goes on, and whoever waits is told how it ended."""

import asyncio
import errno
from pathlib import Path

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.replication.creation import AT_ONCE, TOGETHER, Creations
from brokers.storage.errors import LogDirFailed
from brokers.storage.log_dir import NewPartition
from tests.brokers.replication.parts import GatedFiles, Rig, image, rig, topic, until
from tests.builders.logs import NOW_MS, batch
from tests.fakes.faulty_files import Fault, FaultyFiles

ID = bytes(range(16))


def creations(broker: Rig) -> Creations:
    loop = asyncio.get_running_loop()
    return Creations(broker.replicas.log_dir, flusher=broker.replicas.flusher, loop=loop)


def new(index: int) -> NewPartition:
    return NewPartition(topic="u", index=index, topic_id=ID)


def test_what_was_made_can_be_opened(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            made = creations(broker)
            for index in range(3):
                made.add(new(index))
            made.begin()

            batch_made, error = await made.take()

            assert (batch_made, error) == ([new(0), new(1), new(2)], None)
            assert made.are_done
            log = broker.replicas.log_dir.open_created(batch_made[2])
            assert (log.end_offset, broker.replicas.log_dir.topic_ids["u", 2]) == (0, ID)

    asyncio.run(run())


def test_partitions_are_served_while_others_are_made(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        configs = {"t": {"samsa.durability": "replicated"}}
        async with rig(tmp_path, image(topic(), configs=configs), files=files) as broker:
            files.gate.clear()
            many = image(topic(), topic("u", id=2, partitions=3), configs=configs, version=2)
            applying = asyncio.ensure_future(broker.apply(many))
            await until(lambda: files.syncs > 0)

            broker.leader().append(batch(), NOW_MS)

            assert broker.leader().high_watermark == 1
            assert not applying.done()
            files.gate.set()
            await applying
            assert len(broker.replicas) == 4

    asyncio.run(run())


def test_more_than_are_made_together_are_all_made(tmp_path: Path) -> None:
    async def run() -> None:
        number = TOGETHER * (AT_ONCE + 1) + 3
        async with rig(tmp_path) as broker:
            await broker.apply(image(topic(), topic("u", id=2, partitions=number), version=2))

            assert len(broker.replicas) == number + 1
            assert not broker.replicas.postponed
            assert {p.index for p in broker.replicas.partitions() if p.topic == "u"} == set(
                range(number)
            )

    asyncio.run(run())


def test_a_full_disk_puts_all_of_a_batch_off_and_says_so_once(tmp_path: Path) -> None:
    async def run() -> None:
        files = FaultyFiles()
        async with rig(tmp_path, files=files) as broker:
            kinds = frozenset({"write"})
            files.plan(Fault(at=1, error=errno.ENOSPC, kinds=kinds, is_lasting=True))
            await broker.apply(image(topic(), topic("u", id=2, partitions=3), version=2))

            assert list(broker.replicas.postponed) == [("u", 0), ("u", 1), ("u", 2)]
            assert [event for event, _error in broker.troubles] == ["partition.not_made"]

            files.heal()
            broker.replicas.try_postponed()
            assert len(broker.replicas) == 4
            assert broker.failures == []

    asyncio.run(run())


def test_a_disk_that_fails_is_reported_as_the_end_of_the_log_dir(tmp_path: Path) -> None:
    async def run() -> None:
        files = FaultyFiles()
        async with rig(tmp_path, files=files) as broker:
            files.plan(Fault(at=0, error=errno.EIO, kinds=frozenset({"datasync"})))
            await broker.apply(image(topic(), topic("u", id=2), version=2))

            assert [type(failure) for failure in broker.failures] == [LogDirFailed]
            assert broker.replicas.log_dir.handles.failure is not None

    asyncio.run(run())


def test_a_stop_in_the_middle_leaves_nobody_waiting_and_a_clean_dir(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            files.gate.clear()
            many = image(topic(), topic("u", id=2, partitions=3), version=2)
            applying = asyncio.ensure_future(broker.apply(many))
            await until(lambda: files.syncs > 0)

            applying.cancel()
            files.gate.set()

            assert await broker.replicas.close(broker_epoch=1)
        async with rig(tmp_path, many) as broker:
            assert broker.replicas.log_dir.clean_broker_epoch == 1
            assert len(broker.replicas) == 4

    asyncio.run(run())


def test_what_cannot_begin_is_told_to_who_waits(tmp_path: Path) -> None:
    async def run() -> None:
        files = FaultyFiles()
        async with rig(tmp_path, files=files) as broker:
            log_dir = broker.replicas.log_dir
            log_dir.write_high_watermarks({("u", 0): 7, ("t", 0): 0})
            files.plan(Fault(at=0, error=errno.ENOSPC, is_lasting=True))
            made = creations(broker)
            made.add(new(0))
            made.begin()

            _batch, error = await made.take()

            assert isinstance(error, KafkaError)
            assert error.code is ErrorCode.KAFKA_STORAGE_ERROR

    asyncio.run(run())


def test_a_topic_made_again_waits_once_for_what_its_old_self_had_saved(tmp_path: Path) -> None:
    async def run() -> None:
        files, number = FaultyFiles(), 2 * TOGETHER + 1
        async with rig(tmp_path, image(topic(partitions=number)), files=files) as broker:
            log_dir = broker.replicas.log_dir
            log_dir.write_checkpoints()
            log_dir.write_high_watermarks(broker.replicas.high_watermarks())
            files.calls.clear()

            await broker.apply(image(topic(id=2, partitions=number), version=2, deleted=[1]))

            synced = [Path(call.path).name for call in files.calls if call.kind == "datasync"]
            checkpoints = sorted(name for name in synced if "checkpoint" in name)
            assert checkpoints == [
                "recovery-point-offset-checkpoint.tmp",
                "replication-offset-checkpoint.tmp",
            ]
            assert len(broker.replicas) == number

    asyncio.run(run())
