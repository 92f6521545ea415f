"""The lane of producers: where it must never write."""

import asyncio
from pathlib import Path

import pytest

from tests.brokers.replication.parts import REPLICATED, image, rig, topic
from tests.brokers.server.express.test_lanes import PRODUCE_VERSIONS, Road, framed, write
from tests.builders.logs import batch


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
