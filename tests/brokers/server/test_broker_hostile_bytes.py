"""A whole broker among clients that lie, stall, never read or leave: the others notice nothing.

What the codec's own fuzz does in memory comes over a socket here, to all the handlers of a broker.
Each of these clients gets a proper answer or loses its connection. Meanwhile a witness writes and
reads and must always find its own records; memory, descriptors and log lines stay bounded.
"""

import asyncio
import gc
import os
import struct
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from brokers.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from brokers.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from brokers.protocol.schema import Field, Message
from brokers.replication.partition import Partition
from brokers.server.served import HANDLERS
from tests.builders.logs import batch
from tests.fakes.broker import RunningBroker, running_broker
from tests.fakes.listener import HOST, ByteClient, request_frame
from tests.fuzz.frames import broken, drawn
from tests.fuzz.frames import request_frame as lying_frame
from tests.fuzz.layout import pieces_of
from tests.oracles.strategies import replaced
from tests.scale import count

SEED = 20_261_119
WITNESS, VICTIM = "witness", "victim"
FRAMES_PER_VERSION = count(12, 24, long=1_000)
# Connections that lie at the same time.
LIARS = 8
# A request that is in order may wait for records, or want no answer: then the client leaves.
QUIET_SECONDS = 0.05
WAIT_SECONDS = 20.0
# What a broker may have grown by, beyond what its allocator keeps of a few large requests.
GROWTH_BYTES = 48 * 1024 * 1024
# Lines of one kind in one minute, times the kinds that a listener has.
MOST_LINES = 60
PRODUCE_VERSION, FETCH_VERSION = 9, 11
# Limits that a test reaches by waiting a moment.
SHORT = {"connections.max.idle.ms": "2000", "samsa.frame.max.ms": "2000"}


class Witness:
    """A client in good order on a connection of its own, which checks each answer it gets."""

    def __init__(self, client: ByteClient) -> None:
        self._client = client
        self._end = 0

    async def write_and_read(self) -> None:
        data = PartitionProduceData(index=0, records=batch(records=2))
        topic = TopicProduceData(name=WITNESS, partition_data=[data])
        request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
        answer = await self._client.ask(request, PRODUCE_VERSION)
        told = answer.responses[0].partition_responses[0]
        assert (told.error_code, told.base_offset) == (0, self._end)
        answer = await self._client.ask(fetch(WITNESS, self._end), FETCH_VERSION)
        found = answer.responses[0].partitions[0]
        self._end += 2
        assert (found.error_code, found.high_watermark) == (0, self._end)
        assert struct.unpack_from(">q", found.records)[0] == self._end - 2

    async def until(self, fact: Callable[[], bool]) -> None:
        """Go on as a good client until something is true, and once more after that."""
        async with asyncio.timeout(WAIT_SECONDS):
            while not fact():
                await self.write_and_read()
        await self.write_and_read()


def fetch(topic: str, offset: int, *, max_wait_ms: int = 0) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )


@asynccontextmanager
async def watched_broker(
    tmp_path: Path, **settings: Any
) -> AsyncIterator[tuple[RunningBroker, Witness]]:
    """Run a broker with a witness, and check at the end that nobody else left a trace."""
    topics = {WITNESS: 1, VICTIM: 2}
    # Whoever asks for the coordinator of a group has its topic created, and the logs stay open.
    defaults = {"offsets.topic.num.partitions": "1", **settings.pop("defaults", {})}
    async with running_broker(tmp_path, topics=topics, defaults=defaults, **settings) as running:
        client = await running.connect()
        witness = Witness(client)
        await witness.write_and_read()
        gc.collect()
        before, descriptors = resident_bytes(), count_descriptors()

        yield running, witness

        await witness.until(lambda: running.context.metrics.connections == 1)
        gc.collect()
        assert running.context.metrics.output_bytes == 0
        assert resident_bytes() - before < GROWTH_BYTES
        # Files of new segments aside, none stays open.
        assert count_descriptors() - descriptors < 20
        assert [line for line in running.lines if line["level"] == "error"] == []
        assert len(running.lines) < MOST_LINES
        await client.close()


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def count_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def closings(running: RunningBroker) -> list[dict[str, Any]]:
    return [line for line in running.lines if line["event"] == "connection.closed"]


# -- lies ----------------------------------------------------------------------------------------


def served_versions() -> list[tuple[type[Message], int]]:
    """Every request in every version that is served."""
    return [
        (module.SERVED.api().request, version)
        for module in HANDLERS
        for version in range(module.SERVED.api().versions[0], module.SERVED.api().versions[1] + 1)
    ]


def hostile_frames(rng: Random, message: type[Message], version: int) -> list[bytes]:
    """Break requests that, in half of their places, name things that exist."""

    def name(field: Field, found: Any) -> Any:
        return VICTIM if isinstance(found, str) and rng.random() < 0.5 else found

    frames = []
    for _ in range(FRAMES_PER_VERSION):
        value = replaced(drawn(rng, message, version), version, name)
        body = broken(rng, pieces_of(value, version, message.FLEXIBLE))
        frame = lying_frame(rng, message, version, body)
        frames.append(struct.pack(">i", len(frame)) + frame)
    return frames


async def lie(running: RunningBroker, frames: list[bytes], seen: Counter[str]) -> None:
    """Send frames on as few connections as the broker leaves open."""
    client = await running.connect()
    for frame in frames:
        client.writer.write(frame)
        try:
            async with asyncio.timeout(QUIET_SECONDS):
                (size,) = struct.unpack(">i", await client.reader.readexactly(4))
                answer = await client.reader.readexactly(size)
        except TimeoutError:
            seen["quiet"] += 1
        except (ConnectionError, asyncio.IncompleteReadError):
            seen["closed"] += 1
        else:
            # An answer belongs to what was asked, whatever that was.
            assert answer[:4] == frame[8:12], frame.hex()
            seen["answered"] += 1
            continue
        await client.close()
        client = await running.connect()
    await client.close()


@pytest.mark.slow
def test_lying_requests_are_answered_or_end_their_connection(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    rng, seen = Random(SEED), Counter[str]()
    versions = served_versions()

    async def story() -> None:
        async with watched_broker(tmp_path) as (running, witness):
            waiting = [hostile_frames(rng, *each) for each in versions]

            async def liar() -> None:
                while waiting:
                    await lie(running, waiting.pop(), seen)

            async with asyncio.TaskGroup() as tasks:
                liars = [tasks.create_task(liar()) for _ in range(LIARS)]
                await witness.until(lambda: all(task.done() for task in liars))

    asyncio.run(story(), debug=False)

    report(f"seed {SEED}, {len(versions)} versions of {len(HANDLERS)} APIs: {dict(seen)}")
    assert seen["answered"] > 0.05 * seen.total()
    assert seen["closed"] > 0.05 * seen.total()


@pytest.mark.parametrize(
    ("first", "word"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(200)), "TLS"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH"),
        (struct.pack(">i", -1), "-1"),
        (struct.pack(">i", 0), ""),
        (struct.pack(">i", 104_857_601), "104857601"),
        (struct.pack(">ihhih", 10, 0, 2, 1, -1), "2"),
        (bytes(4096), ""),
    ],
    ids=["http", "http2", "tls", "ssh", "negative", "empty", "large", "produce-2", "zeros"],
)
def test_bytes_of_something_else_end_one_connection_with_one_line(
    tmp_path: Path, first: bytes, word: str
) -> None:
    async def story() -> None:
        async with watched_broker(tmp_path) as (running, witness):
            client = await running.connect()

            client.writer.write(first)

            assert await client.is_closed()
            await witness.write_and_read()
            (line,) = closings(running)
            assert word in line["detail"]
            await client.close()

    asyncio.run(story())


def test_promises_of_large_requests_cost_no_memory(tmp_path: Path) -> None:
    """Fifty clients promise 100 MB each and bring a few bytes of them."""

    async def story() -> None:
        async with watched_broker(tmp_path) as (running, witness):
            clients = [await running.connect() for _ in range(50)]
            before = resident_bytes()

            for client in clients:
                client.writer.write(struct.pack(">i", 100_000_000) + bytes([0, 0, 0, 9, 0]))
            expected = 1 + len(clients)
            await witness.until(lambda: running.context.metrics.connections == expected)
            for _ in range(20):
                await witness.write_and_read()

            assert resident_bytes() - before < GROWTH_BYTES
            for client in clients:
                await client.close()

    asyncio.run(story())


# -- leaving, stalling ---------------------------------------------------------------------------


def test_clients_that_leave_in_the_middle_of_a_request_are_forgotten(tmp_path: Path) -> None:
    frame = request_frame(fetch(VICTIM, 0), FETCH_VERSION)

    async def story() -> None:
        async with watched_broker(tmp_path) as (running, witness):
            for length in (*range(1, len(frame)), len(frame) - 1):
                client = await running.connect()
                client.writer.write(frame[:length])
                if length % 2:
                    # Gone with a reset in place of a farewell.
                    client.writer.transport.abort()
                else:
                    await client.close()
                await witness.write_and_read()

            await witness.until(lambda: running.context.metrics.connections == 1)
            assert closings(running) == []

    asyncio.run(story())


def test_a_client_that_has_said_all_gets_its_answers_before_it_is_let_go(tmp_path: Path) -> None:
    async def story() -> None:
        async with watched_broker(tmp_path) as (running, _witness):
            client = await running.connect()
            client.send(fetch(WITNESS, 0), FETCH_VERSION, correlation_id=7)

            client.writer.write_eof()

            assert (await client.frame())[:4] == struct.pack(">i", 7)
            assert await client.is_closed()
            await client.close()

    asyncio.run(story())


@pytest.mark.slow
def test_a_client_that_stays_and_says_nothing_is_let_go(tmp_path: Path) -> None:
    async def story() -> None:
        async with watched_broker(tmp_path, defaults=SHORT) as (running, witness):
            silent, waiting = await running.connect(), await running.connect()
            waiting.send(fetch(VICTIM, 0, max_wait_ms=5_000), FETCH_VERSION)
            answered = asyncio.create_task(waiting.frame())

            # The witness goes on all the time, so it is not idle either.
            await witness.until(answered.done)

            assert await silent.is_closed()
            # Whoever waits for records is not idle.
            assert answered.result()[:4] == struct.pack(">i", 1)
            assert {line["reason"] for line in closings(running)} == {"idle"}
            await silent.close()
            await waiting.close()

    asyncio.run(story())


@pytest.mark.slow
def test_a_request_that_drips_in_is_given_up(tmp_path: Path) -> None:
    frame = request_frame(fetch(VICTIM, 0), FETCH_VERSION)

    async def story() -> None:
        async with watched_broker(tmp_path, defaults=SHORT) as (running, witness):
            slow = await running.connect()

            async def drip() -> None:
                with suppress(ConnectionError):
                    for place in range(len(frame) * 1000):
                        slow.writer.write(frame[place % len(frame) :][:1] if place else b"\0")
                        await slow.writer.drain()
                        await witness.write_and_read()
                        if closings(running):
                            return

            # The first four bytes promise more than will ever come.
            slow.writer.write(struct.pack(">i", 90_000_000))
            async with asyncio.timeout(WAIT_SECONDS):
                await drip()

            (line,) = closings(running)
            assert line["reason"] == "slow frame"
            assert await slow.is_closed()
            await slow.close()

    asyncio.run(story())


# -- never reading -------------------------------------------------------------------------------


def has_watchers(partition: Partition) -> bool:
    return bool(partition.watchers)


async def fill(client: ByteClient, topic: str, total_bytes: int) -> None:
    """Write so much that its answers do not fit into the kernel's buffers."""
    for _ in range(total_bytes // 500_000):
        data = PartitionProduceData(index=0, records=batch(size=500_000))
        entry = TopicProduceData(name=topic, partition_data=[data])
        answer = await client.ask(
            ProduceRequest(acks=1, timeout_ms=10_000, topic_data=[entry]), PRODUCE_VERSION
        )
        assert answer.responses[0].partition_responses[0].error_code == 0


@pytest.mark.slow
def test_clients_that_never_read_cost_a_bounded_part(tmp_path: Path) -> None:
    async def story() -> None:
        async with watched_broker(tmp_path) as (running, witness):
            writer = await running.connect()
            await fill(writer, VICTIM, 4_000_000)
            await writer.close()
            before = resident_bytes()
            greedy = [await running.connect() for _ in range(10)]

            for client in greedy:
                # Not even the kernel's buffer of this end is emptied.
                client.reader._transport.pause_reading()  # type: ignore[attr-defined]  # noqa: SLF001
                for number in range(200):
                    client.send(fetch(VICTIM, 0), FETCH_VERSION, number)
            for _ in range(100):
                await witness.write_and_read()

            assert running.context.metrics.connections == 1 + len(greedy)
            assert resident_bytes() - before < GROWTH_BYTES
            partition = running.context.replicas.leader(VICTIM, 0)
            for client in greedy:
                client.writer.transport.abort()
            await witness.until(lambda: running.context.metrics.connections == 1)
            # What was to be sent from files has let go of them.
            assert partition.log.segments.active.file.pins == 0

    asyncio.run(story())


def test_a_newcomer_never_gets_what_its_descriptors_last_owner_waited_for(tmp_path: Path) -> None:
    async def story() -> None:
        async with watched_broker(tmp_path) as (running, witness):
            for number in range(20):
                partition = running.context.replicas.leader(VICTIM, 0)
                end = partition.log.end_offset
                gone = await running.connect()
                gone.send(fetch(VICTIM, end, max_wait_ms=20_000), FETCH_VERSION, 1000 + number)
                await witness.until(partial(has_watchers, partition))
                await gone.close()
                # The broker has not heard of it when the next one knocks.
                newcomer = await running.connect()

                await fill(newcomer, VICTIM, 500_000)
                newcomer.send(fetch(WITNESS, 0), FETCH_VERSION, correlation_id=5)

                assert (await newcomer.frame())[:4] == struct.pack(">i", 5)
                await newcomer.close()

    asyncio.run(story())


def test_a_flood_of_connections_leaves_no_descriptor_behind(tmp_path: Path) -> None:
    async def story() -> None:
        async with watched_broker(tmp_path) as (running, witness):
            for _ in range(5):
                opened = await asyncio.gather(
                    *(asyncio.open_connection(HOST, running.port) for _ in range(100))
                )
                await witness.write_and_read()
                for _reader, writer in opened:
                    writer.transport.abort()

            await witness.until(lambda: running.context.metrics.connections == 1)
            assert closings(running) == []

    asyncio.run(story())
