"""OffsetForLeaderEpoch: where epochs end, and what is refused."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from brokers.server.handlers import offset_for_leader_epoch
from tests.brokers.replication.parts import REPLICATED, Rig, code_of, image, rig, topic
from tests.builders.logs import NOW_MS, batch

LIVE = {"t": REPLICATED}


async def ask(
    broker: Rig, epoch: int, version: int = 4, *, name: str = "t", current: int = -1
) -> Any:
    wanted = OffsetForLeaderPartition(partition=0, leader_epoch=epoch, current_leader_epoch=current)
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic=name, partitions=[wanted])]
    )
    response = await broker.ask_async(offset_for_leader_epoch, request, version)
    answer = response.topics[0].partitions[0]
    return code_of(answer.error_code), answer.leader_epoch, answer.end_offset


async def two_epochs(broker: Rig) -> None:
    """Records of epochs 2 and 5, and a leader of epoch 7 that has written nothing."""
    for version, epoch in enumerate((2, 5, 7), 2):
        await broker.apply(image(topic(epoch=epoch), configs=LIVE, version=version))
        for _ in range(3 if epoch < 7 else 0):
            broker.leader().append(batch(), NOW_MS)


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        (1, (1, 0)),
        (2, (2, 3)),
        (3, (2, 3)),
        (5, (5, 6)),
        (6, (5, 6)),
        (7, (7, 6)),
        (8, (-1, -1)),
        (-1, (-1, -1)),
    ],
)
def test_an_epoch_ends_where_the_next_one_begins(
    tmp_path: Path, version: int, epoch: int, expected: tuple[int, int]
) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            await two_epochs(broker)
            assert await ask(broker, epoch, version) == (ErrorCode.NONE, *expected)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"current": 6}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"current": 8}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        ({"name": "x"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_what_is_wrong_is_refused_by_its_code(
    tmp_path: Path, fields: dict[str, Any], code: ErrorCode
) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            await two_epochs(broker)
            assert await ask(broker, 2, **fields) == (code, -1, -1)

    asyncio.run(run())


def test_a_broker_that_does_not_serve_yet_leads_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            broker.context.is_serving = False
            assert await ask(broker, 0) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1)

    asyncio.run(run())
