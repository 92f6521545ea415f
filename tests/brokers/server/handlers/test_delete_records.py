"""DeleteRecords: what goes, what is refused, and that it lasts."""

import asyncio
import errno
from pathlib import Path
from typing import Any

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from brokers.server.handlers import delete_records
from tests.brokers.replication.parts import REPLICATED, GatedFiles, Rig, code_of, image, rig, topic
from tests.builders.logs import NOW_MS, batch
from tests.fakes.faulty_files import Fault, FaultyFiles

LIVE = {"t": REPLICATED}


async def ask(broker: Rig, offset: int, version: int = 2, *, name: str = "t") -> Any:
    wanted = DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=name, partitions=[wanted])])
    answer = (await broker.ask_async(delete_records, request, version)).topics[0].partitions[0]
    return code_of(answer.error_code), answer.low_watermark


def fill(broker: Rig, count: int = 5) -> None:
    for _ in range(count):
        broker.leader().append(batch(), NOW_MS)


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize(("offset", "start"), [(0, 0), (2, 2), (5, 5), (-1, 5)])
def test_the_log_begins_where_it_was_asked_to_and_does_so_after_a_crash(
    tmp_path: Path, version: int, offset: int, start: int
) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs=LIVE)) as broker:
            fill(broker)
            assert await ask(broker, offset, version) == (ErrorCode.NONE, start)
            broker.leader().log.flush()
            checkpoint = tmp_path / "log-start-offset-checkpoint"
            assert (f"t 0 {start}" in checkpoint.read_text()) if start else True

    asyncio.run(run())


def test_a_start_never_goes_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs=LIVE)) as broker:
            fill(broker)
            await ask(broker, 4)
            assert await ask(broker, 2) == (ErrorCode.NONE, 4)

    asyncio.run(run())


REFUSED: list[tuple[str, dict[str, Any], ErrorCode]] = [
    ("above the high watermark", {"offset": 6}, ErrorCode.OFFSET_OUT_OF_RANGE),
    ("below -1", {"offset": -2}, ErrorCode.OFFSET_OUT_OF_RANGE),
    ("a topic that is none", {"name": "x"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("a topic that is only compacted", {"name": "kept"}, ErrorCode.POLICY_VIOLATION),
    ("an internal topic", {"name": "__consumer_offsets"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
]


@pytest.mark.parametrize(("what", "fields", "code"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_is_wrong_is_refused_by_its_code(
    tmp_path: Path, what: str, fields: dict[str, Any], code: ErrorCode
) -> None:
    async def run() -> None:
        cluster = image(
            topic(),
            topic("kept", id=2),
            topic("__consumer_offsets", id=3),
            configs={**LIVE, "kept": {"cleanup.policy": "compact"}},
        )
        async with rig(tmp_path, cluster) as broker:
            fill(broker)
            assert await ask(broker, **{"offset": 1, **fields}) == (code, -1)
            assert broker.leader().log_start_offset == 0

    asyncio.run(run())


def test_what_is_not_readable_yet_cannot_be_deleted(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            files.gate.clear()
            fill(broker)
            assert await ask(broker, 3) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
            assert broker.leader().log_start_offset == 0

    asyncio.run(run())


def test_a_full_disk_is_told_and_another_try_succeeds(tmp_path: Path) -> None:
    async def run() -> None:
        files = FaultyFiles()
        async with rig(tmp_path, image(topic(), configs=LIVE), files=files) as broker:
            fill(broker)
            files.plan(Fault(at=0, error=errno.ENOSPC))
            assert await ask(broker, 3) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
            files.heal()
            assert await ask(broker, 3) == (ErrorCode.NONE, 3)

    asyncio.run(run())


def test_a_broker_that_does_not_serve_yet_leads_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            broker.context.is_serving = False
            assert await ask(broker, 0) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)

    asyncio.run(run())
