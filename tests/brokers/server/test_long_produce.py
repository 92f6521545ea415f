"""Batches that take long to look into: in steps over many turns, in order, from a copy."""

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from brokers.protocol.codec import codec
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.reader import PACE
from brokers.protocol.records.validation import MAX_PARTS_AT_ONCE
from brokers.replication.replicas import MAX_INSPECTIONS
from brokers.server.handlers import produce
from brokers.server.long_produce import MAX_KEPT_BYTES
from tests.brokers.replication.parts import (
    GatedFiles,
    Line,
    TickingClock,
    image,
    rig,
    topic,
    until,
)
from tests.builders.logs import NOW_MS, content

HEADERS = 49_000
COMPACTED = {"cleanup.policy": "compact", "samsa.durability": "replicated"}


def costly(
    *, key: bytes | None = b"k", headers: int = HEADERS, sequence: int | None = None
) -> bytes:
    """One record with many headers; of an idempotent producer if it has a sequence."""
    builder = BatchBuilder(compression=Compression.ZSTD)
    if sequence is not None:
        builder = BatchBuilder(
            compression=Compression.ZSTD, producer_id=7, producer_epoch=0, base_sequence=sequence
        )
    builder.append(key, b"", [(b"", None)] * headers, timestamp=NOW_MS)
    return bytes(builder.build())


def request(*batches: bytes, acks: int = 1) -> ProduceRequest:
    """One batch for each partition, from the first one on."""
    parts = [
        PartitionProduceData(index=index, records=memoryview(bytearray(data)))
        for index, data in enumerate(batches)
    ]
    return ProduceRequest(
        acks=acks,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name="t", partition_data=parts)],
    )


def outcomes(line: Line) -> list[tuple[int, int]]:
    (response,) = line.answers
    parts = response.responses[0].partition_responses
    return [(part.error_code, part.base_offset) for part in parts]


async def turns_until(line: Line) -> int:
    turns = 0

    def is_answered() -> bool:
        nonlocal turns
        turns += 1
        return bool(line.answers or line.silent or line.reasons)

    await until(is_answered)
    return turns


def compacted(tmp_path: Path, *, partitions: int = 1) -> Any:
    cluster = image(topic(partitions=partitions), configs={"t": COMPACTED})
    return rig(tmp_path, cluster, clock=TickingClock(NOW_MS))


def test_many_headers_are_looked_at_over_many_turns_while_the_connection_is_held(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with compacted(tmp_path) as broker:
            line = broker.ask(produce, request(costly()), 9)
            assert (line.answers, line.is_held) == ([], True)
            assert broker.leader().log.end_offset == 0

            turns = await turns_until(line)

            assert turns >= HEADERS // PACE // 4
            assert (outcomes(line), line.is_held) == ([(ErrorCode.NONE, 0)], False)
            assert broker.replicas.room.kept_bytes == 0

    asyncio.run(run())


def test_what_is_appended_is_what_came_though_others_have_received_since(tmp_path: Path) -> None:
    async def run() -> None:
        async with compacted(tmp_path) as broker:
            line = Line()
            sent = request(costly(headers=5_000), acks=-1)
            call = broker.call(sent, 9, line)
            wire = codec(ProduceRequest, 9)
            received = bytearray(b"".join(bytes(part) for part in wire.encode(sent)))
            produce.handle(broker.context, call, wire.decode(memoryview(received)))

            received[:] = bytes(len(received))
            await turns_until(line)

            assert outcomes(line) == [(ErrorCode.NONE, 0)]
            stored = bytes(content(broker.leader().log))
            assert stored[21:] == costly(headers=5_000)[21:]

    asyncio.run(run())


@pytest.mark.slow
def test_more_records_than_one_turn_can_look_at_are_taken(tmp_path: Path) -> None:
    builder = BatchBuilder()
    for _ in range(51_000):
        builder.append(b"", b"", timestamp=NOW_MS)
    data = bytes(builder.build())

    async def run() -> None:
        async with compacted(tmp_path) as broker:
            line = broker.ask(produce, request(data), 9)
            await turns_until(line)

            assert outcomes(line) == [(ErrorCode.NONE, 0)]
            assert broker.leader().log.end_offset == 51_000

    asyncio.run(run())


def test_a_record_without_a_key_is_refused_after_the_look(tmp_path: Path) -> None:
    async def run() -> None:
        async with compacted(tmp_path, partitions=2) as broker:
            sound = costly(headers=2 * MAX_PARTS_AT_ONCE)
            line = broker.ask(produce, request(costly(key=None), sound), 9)
            await turns_until(line)

            assert outcomes(line) == [(ErrorCode.INVALID_RECORD, -1), (ErrorCode.NONE, 0)]

    asyncio.run(run())


@pytest.mark.parametrize(("key", "silent"), [(b"k", 1), (None, 0)])
def test_who_wants_no_answer_gets_none(tmp_path: Path, key: bytes | None, silent: int) -> None:
    async def run() -> None:
        async with compacted(tmp_path) as broker:
            line = broker.ask(produce, request(costly(key=key), acks=0), 9)
            await turns_until(line)

            assert (line.answers, line.silent, len(line.reasons)) == ([], silent, 1 - silent)

    asyncio.run(run())


def test_a_client_that_goes_leaves_nothing_behind(tmp_path: Path) -> None:
    async def run() -> None:
        async with compacted(tmp_path) as broker:
            line = broker.ask(produce, request(costly()), 9)
            assert broker.replicas.room.kept_bytes > 0

            line.close()
            await until(lambda: len(broker.replicas.turns) == 0)

            assert broker.replicas.room.kept_bytes == 0
            assert (line.answers, broker.leader().log.end_offset) == ([], 0)

    asyncio.run(run())


def test_no_more_is_kept_than_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(produce, "MAX_KEPT_BYTES", 10)

    async def run() -> None:
        async with compacted(tmp_path) as broker:
            first, second = (broker.ask(produce, request(costly()), 9) for _ in range(2))

            assert outcomes(second) == [(ErrorCode.KAFKA_STORAGE_ERROR, -1)]
            await turns_until(first)
            assert outcomes(first) == [(ErrorCode.NONE, 0)]

    asyncio.run(run())


def test_an_idempotent_batch_without_room_ends_its_connection_before_the_next_is_appended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(produce, "MAX_KEPT_BYTES", 10)

    async def run() -> None:
        async with compacted(tmp_path) as broker:
            other = broker.ask(produce, request(costly()), 9)
            line = broker.ask(produce, request(costly(sequence=0)), 9)
            assert (line.answers, line.is_closed) == ([], True)
            assert "the limit is 10" in line.reasons[0]
            await turns_until(other)

            again, after = (
                broker.ask(produce, request(costly(sequence=sequence, headers=0)), 9)
                for sequence in (0, 1)
            )

            assert outcomes(again) + outcomes(after) == [(ErrorCode.NONE, 1), (ErrorCode.NONE, 2)]
            assert broker.replicas.room.kept_bytes == 0

    asyncio.run(run())


def test_request_whose_batches_are_kept_is_inspected_over_the_limit(tmp_path: Path) -> None:
    async def run() -> None:
        async with compacted(tmp_path, partitions=2) as broker:
            line = broker.ask(produce, request(costly(), costly(sequence=0)), 9)
            assert line.is_held
            broker.replicas.room.kept_bytes += MAX_KEPT_BYTES
            await turns_until(line)

            assert outcomes(line) == [(ErrorCode.NONE, 0), (ErrorCode.NONE, 0)]
            assert (line.is_held, line.is_closed) == (False, False)
            assert broker.replicas.room.kept_bytes == MAX_KEPT_BYTES

    asyncio.run(run())


def test_a_topic_that_becomes_compacted_meanwhile_is_looked_into_by_its_new_rules(
    tmp_path: Path,
) -> None:
    by_age = {"message.timestamp.before.max.ms": "1000", "samsa.durability": "replicated"}

    async def run() -> None:
        cluster = image(topic(), configs={"t": by_age})
        async with rig(tmp_path, cluster, clock=TickingClock(NOW_MS)) as broker:
            line = broker.ask(produce, request(costly(key=None)), 9)
            await broker.apply(image(topic(), version=2, configs={"t": COMPACTED}))
            await turns_until(line)

            assert outcomes(line) == [(ErrorCode.INVALID_RECORD, -1)]

    asyncio.run(run())


def test_a_request_of_many_partitions_is_appended_over_many_turns(tmp_path: Path) -> None:
    count = 40

    async def run() -> None:
        async with compacted(tmp_path, partitions=count) as broker:
            keyed = costly(headers=0)
            line = broker.ask(produce, request(*[keyed] * count), 9)
            done = [broker.leader(index=index).log.end_offset for index in range(count)]
            assert 0 < sum(done) < count

            await turns_until(line)

            assert outcomes(line) == [(ErrorCode.NONE, 0)] * count

    asyncio.run(run())


def test_what_is_safe_before_the_rest_is_appended_frees_no_number_for_the_rest(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        files = GatedFiles()
        cluster = image(topic(partitions=3))
        async with rig(tmp_path, cluster, files=files) as broker:
            files.gate.clear()
            line = Line()
            pending = produce.PendingProduce(broker.context, broker.call(request(acks=-1), 9, line))
            answers = [PartitionProduceResponse(index=index) for index in range(3)]
            for index in (0, 1):
                pending.add(broker.leader(index=index), 1, answers[index])
            pending.reached(0)
            pending.add(broker.leader(index=2), 1, answers[2])
            topics = [TopicProduceResponse(name="t", partition_responses=answers)]
            pending.begin(ProduceResponse(responses=topics), 30_000, has_failed=False)

            pending.reached(1)
            assert line.answers == []
            pending.reached(2)
            assert len(line.answers) == 1

    asyncio.run(run())


def test_where_too_much_is_kept_already_a_request_of_many_partitions_is_not_kept_as_well(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with compacted(tmp_path, partitions=9) as broker:
            broker.replicas.room.kept_bytes = MAX_KEPT_BYTES + 1
            line = broker.ask(produce, request(*[costly(headers=0)] * 9), 9)

            assert outcomes(line) == [(ErrorCode.NONE, 0)] * 9

    asyncio.run(run())


def test_the_time_that_is_stamped_is_that_of_the_append(tmp_path: Path) -> None:
    stamped = {**COMPACTED, "message.timestamp.type": "LogAppendTime"}

    async def run() -> None:
        cluster = image(topic(), configs={"t": stamped})
        async with rig(tmp_path, cluster, clock=TickingClock(NOW_MS)) as broker:
            slow = broker.ask(produce, request(costly()), 9)
            quick = broker.ask(produce, request(costly(headers=0)), 9)
            await turns_until(slow)

            first, second = (
                line.answers[0].responses[0].partition_responses[0] for line in (quick, slow)
            )
            assert (first.base_offset, second.base_offset) == (0, 1)
            assert first.log_append_time_ms < second.log_append_time_ms

    asyncio.run(run())


def test_few_batches_are_unpacked_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way, most = 0, 0

    def inspecting(*_: object) -> Generator[None, None, None]:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        yield
        under_way -= 1

    monkeypatch.setattr(produce, "inspecting", inspecting)

    async def run() -> None:
        async with compacted(tmp_path) as broker:
            lines = [broker.ask(produce, request(costly()), 9) for _ in range(20)]
            await until(lambda: all(line.answers for line in lines))

            assert [outcomes(line)[0][0] for line in lines] == [ErrorCode.NONE] * 20
            assert most == MAX_INSPECTIONS

    asyncio.run(run())


def test_a_failure_in_a_later_turn_ends_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Any:
        yield
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(produce, "inspecting", broken)

    class Ended(Line):
        def failed(self) -> None:
            self.reasons.append("failed")

    async def run() -> None:
        async with compacted(tmp_path) as broker:
            line = broker.ask(produce, request(costly()), 9, Ended())
            await turns_until(line)

            assert line.reasons == ["failed"]
            assert [event for event, _error in broker.troubles] == ["request.turn_failed"]
            assert broker.replicas.room.kept_bytes == 0

    asyncio.run(run())
