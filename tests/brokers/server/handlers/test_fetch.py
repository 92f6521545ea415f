"""Fetch: what is read, what is refused with which code, and when the answer leaves."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from brokers.protocol.records.batch import Batch
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression
from brokers.replication.waits import (
    MAX_FETCH_WAIT_MS,
    MAX_FETCH_WAITS_EACH,
    WaitRoom,
)
from brokers.server.handlers import fetch
from tests.brokers.replication.parts import (
    OTHER,
    REPLICATED,
    GatedFiles,
    Line,
    Rig,
    code_of,
    image,
    rig,
    topic,
    topic_id,
    until,
)
from tests.builders.logs import NOW_MS, batch, spans

LIVE = {"t": REPLICATED, "u": REPLICATED}
BATCH = len(batch())


def partition(index: int = 0, offset: int = 0, **fields: Any) -> FetchPartition:
    fields.setdefault("partition_max_bytes", 1 << 20)
    return FetchPartition(partition=index, fetch_offset=offset, **fields)


def request(
    *partitions: FetchPartition,
    names: tuple[str, ...] = ("t",),
    ids: tuple[int, ...] = (1, 2),
    **fields: Any,
) -> FetchRequest:
    """Asks for these partitions of each topic; it is named both ways, as the version wants."""
    fields.setdefault("min_bytes", 1)
    fields.setdefault("max_wait_ms", 500)
    return FetchRequest(
        topics=[
            FetchTopic(topic=name, topic_id=topic_id(number), partitions=list(partitions))
            for name, number in zip(names, ids, strict=False)
        ],
        **fields,
    )


def sessionless(*partitions: FetchPartition, **fields: Any) -> FetchRequest:
    fields.setdefault("session_epoch", -1)
    return request(*(partitions or (partition(),)), **fields)


def found(line: Line, number: int = -1) -> Any:
    """The first partition of an answer."""
    return line.answers[number].responses[0].partitions[0]


def named(line: Line) -> list[tuple[str, int]]:
    """The partitions that the last answer names."""
    return [
        (answer.topic, data.partition_index)
        for answer in line.answers[-1].responses
        for data in answer.partitions
    ]


def fill(broker: Rig, count: int = 1, *, name: str = "t", index: int = 0, **fields: Any) -> None:
    for _ in range(count):
        broker.leader(name, index).append(batch(**fields), NOW_MS)


@pytest.mark.parametrize("version", range(4, 19))
def test_what_was_appended_is_read(tmp_path: Path, version: int) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs=LIVE)) as broker:
            fill(broker, 3)
            data = found(broker.ask(fetch, sessionless(), version))

            assert spans(bytes(data.records)) == [(0, 0), (1, 1), (2, 2)]
            assert (data.error_code, data.high_watermark, data.last_stable_offset) == (0, 3, 3)
            assert data.log_start_offset == (0 if version >= 5 else -1)
            assert data.aborted_transactions is None
            assert data.preferred_read_replica == -1
            assert broker.leader().log.segments.active.file.pins == 0

    asyncio.run(run())


def test_readers_of_committed_data_get_a_list_of_no_aborted_transactions(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs=LIVE)) as broker:
            fill(broker)
            data = found(broker.ask(fetch, sessionless(isolation_level=1), 11))
            assert data.aborted_transactions == []
            assert data.records

    asyncio.run(run())


def test_nothing_that_is_not_on_the_disk_is_read(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            files.gate.clear()
            fill(broker)
            line = broker.ask(fetch, sessionless(), 12)
            for _ in range(50):
                await asyncio.sleep(0)
            assert line.answers == []

            files.gate.set()
            await until(lambda: bool(line.answers))
            assert spans(bytes(found(line).records)) == [(0, 0)]

    asyncio.run(run())


def test_a_reader_at_the_end_waits_until_its_time_is_over(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs=LIVE)) as broker:
            line = broker.ask(fetch, sessionless(), 12)
            await broker.pass_time(499)
            assert line.answers == []
            await broker.pass_time(40)

            data = found(line)
            assert (data.error_code, bytes(data.records), data.high_watermark) == (0, b"", 0)
            room = broker.replicas.room
            assert (room.fetches, room.watched, len(broker.leader().watchers)) == (0, 0, 0)

    asyncio.run(run())


@pytest.mark.parametrize("fields", [{"max_wait_ms": 0}, {"min_bytes": 0}, {"min_bytes": -1}])
def test_who_does_not_want_to_wait_does_not(tmp_path: Path, fields: dict[str, int]) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            assert found(broker.ask(fetch, sessionless(**fields), 12)).error_code == 0

    asyncio.run(run())


def test_a_waiting_reader_is_answered_by_the_append_it_waits_for(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs=LIVE)) as broker:
            line = broker.ask(fetch, sessionless(), 12)
            fill(broker)
            await until(lambda: bool(line.answers))

            assert spans(bytes(found(line).records)) == [(0, 0)]
            assert len(broker.replicas.deadlines) == 0
            assert broker.replicas.room.fetches == 0

    asyncio.run(run())


def test_a_reader_that_wants_more_waits_until_there_is_enough(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs=LIVE)) as broker:
            fill(broker)
            line = broker.ask(fetch, sessionless(min_bytes=3 * BATCH), 12)
            assert broker.leader().log.segments.active.file.pins == 0
            fill(broker)
            for _ in range(10):
                await asyncio.sleep(0)
            assert line.answers == []
            fill(broker)
            await until(lambda: bool(line.answers))

            assert len(spans(bytes(found(line).records))) == 3

    asyncio.run(run())


def test_a_broker_that_stops_answers_all_who_wait(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(partitions=2), configs=LIVE)) as broker:
            asked = sessionless(partition(0), partition(1), max_wait_ms=60_000)
            lines = [broker.ask(fetch, asked, 12) for _ in range(3)]
            broker.replicas.end_fetches()

            assert [len(line.answers) for line in lines] == [1, 1, 1]
            assert broker.replicas.room.fetches == 0

    asyncio.run(run())


def test_a_client_that_goes_is_not_waited_for(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs=LIVE)) as broker:
            line = broker.ask(fetch, sessionless(), 12)
            line.close()
            fill(broker)
            await asyncio.sleep(0)

            assert line.answers == []
            assert (broker.replicas.room.fetches, len(broker.replicas.deadlines)) == (0, 0)
            assert broker.leader().watchers == {}

    asyncio.run(run())


def test_where_too_many_wait_already_the_answer_comes_when_the_time_is_over(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        cluster = image(topic(), configs=LIVE)
        async with rig(tmp_path, cluster, room=WaitRoom(max_fetches=1)) as broker:
            first, second = (broker.ask(fetch, sessionless(max_wait_ms=500), 12) for _ in range(2))
            assert [first.answers, second.answers] == [[], []]
            assert (first.is_held, second.is_held) == (False, True)
            fill(broker)
            await until(lambda: bool(first.answers))
            assert second.answers == [], "it watches nothing"

            await broker.pass_time(600)

            assert spans(bytes(found(second).records)) == [(0, 0)]
            assert not second.is_held
            assert len(broker.replicas.room.unwatched) == len(broker.replicas.deadlines) == 0

    asyncio.run(run())


def test_one_connection_waits_in_a_few_places_and_the_others_have_theirs(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs=LIVE)) as broker:
            greedy = Line()
            for _ in range(MAX_FETCH_WAITS_EACH + 1):
                assert not greedy.is_held
                broker.ask(fetch, sessionless(max_wait_ms=2**31 - 1), 12, greedy)
            assert (greedy.is_held, broker.replicas.room.fetches) == (True, MAX_FETCH_WAITS_EACH)

            modest = broker.ask(fetch, sessionless(max_wait_ms=500), 12)

            assert (modest.answers, modest.is_held) == ([], False)
            greedy.close()
            assert broker.replicas.room.fetches == 1
            assert broker.replicas.room.unwatched == {}

    asyncio.run(run())


def test_nobody_waits_for_longer_than_a_minute_and_its_slot(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            line = broker.ask(fetch, sessionless(max_wait_ms=2**31 - 1), 12)
            await broker.pass_time(MAX_FETCH_WAIT_MS - 1)
            assert line.answers == []

            await broker.pass_time(2_000)

            assert found(line).error_code == ErrorCode.NONE

    asyncio.run(run())


def test_a_broker_that_stops_answers_those_who_found_no_room(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, room=WaitRoom(max_fetches=0)) as broker:
            line = broker.ask(fetch, sessionless(max_wait_ms=60_000), 12)
            assert line.answers == []

            broker.replicas.end_fetches()

            assert len(line.answers) == 1

    asyncio.run(run())


def test_a_deleted_topic_ends_the_wait(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            line = broker.ask(fetch, sessionless(), 12)
            await broker.apply(image(version=2, deleted=[1]))
            await broker.pass_time(600)

            assert found(line).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    asyncio.run(run())


def test_a_partition_that_moves_away_ends_the_wait_with_its_new_leader(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            line = broker.ask(fetch, sessionless(), 16)
            await broker.apply(image(topic(leader=OTHER, epoch=3), version=2))
            await until(lambda: bool(line.answers))

            data = found(line)
            assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (OTHER, 3)
            [node] = line.answers[0].node_endpoints
            assert (node.node_id, node.host, node.port) == (OTHER, "host2", 9093)

    asyncio.run(run())


REFUSED: list[tuple[str, dict[str, Any], int, ErrorCode]] = [
    ("behind the end", {"offset": 4}, 12, ErrorCode.OFFSET_OUT_OF_RANGE),
    ("a negative offset", {"offset": -1}, 12, ErrorCode.OFFSET_OUT_OF_RANGE),
    ("a partition that is none", {"index": 9}, 12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("an epoch that is over", {"current_leader_epoch": 4}, 12, ErrorCode.FENCED_LEADER_EPOCH),
    ("an epoch to come", {"current_leader_epoch": 6}, 12, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ("records of an epoch to come", {"last_fetched_epoch": 6}, 12, ErrorCode.OFFSET_OUT_OF_RANGE),
]


@pytest.mark.parametrize(
    ("what", "fields", "version", "code"), REFUSED, ids=[r[0] for r in REFUSED]
)
def test_what_cannot_be_read_is_refused_by_its_code(
    tmp_path: Path, what: str, fields: dict[str, Any], version: int, code: ErrorCode
) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(epoch=5), configs=LIVE)) as broker:
            fill(broker, 3)
            line = broker.ask(fetch, sessionless(partition(**fields), max_wait_ms=500), version)

            data = found(line)
            assert code_of(data.error_code) is code
            assert (data.high_watermark, data.last_stable_offset) == (-1, -1)
            assert bytes(data.records) == b""

    asyncio.run(run())


def test_a_topic_id_that_nobody_has_is_unknown(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            data = found(broker.ask(fetch, sessionless(ids=(77,)), 13))
            assert data.error_code == ErrorCode.UNKNOWN_TOPIC_ID

    asyncio.run(run())


def test_a_broker_that_does_not_serve_yet_leads_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            broker.context.is_serving = False
            data = found(broker.ask(fetch, sessionless(), 12))
            assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    asyncio.run(run())


@pytest.mark.parametrize("version", [4, 14, 15, 18])
def test_nobody_reads_in_the_name_of_a_broker(tmp_path: Path, version: int) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            follower: dict[str, Any] = (
                {"replica_state": ReplicaState(replica_id=2, replica_epoch=1)}
                if version >= 15
                else {"replica_id": 2}
            )
            data = found(broker.ask(fetch, sessionless(**follower), version))
            assert data.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED

    asyncio.run(run())


def test_one_batch_is_sent_however_little_was_asked_for(tmp_path: Path) -> None:
    async def run() -> None:
        cluster = image(topic(partitions=2), configs=LIVE)
        async with rig(tmp_path, cluster) as broker:
            for index in range(2):
                fill(broker, 2, index=index)
            asked = sessionless(partition(0), partition(1), max_bytes=1)
            first, second = broker.ask(fetch, asked, 12).answers[0].responses[0].partitions

            assert spans(bytes(first.records)) == [(0, 0)]
            assert bytes(second.records) == b""
            assert second.high_watermark == 2

    asyncio.run(run())


def test_the_limit_of_a_partition_and_of_the_answer_hold_behind_the_first_batch(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(partitions=3), configs=LIVE)) as broker:
            for index in range(3):
                fill(broker, 4, index=index)
            parts = [partition(index, partition_max_bytes=2 * BATCH) for index in range(3)]
            answer = broker.ask(fetch, sessionless(*parts, max_bytes=3 * BATCH), 12).answers[0]

            sizes = [len(data.records) for data in answer.responses[0].partitions]
            assert sizes == [2 * BATCH, BATCH, 0]

    asyncio.run(run())


def test_records_of_a_history_that_was_cut_diverge(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(epoch=5), configs=LIVE)) as broker:
            fill(broker, 3)
            asked = sessionless(partition(offset=5, last_fetched_epoch=5))
            data = found(broker.ask(fetch, asked, 12))
            assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (5, 3)
            assert bytes(data.records) == b""

            fine = sessionless(partition(offset=1, last_fetched_epoch=5))
            assert spans(bytes(found(broker.ask(fetch, fine, 12)).records)) == [(1, 1), (2, 2)]

    asyncio.run(run())


def packed(compression: Compression) -> memoryview:
    builder = BatchBuilder(compression=compression)
    builder.append(None, b"v", timestamp=NOW_MS)
    return memoryview(builder.build())


def test_old_clients_get_what_comes_before_zstd_and_then_an_error(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs=LIVE)) as broker:
            for codec in (Compression.NONE, Compression.GZIP, Compression.ZSTD, Compression.NONE):
                broker.leader().append(packed(codec), NOW_MS)

            before = found(broker.ask(fetch, sessionless(), 9))
            assert spans(bytes(before.records)) == [(0, 0), (1, 1)]
            at = found(broker.ask(fetch, sessionless(partition(offset=2)), 9))
            assert at.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
            behind = found(broker.ask(fetch, sessionless(partition(offset=3)), 9))
            assert spans(bytes(behind.records)) == [(3, 3)]
            newer = found(broker.ask(fetch, sessionless(partition(offset=2)), 10))
            assert Batch(memoryview(newer.records)).compression is Compression.ZSTD
            assert broker.leader().log.segments.active.file.pins == 0

    asyncio.run(run())


def session(line: Line) -> int:
    number: int = line.answers[-1].session_id
    return number


@pytest.mark.parametrize("version", [7, 12])
def test_a_session_names_only_what_has_news(tmp_path: Path, version: int) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(partitions=3), configs=LIVE)) as broker:
            parts = [partition(index) for index in range(3)]
            opened = broker.ask(fetch, request(*parts, session_epoch=0, max_wait_ms=0), version)
            assert session(opened) > 0
            assert len(named(opened)) == 3

            fill(broker, index=1)
            going = broker.ask(
                fetch,
                FetchRequest(session_id=session(opened), session_epoch=1, min_bytes=1),
                version,
            )
            assert named(going) == [("t", 1)]
            assert session(going) == session(opened)

    asyncio.run(run())


def test_a_session_with_topic_ids_reads_and_forgets(tmp_path: Path) -> None:
    async def run() -> None:
        cluster = image(topic(), topic("u", id=2), configs=LIVE)
        async with rig(tmp_path, cluster) as broker:
            asked = request(partition(), names=("t", "u"), session_epoch=0, max_wait_ms=0)
            number = session(broker.ask(fetch, asked, 13))
            for name in ("t", "u"):
                fill(broker, name=name)
            forgets = FetchRequest(
                session_id=number,
                session_epoch=1,
                min_bytes=1,
                forgotten_topics_data=[ForgottenTopic(topic_id=topic_id(1), partitions=[0])],
            )
            [answer] = broker.ask(fetch, forgets, 13).answers[0].responses
            assert answer.topic_id == topic_id(2)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("epoch", "known", "code"),
    [
        (1, False, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (2, True, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
    ],
)
def test_a_session_out_of_turn_or_unknown_is_refused(
    tmp_path: Path, epoch: int, known: bool, code: ErrorCode
) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            opened = broker.ask(fetch, request(partition(), session_epoch=0, max_wait_ms=0), 12)
            number = session(opened) if known else session(opened) ^ 1
            answer = broker.ask(
                fetch, FetchRequest(session_id=number, session_epoch=epoch, min_bytes=1), 12
            ).answers[0]

            assert (answer.error_code, answer.session_id, answer.responses) == (code, 0, [])

    asyncio.run(run())


def test_a_session_by_name_does_not_go_on_by_id(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            opened = broker.ask(fetch, request(partition(), session_epoch=0, max_wait_ms=0), 12)
            asked = FetchRequest(session_id=session(opened), session_epoch=1)
            answer = broker.ask(fetch, asked, 13).answers[0]
            assert answer.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR

    asyncio.run(run())


def test_a_busy_partition_goes_to_the_end_of_its_session(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(partitions=3), configs=LIVE)) as broker:
            parts = [partition(index) for index in range(3)]
            opened = broker.ask(fetch, request(*parts, session_epoch=0, max_wait_ms=0), 12)
            for index in range(3):
                fill(broker, 5, index=index)
            order = []
            for epoch in range(1, 4):
                line = broker.ask(
                    fetch,
                    FetchRequest(
                        session_id=session(opened), session_epoch=epoch, min_bytes=1, max_bytes=1
                    ),
                    12,
                )
                order += [
                    data.partition_index
                    for answer in line.answers[0].responses
                    for data in answer.partitions
                    if len(data.records)
                ]
            assert order == [0, 1, 2]

    asyncio.run(run())


def test_a_partition_that_failed_is_named_again_when_it_is_well(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            opened = broker.ask(
                fetch, request(partition(), session_epoch=0, max_wait_ms=0, names=("new",)), 12
            )
            assert found(opened).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            await broker.apply(image(topic(), topic("new", id=2), version=2))
            asked = FetchRequest(session_id=session(opened), session_epoch=1, max_wait_ms=0)
            assert found(broker.ask(fetch, asked, 12)).error_code == 0
            asked = FetchRequest(session_id=session(opened), session_epoch=2, max_wait_ms=0)
            assert named(broker.ask(fetch, asked, 12)) == []

    asyncio.run(run())


@pytest.mark.parametrize("version", [7, 12])
def test_a_going_session_without_news_is_answered_by_nobody_and_then_by_one(
    tmp_path: Path, version: int
) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(partitions=8), configs=LIVE)) as broker:
            parts = [partition(index) for index in range(8)]
            opened = broker.ask(fetch, request(*parts, session_epoch=0, max_wait_ms=0), version)
            asked = FetchRequest(
                session_id=session(opened), session_epoch=1, max_wait_ms=500, min_bytes=1
            )
            line = broker.ask(fetch, asked, version)
            assert line.answers == []
            fill(broker, index=7)
            await until(lambda: bool(line.answers))
            assert named(line) == [("t", 7)]

            broker.leader(index=3).delete_before(0)
            asked = FetchRequest(session_id=session(opened), session_epoch=2, max_wait_ms=0)
            again = broker.ask(fetch, asked, version)
            assert named(again) == [("t", 7)]

    asyncio.run(run())
