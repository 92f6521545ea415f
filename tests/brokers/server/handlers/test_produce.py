"""Produce: what is appended, what is refused with which code, and when the answer leaves."""

import asyncio
import errno
from pathlib import Path
from typing import Any

import pytest

from brokers.protocol.codec import codec
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression
from brokers.replication.waits import WaitRoom
from brokers.server.handlers import produce
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
    until,
)
from tests.builders.logs import batch, content, spans
from tests.fakes.faulty_files import Fault, FaultyFiles

VERSIONS = range(3, 12)


def request(
    records: memoryview | bytes | None = None,
    *,
    acks: int = -1,
    topic: str = "t",
    index: int = 0,
    timeout_ms: int = 30_000,
    transactional_id: str | None = None,
) -> ProduceRequest:
    data = batch() if records is None else memoryview(bytearray(records))
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        transactional_id=transactional_id,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=index, records=data)]
            )
        ],
    )


def several(names: list[str], *, acks: int = -1) -> ProduceRequest:
    parts = [request(topic=name, acks=acks) for name in names]
    parts[0].topic_data = [part.topic_data[0] for part in parts]
    return parts[0]


def outcome(line: Line, number: int = 0) -> Any:
    """The answer for the first partition of a response."""
    response: ProduceResponse = line.answers[number]
    return response.responses[0].partition_responses[0]


def zstd_batch() -> bytes:
    builder = BatchBuilder(compression=Compression.ZSTD)
    builder.append(None, b"v", timestamp=1_700_000_000_000)
    return bytes(builder.build())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("acks", [1, -1])
def test_a_batch_is_appended_and_answered_once_it_is_on_the_disk(
    tmp_path: Path, version: int, acks: int
) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            line = broker.ask(produce, request(acks=acks), version)
            assert line.answers == []
            await until(lambda: bool(line.answers))

            answer = outcome(line)
            assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
            assert answer.log_start_offset == (0 if version >= 5 else -1)
            assert broker.leader().high_watermark == 1

    asyncio.run(run())


def test_no_acknowledgement_leaves_before_the_disk_has_confirmed(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            files.gate.clear()
            files.syncs = 0
            lines = [broker.ask(produce, request(acks=acks), 9) for acks in (1, -1)]
            await until(lambda: files.syncs == 1)
            for _ in range(100):
                await asyncio.sleep(0)
            assert [line.answers for line in lines] == [[], []]
            assert broker.leader().high_watermark == 0
            assert broker.leader().log.end_offset == 2

            files.gate.set()
            await until(lambda: all(line.answers for line in lines))
            assert [outcome(line).base_offset for line in lines] == [0, 1]

    asyncio.run(run())


def test_what_comes_while_a_flush_runs_waits_for_the_next_one(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            files.gate.clear()
            files.syncs = 0
            first = broker.ask(produce, request(), 9)
            await until(lambda: files.syncs == 1)
            second = broker.ask(produce, request(), 9)
            third = broker.ask(produce, request(), 9)
            ticket_end = broker.leader().log.end_offset

            files.gate.set()
            await until(lambda: bool(first.answers))
            await until(lambda: bool(third.answers))
            assert outcome(second).base_offset == 1
            assert broker.leader().high_watermark == ticket_end == 3
            assert files.syncs <= 4

    asyncio.run(run())


def test_a_repeated_batch_waits_for_the_disk_as_the_first_one_does(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            files.gate.clear()
            lines = [
                broker.ask(produce, request(batch(producer=7, sequence=0, records=3)), 9)
                for _ in range(2)
            ]
            for _ in range(100):
                await asyncio.sleep(0)
            assert [line.answers for line in lines] == [[], []]

            files.gate.set()
            await until(lambda: all(line.answers for line in lines))
            assert [outcome(line).base_offset for line in lines] == [0, 0]
            assert [outcome(line).error_code for line in lines] == [0, 0]
            assert broker.leader().log.end_offset == 3

    asyncio.run(run())


def test_a_batch_repeated_later_is_answered_at_once_with_its_first_offset(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            first = broker.ask(produce, request(batch(producer=7, sequence=0)), 9)
            await until(lambda: bool(first.answers))

            again = broker.ask(produce, request(batch(producer=7, sequence=0)), 9)
            assert outcome(again).base_offset == 0

    asyncio.run(run())


def test_a_replicated_topic_is_answered_at_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs={"t": REPLICATED})) as broker:
            line = broker.ask(produce, request(), 9)

            assert outcome(line).error_code == ErrorCode.NONE
            assert broker.leader().high_watermark == 1

    asyncio.run(run())


def test_a_replicated_topic_that_flushes_every_message_waits_for_the_flush(tmp_path: Path) -> None:
    async def run() -> None:
        configs = {"t": {**REPLICATED, "flush.messages": "1"}}
        async with rig(tmp_path, image(topic(), configs=configs)) as broker:
            line = broker.ask(produce, request(acks=1), 9)
            assert line.answers == []
            await until(lambda: bool(line.answers))

    asyncio.run(run())


def test_acks_zero_is_never_answered(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            line = broker.ask(produce, request(acks=0), 9)

            assert (line.answers, line.silent, line.reasons) == ([], 1, [])
            assert broker.leader().log.end_offset == 1

    asyncio.run(run())


def test_an_error_with_acks_zero_closes_the_connection(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            line = broker.ask(produce, request(acks=0, topic="nowhere"), 9)

            assert line.answers == []
            assert "UNKNOWN_TOPIC_OR_PARTITION" in line.reasons[0]

    asyncio.run(run())


REFUSED: list[tuple[str, dict[str, Any], ErrorCode]] = [
    ("acks of 2", {"acks": 2}, ErrorCode.INVALID_REQUIRED_ACKS),
    ("acks of -2", {"acks": -2}, ErrorCode.INVALID_REQUIRED_ACKS),
    ("a topic that is none", {"topic": "x"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("a partition that is none", {"index": 5}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("a negative partition", {"index": -1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ("no batch at all", {"records": b""}, ErrorCode.INVALID_RECORD),
    ("bytes that are no batch", {"records": b"x" * 100}, ErrorCode.INVALID_RECORD),
    ("two batches", {"records": bytes(batch()) * 2}, ErrorCode.INVALID_RECORD),
    (
        "a transactional id",
        {"transactional_id": "tx"},
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    (
        "a transactional batch without the id",
        {"records": batch(producer=1, is_transactional=True)},
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ),
    ("another broker's partition", {"topic": "other"}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
]


@pytest.mark.parametrize(("what", "fields", "code"), REFUSED, ids=[row[0] for row in REFUSED])
@pytest.mark.parametrize("version", [3, 7, 11])
def test_what_is_wrong_is_refused_by_its_code(
    tmp_path: Path, what: str, fields: dict[str, Any], code: ErrorCode, version: int
) -> None:
    async def run() -> None:
        cluster = image(topic(), topic("other", id=2, leader=OTHER))
        async with rig(tmp_path, cluster) as broker:
            answer = outcome(broker.ask(produce, request(**fields), version))

            assert code_of(answer.error_code) is code
            assert (answer.base_offset, answer.log_start_offset) == (-1, -1)
            assert bool(answer.error_message) == (version >= 8)
            assert broker.leader().log.end_offset == 0

    asyncio.run(run())


def test_a_batch_that_was_changed_on_its_way_is_corrupt(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            data = bytearray(batch())
            data[-1] ^= 1

            answer = outcome(broker.ask(produce, request(bytes(data)), 9))
            assert answer.error_code == ErrorCode.CORRUPT_MESSAGE

    asyncio.run(run())


@pytest.mark.parametrize(("version", "code"), [(6, 76), (7, 0), (11, 0)])
def test_zstd_needs_version_seven(tmp_path: Path, version: int, code: int) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), configs={"t": REPLICATED})) as broker:
            answer = outcome(broker.ask(produce, request(zstd_batch()), version))
            assert answer.error_code == code

    asyncio.run(run())


def test_a_broker_that_does_not_serve_yet_sends_its_clients_to_look_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            broker.context.is_serving = False

            answer = outcome(broker.ask(produce, request(), 9))
            assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

    asyncio.run(run())


def test_no_more_replicas_can_be_demanded_in_sync_than_there_are(tmp_path: Path) -> None:
    """KIP-966: what counts is the lesser of min.insync.replicas and the replication factor."""

    async def run() -> None:
        cluster = image(topic(), configs={"t": {"min.insync.replicas": "2"}})
        async with rig(tmp_path, cluster) as broker:
            taken = broker.ask(produce, request(acks=-1), 9)
            await until(lambda: bool(taken.answers))

            assert outcome(taken).error_code == ErrorCode.NONE

    asyncio.run(run())


@pytest.mark.parametrize("version", [9, 10, 11])
def test_who_asks_the_wrong_broker_is_told_the_right_one(tmp_path: Path, version: int) -> None:
    async def run() -> None:
        cluster = image(topic(), topic("other", id=2, leader=OTHER, epoch=4))
        async with rig(tmp_path, cluster) as broker:
            response = broker.ask(produce, request(topic="other"), version).answers[0]

            leader = response.responses[0].partition_responses[0].current_leader
            if version < 10:
                assert (leader, response.node_endpoints) == (None, [])
                return
            assert (leader.leader_id, leader.leader_epoch) == (OTHER, 4)
            [node] = response.node_endpoints
            assert (node.node_id, node.host, node.port, node.rack) == (OTHER, "host2", 9093, "r")

    asyncio.run(run())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
def test_nobody_writes_what_coordinators_read_as_their_state(
    tmp_path: Path, version: int, name: str
) -> None:
    async def run() -> None:
        async with rig(tmp_path, image(topic(), topic(name, id=2))) as broker:
            line = broker.ask(produce, several([name, "t"]), version)
            await until(lambda: bool(line.answers))

            codes = [t.partition_responses[0].error_code for t in line.answers[0].responses]
            assert codes == [ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.NONE]
            assert broker.leader(name).log.end_offset == 0

    asyncio.run(run())


def test_one_partition_may_fail_while_another_succeeds(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path) as broker:
            line = broker.ask(produce, several(["t", "nowhere"]), 9)
            await until(lambda: bool(line.answers))

            codes = [t.partition_responses[0].error_code for t in line.answers[0].responses]
            assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

    asyncio.run(run())


def test_a_wait_ends_with_its_timeout_and_what_was_appended_stays(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            files.gate.clear()
            line = broker.ask(produce, request(timeout_ms=500), 9)
            await broker.pass_time(29_999)
            assert line.answers == []
            await broker.pass_time(2_000)

            assert outcome(line).error_code == ErrorCode.REQUEST_TIMED_OUT
            files.gate.set()
            await until(lambda: broker.leader().high_watermark == 1)
            assert len(line.answers) == 1
            assert broker.replicas.room.appends == broker.replicas.room.append_bytes == 0

    asyncio.run(run())


def test_a_client_that_goes_leaves_nothing_behind(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            files.gate.clear()
            line = broker.ask(produce, request(), 9)
            assert broker.replicas.room.append_bytes > 0
            line.close()

            assert broker.replicas.room.append_bytes == 0
            assert len(broker.replicas.deadlines) == 0
            files.gate.set()
            await until(lambda: broker.leader().high_watermark == 1)
            assert (line.answers, broker.replicas.room.appends) == ([], 0)

    asyncio.run(run())


def test_no_more_waits_than_there_is_room_for(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files, room=WaitRoom(max_appends=2)) as broker:
            files.gate.clear()
            lines = [broker.ask(produce, request(), 9) for _ in range(3)]

            assert [len(line.answers) for line in lines] == [0, 0, 1]
            assert outcome(lines[2]).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert broker.leader().log.end_offset == 2

    asyncio.run(run())


def test_a_partition_that_moves_away_answers_those_who_wait(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            files.gate.clear()
            line = broker.ask(produce, request(), 11)
            await broker.apply(image(topic(leader=OTHER, epoch=1), version=2))

            assert outcome(line).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert outcome(line).current_leader.leader_id == OTHER

    asyncio.run(run())


@pytest.mark.parametrize(("version", "code"), [(3, 6), (4, 56), (11, 56)])
def test_a_full_disk_refuses_and_takes_again_once_there_is_room(
    tmp_path: Path, version: int, code: int
) -> None:
    async def run() -> None:
        files = FaultyFiles()
        async with rig(tmp_path, files=files) as broker:
            first = broker.ask(produce, request(), version)
            await until(lambda: bool(first.answers))
            files.plan(
                Fault(
                    at=0, error=errno.ENOSPC, is_lasting=True, kinds=frozenset({"pwrite", "write"})
                )
            )
            refused = outcome(broker.ask(produce, request(), version))
            readable = spans(content(broker.leader().log))
            files.heal()
            again = broker.ask(produce, request(), version)
            await until(lambda: bool(again.answers))

            assert refused.error_code == code
            assert readable == [(0, 0)]
            assert outcome(again).base_offset == 1
            assert broker.failures == []

    asyncio.run(run())


def test_a_failed_flush_is_never_acknowledged_and_ends_the_log_dir(tmp_path: Path) -> None:
    async def run() -> None:
        files = GatedFiles()
        async with rig(tmp_path, files=files) as broker:
            files.fault = OSError(errno.EIO, "Input/output error")
            line = broker.ask(produce, request(), 9)
            await until(lambda: bool(broker.failures))

            assert line.answers == []
            later = outcome(broker.ask(produce, request(), 9))
            assert later.error_code == ErrorCode.KAFKA_STORAGE_ERROR

    asyncio.run(run())


def test_what_was_acknowledged_is_there_after_a_restart(tmp_path: Path) -> None:
    async def fill(broker: Rig) -> None:
        lines = [broker.ask(produce, request(batch(records=3)), 9) for _ in range(20)]
        await until(lambda: all(line.answers for line in lines))

    async def run() -> None:
        async with rig(tmp_path) as broker:
            await fill(broker)
            assert await broker.replicas.close(broker_epoch=5)
        async with rig(tmp_path) as broker:
            assert broker.replicas.log_dir.clean_broker_epoch == 5
            assert broker.leader().high_watermark == 60
            assert len(spans(content(broker.leader().log))) == 20

    asyncio.run(run())


def keyed(*keys: bytes | None) -> bytes:
    builder = BatchBuilder()
    for key in keys:
        builder.append(key, b"v", timestamp=1_700_000_000_000)
    return bytes(builder.build())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_record_without_a_key_is_named_and_the_log_start_is_told(
    tmp_path: Path, version: int
) -> None:
    async def run() -> None:
        compacted = {"t": {**REPLICATED, "cleanup.policy": "compact,delete"}}
        async with rig(tmp_path, image(topic(), configs=compacted)) as broker:
            broker.ask(produce, request(keyed(b"a", b"b", b"c"), acks=1), version)
            broker.leader().delete_before(2)

            line = broker.ask(produce, request(keyed(b"a", None, b"b"), acks=1), version)

            answer = decoded(line, version).responses[0].partition_responses[0]
            assert (answer.error_code, answer.base_offset) == (ErrorCode.INVALID_RECORD, -1)
            assert answer.log_start_offset == (2 if version >= 5 else -1)
            named = [each.batch_index for each in answer.record_errors]
            assert named == ([1] if version >= 8 else [])
            told = answer.record_errors[0].batch_index_error_message if named else None
            assert told == ("record has no key, which a compacted topic needs" if named else None)
            assert (answer.error_message is not None) == (version >= 8)

    asyncio.run(run())


def decoded(line: Line, version: int) -> Any:
    """The answer as a client of this version reads it."""
    form = codec(ProduceResponse, version)
    return form.decode(b"".join(bytes(part) for part in form.encode(line.answers[0])))
