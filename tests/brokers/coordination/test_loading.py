"""Loading a shard from its log: everything that is sound, in order, and nothing that is not."""

import asyncio
import errno
from pathlib import Path

from brokers.coordination.runtime import ShardState
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.control import EndTxnMarker, build_end_txn
from brokers.replication.waits import WaitRoom
from tests.brokers.coordination.desk import NAME, Desk, cluster, desk, offsets
from tests.brokers.replication.parts import GatedFiles, rig, until
from tests.builders.logs import NOW_MS
from tests.fakes.clock import ManualClock
from tests.fakes.faulty_files import Fault, FaultyFiles
from tests.fakes.toy_shard import add

Pair = tuple[bytes | None, bytes | None]


def written(*pairs: Pair, offset: int = 0, producer: int = -1) -> bytearray:
    """A batch of records, from `offset`; of a transaction where a producer is named."""
    builder = BatchBuilder(
        base_offset=offset,
        leader_epoch=0,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=0 if producer >= 0 else -1,
        is_transactional=producer >= 0,
    )
    for key, value in pairs:
        builder.append(key, value, timestamp=NOW_MS)
    return builder.build()


def ended(producer: int, *, offset: int, is_commit: bool) -> bytearray:
    marker = EndTxnMarker(is_commit=is_commit, coordinator_epoch=0)
    batch = build_end_txn(
        marker, producer_id=producer, producer_epoch=0, timestamp=NOW_MS, leader_epoch=0
    )
    batch[:8] = offset.to_bytes(8, "big")
    return batch


async def fill(folder: Path, *batches: bytearray) -> None:
    """Writes batches as they are into the log of the first partition."""
    async with rig(folder, cluster(offsets())) as broker:
        log = broker.leader(NAME).log
        for data in batches:
            log.append_replicated(memoryview(data), now_ms=NOW_MS)
        log.flush()
        await broker.replicas.close(broker_epoch=1)


def problems(tool: Desk) -> list[str]:
    return [f"{event} {error}" for event, error in tool.told]


def test_a_shard_comes_back_as_it_was(tmp_path: Path) -> None:
    async def run() -> None:
        async with desk(tmp_path) as tool:
            for number in range(1, 6):
                await tool.told_of(add("a", number))
            before = tool.shards[0].replayed
            await tool.runtime.close()
            await tool.broker.replicas.close(broker_epoch=1)
        async with desk(tmp_path) as tool:
            assert tool.sums() == {"a": 15}
            assert tool.shards[0].replayed == before

    asyncio.run(run())


def test_its_timers_run_from_then_on(tmp_path: Path) -> None:
    async def run() -> None:
        await fill(tmp_path, written((b"=a", b"1")))
        async with desk(tmp_path) as tool:
            await tool.broker.pass_time(1_100)
            await until(lambda: tool.sums() == {"a": -1})

    asyncio.run(run())


def test_gaps_and_empty_batches_are_what_compaction_leaves(tmp_path: Path) -> None:
    async def run() -> None:
        gap = BatchBuilder(base_offset=20, leader_epoch=0)
        gap.append(b"+a", b"2", timestamp=NOW_MS, offset=25)
        await fill(
            tmp_path,
            written((b"+a", b"1"), offset=10),
            gap.build(),
            written((b"+a", None), (b"+a", b"4"), offset=40),
        )
        async with desk(tmp_path) as tool:
            assert tool.sums() == {"a": 4}
            assert [value for _key, value, _at in tool.shards[0].replayed] == [b"1", b"2", b"4"]
            assert await tool.told_of(add("a", 1)) == 1

    asyncio.run(run())


def test_unknown_records_are_skipped_and_unreadable_ones_reported(tmp_path: Path) -> None:
    async def run() -> None:
        await fill(
            tmp_path,
            written((b"?what", b"1"), (b"+a", b"many"), (None, b"1"), (b"+a", b"1")),
        )
        async with desk(tmp_path) as tool:
            assert tool.sums() == {"a": 1}
            start = f"coordinator.record_unreadable CORRUPT_MESSAGE: {NAME}-0 at offset"
            assert problems(tool) == [
                f"{start} 1: b'many' is not a number",
                f"{start} 2: the record has no key",
            ]

    asyncio.run(run())


def test_transactions_count_once_they_are_committed(tmp_path: Path) -> None:
    async def run() -> None:
        await fill(
            tmp_path,
            written((b"=a", b"1"), offset=0, producer=7),
            written((b"=b", b"1"), offset=1, producer=8),
            written((b"=a", b"5"), offset=2),
            ended(7, offset=3, is_commit=True),
            ended(8, offset=4, is_commit=False),
            written((b"=c", b"1"), offset=5, producer=9),
        )
        async with desk(tmp_path) as tool:
            assert tool.sums() == {"a": 1}

    asyncio.run(run())


def test_the_log_starts_where_it_says(tmp_path: Path) -> None:
    async def run() -> None:
        await fill(tmp_path, written((b"+a", b"1"), (b"+a", b"2"), (b"+a", b"4")))
        async with desk(tmp_path, is_loaded=False) as tool:
            tool.broker.leader(NAME).delete_before(1)
            await tool.is_active()
            assert tool.sums() == {"a": 6}

    asyncio.run(run())


def test_a_shard_is_loaded_once_the_disk_has_confirmed_all_of_it(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with desk(tmp_path, files=files) as tool:
            files.gate.clear()
            tool.ask(add("a", 1))
            await until(lambda: tool.broker.leader(NAME).log.end_offset == 1)
            await tool.apply(cluster(offsets(epoch=1), version=2))
            for _ in range(20):
                await asyncio.sleep(0)
            assert tool.runtime.states() == {0: ShardState.LOADING}
            assert await tool.told_of(add("a", 1)) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            assert tool.broker.replicas.room.fetches == 1

            files.gate.set()
            await tool.is_active()
            assert tool.sums() == {"a": 1}
            assert tool.broker.replicas.room.fetches == 0

    asyncio.run(run())


def test_load_is_retried_when_no_more_waits_are_allowed(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with desk(tmp_path, files=files, room=WaitRoom(max_fetches=0)) as tool:
            files.gate.clear()
            tool.ask(add("a", 1))
            await until(lambda: tool.broker.leader(NAME).log.end_offset == 1)
            await tool.apply(cluster(offsets(epoch=1), version=2))
            await until(lambda: tool.runtime.states() == {0: ShardState.FAILED})
            assert await tool.told_of(add("a", 1)) is ErrorCode.NOT_COORDINATOR

            files.gate.set()
            await until(lambda: tool.broker.leader(NAME).high_watermark == 1)
            await tool.broker.pass_time(11_000)
            await tool.is_active()
            assert tool.sums() == {"a": 1}

    asyncio.run(run())


def test_damage_costs_the_shard_until_the_file_is_whole(tmp_path: Path) -> None:
    async def run() -> None:
        await fill(tmp_path, written((b"=a", b"1")), written((b"=a", b"2"), offset=1))
        path = tmp_path / f"{NAME}-0" / f"{0:020}.log"
        async with desk(tmp_path, is_loaded=False) as tool:
            sound = path.read_bytes()
            path.write_bytes(sound[:-1] + b"?")
            await until(lambda: tool.runtime.states() == {0: ShardState.FAILED})
            assert [event for event, _error in tool.told] == ["coordinator.not_loaded"]
            error = tool.told[0][1]
            assert isinstance(error, KafkaError)
            assert "CRC" in str(error)

            path.write_bytes(sound)
            await tool.broker.pass_time(11_000)
            await tool.is_active()
            assert tool.sums() == {"a": 2}

    asyncio.run(run())


def test_other_work_continues_while_a_large_log_is_read(tmp_path: Path) -> None:
    async def run() -> None:
        from brokers.clock import SystemClock  # noqa: PLC0415 - only here time must run

        pairs: list[Pair] = [(b"+a", b"1")] * 2_000
        await fill(tmp_path, *(written(*pairs, offset=2_000 * number) for number in range(5)))
        async with desk(tmp_path, clock=SystemClock(), is_loaded=False) as tool:
            turns = 0
            while tool.runtime.states()[0] is not ShardState.ACTIVE:
                turns += 1
                await asyncio.sleep(0)
            assert turns >= 5
            assert tool.sums() == {"a": 10_000}

    asyncio.run(run())


def test_other_work_continues_while_timers_of_a_large_shard_are_set(tmp_path: Path) -> None:
    async def run() -> None:
        clock = ManualClock()
        await fill(tmp_path, written(*((b"=%d" % number, b"1") for number in range(40))))
        async with desk(tmp_path, clock=clock, is_loaded=False) as tool:
            tool.shards[0].on_settled = lambda: clock.advance(1)
            most = 0
            while tool.runtime.states()[0] is not ShardState.ACTIVE:
                before = clock.now_ms()
                await asyncio.sleep(0)
                most = max(most, clock.now_ms() - before)
            assert clock.now_ms() >= 40
            assert 0 < most <= 2

    asyncio.run(run())


def test_a_disk_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    async def run() -> None:
        await fill(tmp_path, written((b"=a", b"1")))
        files = FaultyFiles()
        async with desk(tmp_path, files=files, is_loaded=False) as tool:
            files.plan(Fault(at=0, error=errno.EIO, kinds=frozenset({"pread"}), is_lasting=True))
            await until(lambda: tool.runtime.states() == {0: ShardState.FAILED})
            assert tool.broker.failures != []
            files.heal()

    asyncio.run(run())
