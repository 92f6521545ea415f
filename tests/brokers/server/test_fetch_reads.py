"""One pass over the partitions of a fetch: what it holds, and what it lets go."""

import asyncio
import errno
from pathlib import Path

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.fetch import FetchPartition
from brokers.server.fetch_reads import read
from brokers.server.fetch_sessions import Interest
from tests.brokers.replication.parts import REPLICATED, Rig, image, rig, topic
from tests.builders.logs import NOW_MS, batch
from tests.fakes.faulty_files import Fault, FaultyFiles

LIVE = image(topic(partitions=2), configs={"t": REPLICATED})


def interest(index: int = 0, offset: int = 0) -> Interest:
    wanted = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
    return Interest("t", wanted)


def pins(broker: Rig, index: int = 0) -> int:
    return broker.leader(index=index).log.segments.active.file.pins


def test_a_reading_holds_its_files_until_it_is_released(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, LIVE) as broker:
            broker.leader().append(batch(), NOW_MS)
            interests = [interest(0), interest(1)]
            found = read(
                broker.replicas, interests, version=12, max_bytes=1 << 20, isolation_level=0
            )
            assert (pins(broker, 0), pins(broker, 1)) == (1, 0)
            assert found.size == len(batch())
            assert found.watched == [broker.leader(), broker.leader(index=1)]

            found.release()
            found.release()
            assert pins(broker) == 0

    asyncio.run(run())


def test_what_a_going_session_was_told_is_passed_over(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, LIVE) as broker:
            known = interest(0)
            for is_going, expected in ((False, False), (True, True)):
                found = read(
                    broker.replicas,
                    [known],
                    version=12,
                    max_bytes=1 << 20,
                    isolation_level=0,
                    is_going=is_going,
                )
                assert (found.data[0] is None) == expected
                assert found.watched == [broker.leader()]
                if found.data[0] is not None:
                    known.told(found.data[0])

    asyncio.run(run())


def test_a_disk_that_cannot_be_read_is_told_by_its_code_and_ends_the_log_dir(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        files = FaultyFiles()
        async with rig(tmp_path, LIVE, files=files) as broker:
            for _ in range(3):
                broker.leader().append(batch(), NOW_MS)
            files.plan(Fault(at=0, error=errno.EIO, is_lasting=True, kinds=frozenset({"pread"})))
            found = read(
                broker.replicas, [interest(0)], version=9, max_bytes=1 << 20, isolation_level=0
            )
            files.heal()
            [data] = found.data
            assert data is not None
            assert data.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert len(broker.failures) == 1
            assert pins(broker) == 0

    asyncio.run(run())
