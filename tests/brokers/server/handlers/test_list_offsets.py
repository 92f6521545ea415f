"""ListOffsets: every place and every version, times, and what is refused."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from brokers.server.handlers import list_offsets
from brokers.storage.log import PartitionLog
from brokers.storage.time_search import Search
from tests.brokers.replication.parts import (
    REPLICATED,
    GatedFiles,
    Line,
    Rig,
    TickingClock,
    code_of,
    image,
    rig,
    topic,
)
from tests.builders.logs import NOW_MS, batch

EPOCH = 3
LIVE = {"t": REPLICATED}


def request(timestamp: int, *, name: str = "t", times: int = 1, **fields: Any) -> Any:
    parts = [ListOffsetsPartition(partition_index=0, timestamp=timestamp, **fields)] * times
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=parts)])


async def ask(broker: Rig, asked: Any, version: int) -> Any:
    answer = await broker.ask_async(list_offsets, asked, version)
    return answer.topics[0].partitions[0]


async def fill(broker: Rig) -> None:
    """Three batches of two records, the newest record in the middle, the first batch deleted."""
    for timestamp in (NOW_MS, NOW_MS + 100, NOW_MS + 50):
        broker.leader().append(batch(records=2, timestamp=timestamp), NOW_MS)
    broker.leader().delete_before(2)


PLACES = [
    ("the end", -1, 1, (6, -1, EPOCH)),
    ("the start", -2, 1, (2, -1, EPOCH)),
    ("the newest record", -3, 7, (3, NOW_MS + 101, EPOCH)),
    ("the start of the local log", -4, 8, (2, -1, EPOCH)),
    ("the end of tiered storage", -5, 9, (-1, -1, -1)),
    ("what is not tiered yet", -6, 11, (-1, -1, -1)),
]


@pytest.mark.parametrize(("what", "place", "since", "expected"), PLACES, ids=[p[0] for p in PLACES])
def test_every_place_is_told_from_its_first_version_on(
    tmp_path: Path, what: str, place: int, since: int, expected: tuple[int, int, int]
) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(epoch=EPOCH), configs=LIVE)) as broker:
            await fill(broker)
            for version in range(1, 12):
                answer = await ask(broker, request(place), version)
                told = (answer.offset, answer.timestamp, answer.leader_epoch)
                if version < since:
                    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
                else:
                    wanted = expected if version >= 4 else (*expected[:2], -1)
                    assert (answer.error_code, told) == (ErrorCode.NONE, wanted)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (0, (2, NOW_MS + 100)),
        (NOW_MS + 101, (3, NOW_MS + 101)),
        (NOW_MS + 102, (-1, -1)),
    ],
)
def test_a_time_finds_the_first_record_that_is_not_older(
    tmp_path: Path, timestamp: int, expected: tuple[int, int]
) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(epoch=EPOCH), configs=LIVE)) as broker:
            await fill(broker)
            answer = await ask(broker, request(timestamp), 7)
            assert (answer.offset, answer.timestamp) == expected

    asyncio.run(run())


@pytest.mark.parametrize("place", [-1, -3, 0])
def test_what_is_not_on_the_disk_yet_is_not_told(tmp_path: Path, place: int) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            files.gate.clear()
            broker.leader().append(batch(), NOW_MS)
            answer = await ask(broker, request(place), 7)
            assert answer.offset == (0 if place == -1 else -1)

    asyncio.run(run())


def test_an_empty_partition_begins_and_ends_at_zero(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            for place in (-1, -2, -4):
                assert (await ask(broker, request(place), 8)).offset == 0
            assert (await ask(broker, request(-3), 8)).offset == -1

    asyncio.run(run())


REFUSED: list[tuple[str, dict[str, Any], ErrorCode]] = [
    ("an unknown topic", {"name": "x"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("a place that is none", {"timestamp": -7}, ErrorCode.UNSUPPORTED_VERSION),
    ("an epoch that is over", {"current_leader_epoch": 2}, ErrorCode.FENCED_LEADER_EPOCH),
    ("an epoch to come", {"current_leader_epoch": 4}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ("a partition named twice", {"times": 2}, ErrorCode.INVALID_REQUEST),
]


@pytest.mark.parametrize(("what", "fields", "code"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_is_wrong_is_refused_by_its_code(
    tmp_path: Path, what: str, fields: dict[str, Any], code: ErrorCode
) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(epoch=EPOCH))) as broker:
            answer = await ask(broker, request(fields.pop("timestamp", -1), **fields), 11)
            assert code_of(answer.error_code) is code
            assert (answer.offset, answer.timestamp, answer.leader_epoch) == (-1, -1, -1)

    asyncio.run(run())


def test_a_broker_that_does_not_serve_yet_leads_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            broker.context.is_serving = False
            answer = await ask(broker, request(-1), 1)
            assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    asyncio.run(run())


def test_a_search_under_way_ends_with_the_leadership(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(epoch=EPOCH), configs=LIVE)) as broker:
            await fill(broker)
            search = broker.leader().search_timestamp(NOW_MS + 200)
            next(search)

            await broker.apply(image(version=2, deleted=[1]))

            with pytest.raises(KafkaError, match="does not lead") as caught:
                next(search)
            assert caught.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert broker.failures == []

    asyncio.run(run())


def test_a_client_that_goes_ends_its_search(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            line = Line()
            call = broker.call(request(-1), 7, line)
            asked = asyncio.create_task(list_offsets.handle(broker.context, call, request(-1)))
            await asyncio.sleep(0)

            line.close()

            assert await asked is None
            assert len(broker.replicas.turns) == 0

    asyncio.run(run())


def endless(is_closed: list[bool]) -> Search:
    """A search that finds nothing, and notes when it is given up."""
    try:
        while True:
            yield
    finally:
        is_closed.append(True)


def test_a_client_that_goes_ends_its_search_between_two_steps_of_one_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with rig(tmp_path, clock=TickingClock(NOW_MS)) as broker:
            closed: list[bool] = []
            monkeypatch.setattr(PartitionLog, "search_timestamp", lambda *_: endless(closed))
            asked, line = request(NOW_MS), Line()
            answer = asyncio.create_task(
                list_offsets.handle(broker.context, broker.call(asked, 7, line), asked)
            )
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert closed == []

            line.close()

            assert await answer is None
            assert closed == [True]

    asyncio.run(run())


def test_a_search_is_given_up_at_once_when_the_leadership_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            closed: list[bool] = []
            steps = endless(closed)
            monkeypatch.setattr(PartitionLog, "search_timestamp", lambda *_: steps)
            partition = broker.leader()
            search = partition.search_timestamp(NOW_MS)
            next(search)

            partition.resign()

            with pytest.raises(KafkaError, match="does not lead"):
                next(search)
            assert closed == [True]

    asyncio.run(run())


def test_requests_for_many_partitions_share_one_slice_of_a_turn(tmp_path: Path) -> None:
    count, requests = 100, 5

    async def run() -> None:
        clock = TickingClock(NOW_MS)
        async with rig(tmp_path, image(topic(), configs=LIVE), clock=clock) as broker:
            asked = [
                asyncio.create_task(broker.ask_async(list_offsets, request(-1, times=count), 7))
                for _ in range(requests)
            ]
            turns = 0
            while not all(task.done() for task in asked):
                await asyncio.sleep(0)
                turns += 1

            assert turns >= count * requests / 3

    asyncio.run(run())
