"""All partitions of a broker: what an image makes, changes and removes, and what stays."""

import asyncio
import errno
from pathlib import Path

import pytest

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.replication.housekeeping import Housekeeping
from brokers.storage.log_dir import LogDir
from tests.brokers.replication.parts import (
    OTHER,
    REPLICATED,
    GatedFiles,
    image,
    rig,
    topic,
    topic_id,
    until,
)
from tests.builders.logs import NOW_MS, batch
from tests.fakes.faulty_files import Fault, FaultyFiles

LIVE = {"t": REPLICATED}


def folders(path: Path) -> list[str]:
    """The partition folders, without what is added to the names of those set aside."""
    names = (entry.name for entry in path.iterdir() if entry.is_dir())
    return sorted(
        f"{name.split('.')[0]}-{name.rpartition('-')[2]}" if "." in name else name for name in names
    )


def code_of(broker: object, name: str, index: int = 0) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        broker.replicas.leader(name, index)  # type: ignore[attr-defined]
    return caught.value.code


def test_an_image_makes_the_partitions_that_this_broker_leads(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(partitions=3), topic("u", id=2, leader=OTHER))) as b:
            assert folders(tmp_path) == ["t-0", "t-1", "t-2"]
            assert {p.index for p in b.replicas.partitions()} == {0, 1, 2}
            assert b.replicas.leader_by_id(topic_id(1), 2) is b.leader("t", 2)
            assert code_of(b, "u") is ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert code_of(b, "x") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert code_of(b, "t", 3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            with pytest.raises(KafkaError, match="no topic has the id"):
                b.replicas.leader_by_id(topic_id(9), 0)

    asyncio.run(run())


def test_the_same_image_again_changes_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        cluster = image(topic(partitions=2))
        async with rig(tmp_path, cluster) as broker:
            before = list(broker.replicas.partitions())
            await broker.apply(cluster)
            assert list(broker.replicas.partitions()) == before

    asyncio.run(run())


def test_partitions_are_added_to_a_topic(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            first = broker.leader()
            await broker.apply(image(topic(partitions=3), version=2))
            assert len(broker.replicas) == 3
            assert broker.leader() is first

    asyncio.run(run())


def test_a_changed_configuration_reaches_partitions_that_are_there(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            configs = {"t": {"retention.ms": "1234", "max.message.bytes": "100"}}
            await broker.apply(image(topic(), configs=configs, version=2))
            assert broker.leader().log.config.retention_ms == 1234
            with pytest.raises(KafkaError) as caught:
                broker.leader().append(batch(size=500), NOW_MS)
            assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
            await broker.apply(image(topic(), version=3))
            assert broker.leader().log.config.retention_ms == 604_800_000

    asyncio.run(run())


def test_a_partition_is_removed_only_by_a_record_that_names_its_topic(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            await broker.apply(image(version=2))
            assert code_of(broker, "t") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            await broker.apply(image(version=3, deleted=[7]))
            assert folders(tmp_path) == ["t-0"]
            await broker.apply(image(version=4, deleted=[7, 1]))
            assert folders(tmp_path) == ["t-0-delete"]

    asyncio.run(run())


def test_a_topic_made_again_begins_anew(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs=LIVE)) as broker:
            broker.leader().append(batch(), NOW_MS)
            await broker.apply(image(topic(id=2), configs=LIVE, version=2, deleted=[1]))
            assert broker.leader().log.end_offset == 0
            assert broker.leader().topic_id == topic_id(2)
            assert folders(tmp_path) == ["t-0", "t-0-delete"]
            with pytest.raises(KafkaError):
                broker.replicas.leader_by_id(topic_id(1), 0)

    asyncio.run(run())


def test_a_folder_of_another_topic_of_that_name_is_set_aside(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs=LIVE)) as broker:
            broker.leader().append(batch(), NOW_MS)
            await broker.apply(image(topic(id=2), configs=LIVE, version=2))
            assert broker.leader().log.end_offset == 0
            assert folders(tmp_path) == ["t-0", "t-0-stray"]

    asyncio.run(run())


def test_a_folder_that_was_copied_here_is_taken_for_the_topic_of_its_name(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs=LIVE)) as broker:
            broker.leader().append(batch(), NOW_MS)
            await broker.replicas.close(broker_epoch=1)
        (tmp_path / "t-0" / "partition.metadata").unlink()
        async with rig(tmp_path, image(topic(id=5))) as broker:
            assert broker.leader().high_watermark == 1
            assert broker.replicas.log_dir.topic_ids["t", 0] == topic_id(5)

    asyncio.run(run())


def test_a_partition_that_is_read_makes_room_at_once_for_the_next_of_its_name(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs=LIVE)) as broker:
            broker.leader().append(batch(), NOW_MS)
            held = broker.leader().read(0, 1000, min_one_batch=True)

            await broker.apply(image(topic(id=2), configs=LIVE, version=2, deleted=[1]))

            assert folders(tmp_path) == ["t-0", "t-0-delete"]
            assert broker.leader().topic_id == topic_id(2)
            assert not broker.replicas.postponed
            handles = broker.replicas.log_dir.handles
            assert len(held.read(handles.files)) == len(batch())
            held.release()
            assert handles.doomed_files == 0

    asyncio.run(run())


def test_a_partition_that_is_being_flushed_is_removed_afterwards(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            files.gate.clear()
            partition = broker.leader()
            partition.append(batch(), NOW_MS)
            await until(lambda: partition.is_flushing)
            await broker.apply(image(version=2, deleted=[1]))
            assert folders(tmp_path) == ["t-0"]

            files.gate.set()
            await until(lambda: not partition.is_flushing)
            broker.replicas.try_postponed()
            assert folders(tmp_path) == ["t-0-delete"]
            assert broker.failures == []

    asyncio.run(run())


def test_a_full_disk_puts_a_partition_off_until_there_is_room(tmp_path: Path) -> None:
    async def run() -> None:
        files = FaultyFiles()
        async with rig(tmp_path, files=files) as broker:
            files.plan(Fault(at=0, error=errno.ENOSPC, is_lasting=True))
            await broker.apply(image(topic(), topic("u", id=2), version=2))
            assert code_of(broker, "u") is ErrorCode.KAFKA_STORAGE_ERROR
            assert [event for event, _error in broker.troubles] == ["partition.not_made"]

            files.heal()
            broker.replicas.try_postponed()
            assert broker.leader("u").log.end_offset == 0
            assert broker.failures == []

    asyncio.run(run())


def test_a_clean_end_leaves_every_watermark_and_a_mark(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(partitions=2), configs=LIVE)) as broker:
            broker.leader(index=1).append(batch(records=4), NOW_MS)
            assert await broker.replicas.close(broker_epoch=9)
        text = (tmp_path / "replication-offset-checkpoint").read_text().split("\n")
        assert sorted(text[2:4]) == ["t 0 0", "t 1 4"]

    asyncio.run(run())


def test_watermarks_of_logs_that_are_not_open_are_kept(tmp_path: Path) -> None:
    async def run() -> None:
        cluster = image(topic(partitions=2), configs=LIVE)
        async with rig(tmp_path, cluster) as broker:
            broker.leader(index=1).append(batch(records=4), NOW_MS)
            assert await broker.replicas.close(broker_epoch=9)
        # Only a complete cleaning is called .swap, so a broken one has no explanation.
        (tmp_path / "t-1" / f"{0:020}.log.swap").write_bytes(b"\xff" * 99)

        async with rig(tmp_path, cluster) as broker:
            assert ("t", 1) in broker.replicas.log_dir.failed
            assert broker.replicas.high_watermarks() == {("t", 0): 0, ("t", 1): 4}

    asyncio.run(run())


def test_logs_that_a_full_disk_refused_at_the_start_are_opened_later(tmp_path: Path) -> None:
    async def run() -> None:
        cluster, before = image(topic(partitions=3), configs=LIVE), FaultyFiles()
        async with rig(tmp_path, cluster, files=before) as broker:
            for index in (1, 2):
                broker.leader(index=index).append(batch(records=4), NOW_MS)
        before.close_all()

        # The lock of the log dir is the first, and it is there already.
        full = Fault(at=1, error=errno.ENOSPC, kinds=frozenset({"open"}), is_lasting=True)
        files = FaultyFiles(full)
        async with rig(tmp_path, cluster, files=files) as broker:
            assert broker.leader(index=0).is_leading
            assert broker.replicas.log_dir.refused == [("t", 1), ("t", 2)]
            assert not broker.replicas.open_refused()
            assert broker.replicas.log_dir.refused == [("t", 2), ("t", 1)]
            assert code_of(broker, "t", 1) is ErrorCode.KAFKA_STORAGE_ERROR

            files.heal()
            await Housekeeping(broker.replicas, clock=broker.clock).open_refused()
            broker.replicas.try_postponed()

            assert broker.replicas.log_dir.failed == {}
            assert [broker.leader(index=index).high_watermark for index in (1, 2)] == [4, 4]
            assert broker.failures == []
            assert await broker.replicas.close(broker_epoch=2)

    asyncio.run(run())


def test_a_disk_that_fails_in_such_a_try_is_reported(tmp_path: Path) -> None:
    async def run() -> None:
        cluster, before = image(topic(), configs=LIVE), FaultyFiles()
        async with rig(tmp_path, cluster, files=before) as broker:
            broker.leader().append(batch(records=4), NOW_MS)
        before.close_all()

        full = Fault(at=1, error=errno.ENOSPC, kinds=frozenset({"open"}), is_lasting=True)
        files = FaultyFiles(full)
        async with rig(tmp_path, cluster, files=files) as broker:
            files.plan(Fault(at=0, error=errno.EIO, kinds=frozenset({"datasync"})))
            assert not broker.replicas.open_refused()

            assert broker.failures == [broker.replicas.log_dir.handles.failure]

    asyncio.run(run())


def test_damage_found_by_then_is_reported(tmp_path: Path) -> None:
    async def run() -> None:
        cluster, before = image(topic(), configs=LIVE), FaultyFiles()
        async with rig(tmp_path, cluster, files=before) as broker:
            broker.leader().append(batch(records=4), NOW_MS)
            broker.leader().log.flush()
            broker.replicas.log_dir.write_checkpoints()
        before.close_all()
        (tmp_path / "t-0" / "leader-epoch-checkpoint").unlink()
        (tmp_path / "t-0" / f"{0:020}.log").write_bytes(b"")

        full = Fault(at=0, error=errno.ENOSPC, kinds=frozenset({"unlink"}), is_lasting=True)
        (tmp_path / "t-0" / "left.tmp").touch()
        files = FaultyFiles(full)
        async with rig(tmp_path, cluster, files=files) as broker:
            assert broker.replicas.log_dir.refused == [("t", 0)]
            files.heal()
            broker.replicas.open_refused()

            assert [event for event, _error in broker.troubles] == ["log.damaged"]

    asyncio.run(run())


def test_applying_gives_way_to_others(tmp_path: Path) -> None:
    async def run() -> None:
        from brokers.clock import SystemClock  # noqa: PLC0415 - only here time must run

        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with rig(tmp_path, clock=SystemClock()) as broker:
            task = asyncio.ensure_future(others())
            await broker.apply(image(topic(partitions=50), version=2))
            task.cancel()
        assert turns >= 5

    asyncio.run(run())


def test_log_dirs_without_an_image_keep_everything(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs=LIVE)) as broker:
            broker.leader().append(batch(), NOW_MS)
            await broker.replicas.close(broker_epoch=1)
        async with rig(tmp_path, image()) as broker:
            log_dir: LogDir = broker.replicas.log_dir
            assert len(broker.replicas) == 0
            assert log_dir.logs["t", 0].config.retention_ms == -1

    asyncio.run(run())
