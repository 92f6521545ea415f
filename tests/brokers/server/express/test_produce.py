"""The lane of producers: where it must never write."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from brokers.protocol.codec import codec
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.produce import ProduceResponse
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression
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


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
def test_a_lane_tells_the_log_start_of_now_and_names_refused_records(
    tmp_path: Path, version: int
) -> None:
    async def run() -> None:
        compacted = {"t": {**REPLICATED, "cleanup.policy": "compact,delete"}}
        async with rig(tmp_path, image(topic(), configs=compacted)) as broker:
            road = Road(broker)
            good, bad = (framed(write(keyed(key)), version) for key in (b"k", None))
            assert road.ask(good) is None, "the lane learns"
            road.ask_regularly(good)
            assert road.ask(good) is not None
            broker.leader().delete_before(2)

            accepted, refused = (told(road.ask(frame), version) for frame in (good, bad))

            assert (accepted.base_offset, accepted.log_start_offset) == (2, 2)
            assert (refused.error_code, refused.log_start_offset) == (ErrorCode.INVALID_RECORD, 2)
            assert [each.batch_index for each in refused.record_errors] == [0] * (version >= 8)

    asyncio.run(run())


def test_a_lane_leaves_batches_that_need_recompression_to_the_regular_path(tmp_path: Path) -> None:
    async def run() -> None:
        configs = {"t": {**REPLICATED, "compression.type": "lz4"}}
        async with rig(tmp_path, image(topic(), configs=configs)) as broker:
            road = Road(broker)
            packed = BatchBuilder(compression=Compression.LZ4)
            packed.append(b"k", b"v", timestamp=NOW_MS)
            right, other = (
                framed(write(batch), 9) for batch in (memoryview(packed.build()), keyed(b"k"))
            )
            assert road.ask(right) is None, "the lane learns"

            assert road.ask(right) is not None
            assert road.ask(other) is None
            assert broker.leader().log.end_offset == 1

    asyncio.run(run())


def keyed(key: bytes | None) -> memoryview:
    builder = BatchBuilder()
    builder.append(key, b"v" if key else b"value", timestamp=NOW_MS)
    return memoryview(bytearray(builder.build()))


def told(frame: bytes | None, version: int) -> Any:
    assert frame is not None
    start = 9 if version >= 9 else 8
    answer: Any = codec(ProduceResponse, version).decode(frame[start:])
    return answer.responses[0].partition_responses[0]
