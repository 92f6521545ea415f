"""Produce to topics with a compression.type: in order, beside the loop, and as Kafka stores it."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from brokers.clock import Clock
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from brokers.protocol.records.batch import Batch, batches
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.reader import records
from brokers.protocol.records.recompression import recompressed
from brokers.replication.recompressor import MAX_BYTES_AT_ONCE, MAX_PARALLEL
from brokers.server.handlers import produce
from tests.brokers.replication.parts import (
    REPLICATED,
    WAIT_SECONDS,
    Line,
    TickingClock,
    image,
    rig,
    topic,
    until,
)
from tests.builders.logs import NOW_MS, content

MIB = 2**20
LARGE = 2 * MAX_BYTES_AT_ONCE


def built(
    size: int, *, codec: Compression = Compression.NONE, sequence: int = 0, key: bytes = b"k"
) -> bytes:
    builder = BatchBuilder(
        compression=codec, producer_id=7, producer_epoch=0, base_sequence=sequence
    )
    builder.append(key, b"x" * size, [(b"h", b"1")], timestamp=NOW_MS)
    builder.append(key, None, timestamp=NOW_MS)
    return bytes(builder.build())


def request(*data: bytes) -> ProduceRequest:
    parts = [
        PartitionProduceData(index=index, records=memoryview(bytearray(one)))
        for index, one in enumerate(data)
    ]
    return ProduceRequest(
        acks=1, timeout_ms=1_000, topic_data=[TopicProduceData(name="t", partition_data=parts)]
    )


def broker(
    tmp_path: Path,
    compression: str,
    *,
    partitions: int = 1,
    clock: Clock | None = None,
    **configs: str,
) -> Any:
    keys = {key.replace("_", "."): value for key, value in configs.items()}
    of_topic = {**REPLICATED, "compression.type": compression, **keys}
    return rig(tmp_path, image(topic(partitions=partitions), configs={"t": of_topic}), clock=clock)


def gated(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Hold all recompressions until the event is set."""
    gate = threading.Event()

    def work(*args: Any, **kwargs: Any) -> memoryview:
        assert gate.wait(WAIT_SECONDS)
        return recompressed(*args, **kwargs)

    monkeypatch.setattr("brokers.replication.recompressor.recompressed", work)
    return gate


def outcomes(line: Line) -> list[tuple[int, int]]:
    (response,) = line.answers
    parts = response.responses[0].partition_responses
    return [(part.error_code, part.base_offset) for part in parts]


def stored(built_rig: Any, index: int = 0) -> list[Batch]:
    return list(batches(memoryview(content(built_rig.leader("t", index).log))))


@pytest.mark.parametrize("size", [100, LARGE], ids=["at once", "in a thread"])
@pytest.mark.parametrize("name", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_stored_with_the_codec_of_their_topic(
    tmp_path: Path, name: str, size: int
) -> None:
    wanted = Compression.NONE if name == "uncompressed" else Compression[name.upper()]

    async def run() -> None:
        async with broker(tmp_path, name) as found:
            lines = []
            for number, codec in enumerate(Compression):
                sent = built(size, codec=codec, sequence=2 * number)
                lines.append(found.ask(produce, request(sent), 9))
                await until(lambda: bool(lines[-1].answers))

            assert [outcomes(line) for line in lines] == [[(0, 2 * n)] for n in range(5)]
            kept = stored(found)
            assert [batch.compression for batch in kept] == [wanted] * 5
            assert [batch.base_sequence for batch in kept] == [0, 2, 4, 6, 8]
            first = list(records(Batch(memoryview(built(size))), max_bytes=MIB))
            assert list(records(kept[0], max_bytes=MIB)) == first
            for batch in kept:
                batch.check_crc()
            assert found.replicas.room.kept_bytes == 0

    asyncio.run(run())


def test_a_repeated_batch_is_found_in_the_log(tmp_path: Path) -> None:
    async def run() -> None:
        async with broker(tmp_path, "zstd") as found:
            for _ in range(2):
                line = found.ask(produce, request(built(100)), 9)
                assert outcomes(line) == [(ErrorCode.NONE, 0)]
            assert found.leader().log.end_offset == 2

    asyncio.run(run())


def test_times_are_stamped_and_keys_are_checked_as_without_recompression(tmp_path: Path) -> None:
    async def run() -> None:
        async with broker(
            tmp_path,
            "lz4",
            partitions=2,
            cleanup_policy="compact",
            message_timestamp_type="LogAppendTime",
        ) as found:
            builder = BatchBuilder()
            builder.append(None, b"x" * LARGE, timestamp=NOW_MS)
            line = found.ask(produce, request(built(LARGE), bytes(builder.build())), 9)
            await until(lambda: bool(line.answers))

            assert [code for code, _offset in outcomes(line)] == [0, ErrorCode.INVALID_RECORD]
            (batch,) = stored(found)
            assert batch.uses_log_append_time
            assert batch.max_timestamp == found.clock.now_ms()
            assert batch.base_timestamp == NOW_MS

    asyncio.run(run())


def test_a_batch_that_grows_too_large_is_refused_so_that_its_producer_splits_it(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with broker(tmp_path, "uncompressed", max_message_bytes="1000") as found:
            line = found.ask(produce, request(built(LARGE, codec=Compression.ZSTD)), 9)
            await until(lambda: bool(line.answers))

            assert outcomes(line) == [(ErrorCode.MESSAGE_TOO_LARGE, -1)]
            assert found.leader().log.end_offset == 0

    asyncio.run(run())


def test_a_connection_waits_for_the_thread_and_others_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = gated(monkeypatch)

    async def run() -> None:
        async with broker(tmp_path, "lz4", partitions=2) as found:
            line = found.ask(produce, request(built(LARGE), built(LARGE, sequence=0)), 9)
            other = found.ask(produce, request(built(LARGE, codec=Compression.LZ4, sequence=0)), 9)
            for _ in range(10):
                await asyncio.sleep(0)
            # It neither spins nor holds the loop.
            assert len(found.replicas.turns) == 0
            assert (line.answers, line.is_held) == ([], True)
            assert outcomes(other) == [(0, 0)]
            assert found.replicas.room.kept_bytes > LARGE
            gate.set()

            await until(lambda: bool(line.answers))

            assert (line.is_held, found.replicas.room.kept_bytes) == (False, 0)
            # The first is a duplicate of the other connection's batch.
            assert outcomes(line) == [(0, 0), (0, 0)]
            assert found.leader().log.end_offset == 2

    asyncio.run(run())


def test_a_turn_of_the_loop_recompresses_for_a_short_time_only(tmp_path: Path) -> None:
    async def run() -> None:
        async with broker(tmp_path, "zstd", clock=TickingClock(NOW_MS)) as found:
            small, rules = memoryview(built(100)), found.leader().log.config.rules
            at_once = found.replicas.recompressor.at_once
            # The clock moves by a millisecond with each look.
            packed = [at_once(small, rules) for _ in range(4)]
            await asyncio.sleep(0)

            assert packed[0] is not None
            assert packed[-1] is None
            assert at_once(small, rules) is not None

    asyncio.run(run())


def test_another_codec_that_is_set_meanwhile_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = gated(monkeypatch)

    async def run() -> None:
        async with broker(tmp_path, "lz4") as found:
            line = found.ask(produce, request(built(LARGE)), 9)
            await asyncio.sleep(0)
            configs = {"t": {**REPLICATED, "compression.type": "gzip"}}
            await found.apply(image(topic(), version=2, configs=configs))
            gate.set()

            await until(lambda: bool(line.answers))

            assert [batch.compression for batch in stored(found)] == [Compression.GZIP]

    asyncio.run(run())


def test_a_batch_whose_client_is_gone_is_dropped(tmp_path: Path) -> None:
    async def run() -> None:
        async with broker(tmp_path, "lz4") as found:
            line = found.ask(produce, request(built(LARGE)), 9)
            line.close()

            await until(lambda: found.replicas.room.kept_bytes == 0)

            assert found.leader().log.end_offset == 0

    asyncio.run(run())


def test_requests_whose_batches_are_kept_are_finished_over_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = gated(monkeypatch)
    monkeypatch.setattr(produce, "MAX_KEPT_BYTES", 3 * LARGE)

    async def run() -> None:
        async with broker(tmp_path, "lz4", partitions=2) as found:
            # The first batch waits for its thread, the second one is kept as a copy already.
            lines = [found.ask(produce, request(built(LARGE), built(LARGE)), 9) for _ in range(2)]
            late = found.ask(produce, request(built(LARGE)), 9)
            gate.set()

            await until(lambda: all(line.answers for line in lines))

            assert [outcomes(line) for line in lines] == [[(0, 0), (0, 0)]] * 2
            assert late.is_closed
            assert found.replicas.room.kept_bytes == 0

    asyncio.run(run())


def test_threads_leave_out_batches_whose_clients_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, begun = threading.Event(), []

    def work(*args: Any, **kwargs: Any) -> memoryview:
        begun.append(args)
        assert gate.wait(WAIT_SECONDS)
        return recompressed(*args, **kwargs)

    monkeypatch.setattr("brokers.replication.recompressor.recompressed", work)

    async def run() -> None:
        async with broker(tmp_path, "lz4") as found:
            lines = [found.ask(produce, request(built(LARGE)), 9) for _ in range(MAX_PARALLEL + 3)]
            await until(lambda: len(begun) == MAX_PARALLEL)
            for line in lines:
                line.close()
            gate.set()

            await until(lambda: found.replicas.room.kept_bytes == 0)

            assert len(begun) == MAX_PARALLEL

    asyncio.run(run())
