"""DescribeProducers: who wrote to a partition, and what is refused."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from brokers.server.handlers import describe_producers
from tests.brokers.replication.parts import OTHER, REPLICATED, Rig, code_of, image, rig, topic
from tests.builders.logs import NOW_MS, batch


async def ask(broker: Rig, name: str, index: int = 0) -> Any:
    request = DescribeProducersRequest(topics=[TopicRequest(name=name, partition_indexes=[index])])
    return (await broker.ask_async(describe_producers, request, 0)).topics[0].partitions[0]


def test_every_idempotent_producer_is_shown_with_its_last_sequence(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs={"t": REPLICATED})) as broker:
            broker.leader().append(batch(producer=7, records=3), NOW_MS)
            broker.leader().append(batch(), NOW_MS)
            [producer] = (await ask(broker, "t")).active_producers

            assert (producer.producer_id, producer.producer_epoch) == (7, 0)
            assert producer.last_sequence == 2
            assert (producer.coordinator_epoch, producer.current_txn_start_offset) == (-1, -1)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("name", "index", "code"),
    [
        ("x", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 4, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("other", 0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ("bad name", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_what_is_not_led_here_is_refused(
    tmp_path: Path, name: str, index: int, code: ErrorCode
) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), topic("other", id=2, leader=OTHER))) as broker:
            answer = await ask(broker, name, index)
            assert code_of(answer.error_code) is code
            assert answer.error_message
            assert answer.active_producers == []
            broker.context.is_serving = False
            assert (await ask(broker, "t")).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    asyncio.run(run())
