"""The lane of producers: where it must never write."""

import asyncio
from pathlib import Path

import pytest

from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.validation import MAX_PARTS_AT_ONCE
from tests.brokers.replication.parts import REPLICATED, image, rig, topic
from tests.brokers.server.express.test_lanes import PRODUCE_VERSIONS, Road, framed, write
from tests.builders.logs import NOW_MS, batch


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_lane_never_writes_to_an_internal_topic(tmp_path: Path, version: int) -> None:
    async def run() -> None:
        topics = [topic("__consumer_offsets", id=1), topic("t", id=2)]
        async with rig(tmp_path, image(*topics, configs={"t": REPLICATED})) as broker:
            road = Road(broker)
            for _ in range(3):
                forged = framed(write(batch(), name="__consumer_offsets"), version)
                assert road.ask(forged) is None
            assert broker.leader("__consumer_offsets").log.end_offset == 0

    asyncio.run(run())


def test_a_lane_leaves_what_takes_long_to_look_into_to_the_regular_way(tmp_path: Path) -> None:
    builder = BatchBuilder()
    for _ in range(MAX_PARTS_AT_ONCE + 1):
        builder.append(b"k", b"", timestamp=NOW_MS)
    short, long = BatchBuilder(), memoryview(builder.build())
    short.append(b"k", b"", timestamp=NOW_MS)
    configs = {"t": {**REPLICATED, "cleanup.policy": "compact"}}

    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs=configs)) as broker:
            road = Road(broker)
            for _ in range(2):  # the first one is learned from
                answer = road.ask(framed(write(memoryview(short.build())), 9))
            assert answer is not None
            before = broker.leader().log.end_offset

            assert road.ask(framed(write(long), 9)) is None

            assert broker.leader().log.end_offset == before

    asyncio.run(run())
