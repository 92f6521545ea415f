"""What a coordinator of this broker appends: only under its own leadership, and seen once safe."""

import asyncio
import errno
from pathlib import Path

import pytest

from brokers.protocol.errors import ErrorCode, KafkaError
from tests.brokers.replication.parts import OTHER, REPLICATED, GatedFiles, image, rig, topic, until
from tests.builders.logs import NOW_MS, batch, marker
from tests.fakes.faulty_files import Fault, FaultyFiles

COMPACTED = {"t": {"cleanup.policy": "compact"}}


def test_it_is_readable_once_the_disk_has_confirmed(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            files.gate.clear()
            partition = broker.leader()
            appended = partition.append_as_coordinator(batch(records=3), NOW_MS, leader_epoch=0)
            assert (appended.base_offset, appended.last_offset) == (0, 2)
            assert partition.high_watermark == 0
            files.gate.set()
            await until(lambda: partition.high_watermark == 3)
            assert partition.visible_bytes == partition.appended_bytes

    asyncio.run(run())


def test_it_is_readable_at_once_where_the_disk_is_not_waited_for(tmp_path: Path) -> None:
    async def run() -> None:
        live = {**REPLICATED, "flush.messages": "2"}
        async with rig(tmp_path, image(topic(), configs={"t": live})) as broker:
            partition = broker.leader()
            partition.append_as_coordinator(batch(records=3), NOW_MS, leader_epoch=0)
            assert partition.high_watermark == 3
            await until(lambda: partition.log.flushed_offset == 3)

    asyncio.run(run())


@pytest.mark.parametrize("epoch", [4, 6])
def test_another_leadership_than_it_was_made_under_is_refused(tmp_path: Path, epoch: int) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(epoch=5))) as broker:
            with pytest.raises(KafkaError, match=f"led under epoch 5, .* under {epoch}") as caught:
                broker.leader().append_as_coordinator(batch(), NOW_MS, leader_epoch=epoch)
            assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert broker.leader().log.end_offset == 0

    asyncio.run(run())


def test_who_does_not_lead_is_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            partition = broker.leader()
            await broker.apply(image(topic(leader=OTHER, epoch=1), version=2))
            with pytest.raises(KafkaError, match="does not lead"):
                partition.append_as_coordinator(batch(), NOW_MS, leader_epoch=0)

    asyncio.run(run())


def test_a_coordinator_is_believed_about_its_records_and_a_client_is_not(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs=COMPACTED)) as broker:
            partition = broker.leader()
            with pytest.raises(KafkaError, match="no key"):
                partition.append(batch(), NOW_MS)
            partition.append_as_coordinator(batch(), NOW_MS, leader_epoch=0)
            assert partition.log.end_offset == 1

    asyncio.run(run())


def test_a_coordinator_may_write_markers(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            partition = broker.leader()
            end = marker(7, commit=True)
            partition.append_as_coordinator(end, NOW_MS, leader_epoch=0)
            assert partition.log.end_offset == 1

    asyncio.run(run())


def test_a_failed_disk_is_reported(tmp_path: Path) -> None:
    async def run() -> None:
        files = FaultyFiles()
        async with rig(tmp_path, files=files) as broker:
            files.plan(Fault(at=0, error=errno.EIO, kinds=frozenset({"pwrite"})))
            with pytest.raises(KafkaError, match="its disk has failed") as caught:
                broker.leader().append_as_coordinator(batch(), NOW_MS, leader_epoch=0)
            assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
            assert broker.failures == [broker.replicas.log_dir.handles.failure]

    asyncio.run(run())
