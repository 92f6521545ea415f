"""A partition: how far readers see, who is let go when, and what a leader's epoch means."""

import asyncio
import errno
from pathlib import Path

import pytest

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.storage.errors import LogDirFailed
from brokers.storage.log import PartitionLog
from tests.brokers.replication.parts import (
    OTHER,
    REPLICATED,
    GatedFiles,
    image,
    rig,
    topic,
    until,
)
from tests.builders.logs import NOW_MS, batch

LIVE = {"t": REPLICATED}


class Waiter:
    def __init__(self) -> None:
        self.told: list[object] = []

    def reached(self, slot: int) -> None:
        self.told.append(slot)

    def lost(self, slot: int, error: KafkaError) -> None:
        self.told.append((slot, error.code))


class Watching:
    def __init__(self) -> None:
        self.bytes = 0
        self.changes = 0

    def grew(self, size: int) -> None:
        self.bytes += size

    def changed(self) -> None:
        self.changes += 1

    def expire(self) -> None:
        self.changes += 1


def test_waits_end_in_the_order_of_their_offsets(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            files.gate.clear()
            partition, waiter = broker.leader(), Waiter()
            for slot in range(3):
                partition.append(batch(), NOW_MS)
                partition.wait_for(slot + 1, waiter, slot)
            partition.wait_for(1, waiter, 9)
            assert partition.waiting == 4

            files.gate.set()
            await until(lambda: len(waiter.told) == 4)
            assert waiter.told == [0, 1, 2, 9]
            assert broker.replicas.room.appends == 0

    asyncio.run(run())


def test_the_next_flush_begins_once_half_of_the_producers_are_back(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            partition = broker.leader()

            def append(count: int) -> None:
                for _ in range(count):
                    partition.append(batch(), NOW_MS)

            # Six batches go together, and two come while they are on their way: eight take part.
            files.gate.clear()
            append(6)
            await until(lambda: partition.is_flushing)
            append(2)
            files.gate.set()
            await until(lambda: not partition.is_flushing)
            assert (partition.high_watermark, partition.is_flush_early) == (6, True)

            files.gate.clear()
            append(1)
            assert (partition.is_flushing, partition.is_flush_early) == (False, True)
            append(1)
            assert (partition.is_flushing, partition.is_flush_asked) == (True, False)
            append(4)
            assert partition.is_flush_asked
            files.gate.set()
            await until(lambda: partition.high_watermark == 14)

    asyncio.run(run())


@pytest.mark.parametrize(("milliseconds", "flushes"), [(1, 2), (10, 1)])
def test_a_crowd_that_comes_right_behind_its_flush_is_halved_and_no_other(
    tmp_path: Path, milliseconds: int, flushes: int
) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            partition = broker.leader()
            for _ in range(8):
                partition.append(batch(), NOW_MS)
            await until(lambda: partition.high_watermark == 8)

            broker.manual.advance(milliseconds)
            files.syncs = 0
            for _ in range(8):
                partition.append(batch(), NOW_MS)
            assert partition.is_flushing == (flushes == 2)
            await until(lambda: partition.high_watermark == 16)
            assert files.syncs == flushes

    asyncio.run(run())


def test_repeated_batches_that_find_all_on_the_disk_are_told_so_after_their_turn(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with rig(tmp_path, files=GatedFiles()) as broker:
            partition, waiter = broker.leader(), Waiter()
            for sequence in range(4):
                partition.append(batch(producer=7, sequence=sequence), NOW_MS)
            await until(lambda: partition.high_watermark == 4)
            # Flushed while another led: readers see it once this leadership has asked, too.
            partition.high_watermark = 0

            for sequence in range(4):
                assert partition.append(batch(producer=7, sequence=sequence), NOW_MS).is_duplicate
                assert partition.high_watermark == 0, "answered in the middle of an append"
            partition.wait_for(4, waiter, 1)
            await until(lambda: waiter.told == [1])

    asyncio.run(run())


def test_a_log_dir_that_fails_as_a_flush_begins_in_mid_turn_fails_no_append(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with rig(tmp_path, files=GatedFiles()) as broker:
            partition = broker.leader()
            for _ in range(4):
                partition.append(batch(), NOW_MS)
            await until(lambda: partition.high_watermark == 4)

            def fail(**_options: object) -> None:
                raise LogDirFailed("x", "fsync", OSError(errno.EIO, "bad"))

            monkeypatch.setattr(
                PartitionLog, "begin_flush", lambda _log, **options: fail(**options)
            )
            for _ in range(2):
                partition.append(batch(), NOW_MS)
            assert len(broker.failures) == 1
            assert (partition.high_watermark, partition.log.end_offset) == (4, 6)

    asyncio.run(run())


def test_producers_that_stay_away_are_not_waited_for(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            partition = broker.leader()
            files.gate.clear()
            for _ in range(6):
                partition.append(batch(), NOW_MS)
            await until(lambda: partition.is_flushing)
            partition.append(batch(), NOW_MS)
            files.gate.set()
            await until(lambda: partition.high_watermark == 7)

    asyncio.run(run())


def test_watchers_hear_of_bytes_once_they_can_be_read(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            files.gate.clear()
            partition, watcher = broker.leader(), Watching()
            partition.watchers[watcher] = None
            data = batch()
            partition.append(data, NOW_MS)
            for _ in range(20):
                await asyncio.sleep(0)
            assert watcher.bytes == 0

            files.gate.set()
            await until(lambda: watcher.bytes == len(data))
            assert watcher.changes == 0

    asyncio.run(run())


def test_a_partition_that_resigns_sends_everybody_away(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            files.gate.clear()
            partition, waiter, watcher = broker.leader(), Waiter(), Watching()
            partition.append(batch(), NOW_MS)
            partition.wait_for(1, waiter, 0)
            partition.watchers[watcher] = None
            partition.resign()

            assert waiter.told == [(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)]
            assert watcher.changes == 1
            with pytest.raises(KafkaError, match="does not lead"):
                partition.append(batch(), NOW_MS)

    asyncio.run(run())


def test_leadership_that_comes_back_finds_what_was_not_flushed_and_flushes_it(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            files.gate.clear()
            partition = broker.leader()
            partition.append(batch(), NOW_MS)
            await until(lambda: files.syncs > 0)
            partition.append(batch(), NOW_MS)
            await broker.apply(image(topic(leader=OTHER, epoch=1), version=2))
            await broker.apply(image(topic(epoch=2), version=3))
            assert broker.leader() is partition

            files.gate.set()
            await until(lambda: partition.high_watermark == 2)

    asyncio.run(run())


def test_what_was_flushed_while_another_led_is_readable_once_it_is_led_again(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            files.gate.clear()
            partition = broker.leader()
            begun = files.syncs
            partition.append(batch(), NOW_MS)
            await until(lambda: files.syncs > begun)
            await broker.apply(image(topic(leader=OTHER, epoch=1), version=2))
            files.gate.set()
            await until(lambda: partition.log.flushed_offset == 1)

            await broker.apply(image(topic(epoch=2), version=3))

            await until(lambda: partition.high_watermark == 1)

    asyncio.run(run())


def test_an_earlier_leadership_of_an_empty_log_ended_where_the_log_begins(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(epoch=3))) as broker:
            partition = broker.leader()

            assert [partition.epoch_end(epoch) for epoch in (-1, 2, 3, 4)] == [
                (-1, -1),
                (2, 0),
                (3, 0),
                (-1, -1),
            ]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (-1, None),
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (5, None),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_who_speaks_of_another_leadership_is_refused(
    tmp_path: Path, epoch: int, code: ErrorCode | None
) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(epoch=5))) as broker:
            found = None
            try:
                broker.leader().check_epoch(epoch)
            except KafkaError as error:
                found = error.code
            assert found is code

    asyncio.run(run())


def test_batches_carry_the_epoch_of_their_leader(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(epoch=5), configs=LIVE)) as broker:
            broker.leader().append(batch(), NOW_MS)
            await broker.apply(image(topic(epoch=8), configs=LIVE, version=2))
            broker.leader().append(batch(), NOW_MS)
            assert broker.leader().log.epochs.entries() == [(5, 0), (8, 1)]

    asyncio.run(run())


def test_another_durability_takes_effect_at_once_and_takes_nothing_back(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            partition = broker.leader()
            files.gate.clear()
            partition.append(batch(), NOW_MS)
            assert partition.high_watermark == 0
            await broker.apply(image(topic(), configs=LIVE, version=2))
            assert partition.high_watermark == 1
            await broker.apply(image(topic(), version=3))
            partition.append(batch(), NOW_MS)
            assert partition.high_watermark == 1

            files.gate.set()
            await until(lambda: partition.high_watermark == 2)

    asyncio.run(run())


def test_a_log_that_is_not_synced_is_flushed_after_so_many_messages(tmp_path: Path) -> None:
    async def run() -> None:
        configs = {"t": {**REPLICATED, "flush.messages": "3"}}
        async with rig(tmp_path, image(topic(), configs=configs)) as broker:
            partition = broker.leader()
            for _ in range(2):
                partition.append(batch(), NOW_MS)
            for _ in range(20):
                await asyncio.sleep(0)
            assert partition.log.flushed_offset == 0
            partition.append(batch(), NOW_MS)
            await until(lambda: partition.log.flushed_offset == 3)

    asyncio.run(run())
