"""The gateway's sockets: how fast records come, and what a thousand of them cost.

The client takes frames apart as little as it can, so that what is measured is the worker's.
"""

import asyncio
import json
import resource
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Producer
from websockets.asyncio.client import ClientConnection, connect

from bench.broker_targets import Target
from bench.gateway_reads import write
from bench.measure import Table
from bench.processes import Process

READ: Final = "bench-sockets"
QUIET: Final = "bench-quiet"
RECORDS: Final = 100_000
FRAME: Final = 100
VALUE: Final = b'{"n":12345678}'
WRITTEN: Final = 10_000
SOCKETS: Final = 1_000
# Handshakes that are under way at the same time.
AT_ONCE: Final = 20
SECONDS: Final = 120
ROUNDS: Final = 3
# Of a kilobyte in batches of a megabyte, as a producer that waits a little makes them.
LARGE: Final = "bench-sockets-large"
LARGE_RECORDS: Final = 100_000
LARGE_BYTES: Final = 1_000
SLOW_SOCKETS: Final = 200
# Each takes a record, and asks for the next one after this.
SLOW_S: Final = 0.1
MB: Final = 1e6
MS: Final = 1e3
US: Final = 1e6


def filled(broker: Target) -> None:
    """Make the topics, one of them with records."""
    broker.make_topic(READ, 1)
    broker.make_topic(QUIET, 1)
    client = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(RECORDS):
        client.produce(READ, value=VALUE)
        if number % FRAME == 0:
            client.poll(0)
    client.flush()


async def rates(port: int, process: Process) -> Table:
    rows = []
    for name, work, count in (
        ("consume, frames of 100", consumed, RECORDS),
        ("produce, one frame each", produced, WRITTEN),
    ):
        best = cpu = float("inf")
        for _ in range(ROUNDS):
            cpu_before, before = process.cpu_seconds(), time.perf_counter()
            async with asyncio.timeout(SECONDS):
                await work(port)
            best = min(best, time.perf_counter() - before)
            cpu = min(cpu, process.cpu_seconds() - cpu_before)
        rows.append((name, round(count / best), cpu / count * US))
    return Table(
        title="one socket of one worker: records of 14 bytes",
        columns=("way", "records/s", "worker's CPU µs per record"),
        rows=rows,
        notes=(f"best of {ROUNDS}; one topic of one partition, from its beginning on",),
    )


async def crowd(broker: Target, port: int, process: Process) -> Table:
    """Open a thousand sockets on a topic without records, and write one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4 * SOCKETS)), hard))
    # What the first socket brings with it is not the price of each.
    async with opened(port) as first:
        await subscribed(first, QUIET)
    before = process.rss_bytes()
    async with AsyncExitStack() as stack:
        sockets: list[ClientConnection] = []
        for _ in range(SOCKETS // AT_ONCE):
            some = [stack.enter_async_context(opened(port)) for _ in range(AT_ONCE)]
            sockets += await asyncio.gather(*some)
        await asyncio.gather(*(subscribed(one, QUIET) for one in sockets))
        cost = process.rss_bytes() - before
        cpu_before, cpu_since = process.cpu_seconds(), time.perf_counter()
        await asyncio.sleep(10)
        cpu = (process.cpu_seconds() - cpu_before) / (time.perf_counter() - cpu_since)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
        # A new client of the library finds the leader after a second.
        await asyncio.to_thread(producer.list_topics, QUIET)
        rounds = [await reached(sockets, producer) for _ in range(ROUNDS)]
        seconds = min(rounds, key=lambda one: one[-1])
    return Table(
        title=f"{SOCKETS} sockets subscribed to one quiet topic",
        columns=("RSS MB", "MB more than one socket", "CPU % at rest", "p50 ms", "last ms"),
        rows=[
            (
                process.rss_bytes() / MB,
                cost / MB,
                cpu * 100,
                statistics.median(seconds) * MS,
                seconds[-1] * MS,
            )
        ],
        notes=(f"from the producer's call until a socket has the record, best of {ROUNDS}",),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A fast reader, alone or beside slow ones: the best of some rounds."""

    rate: float
    cpu_us: float
    peak_mb: float


async def crawl(broker: Target, port: int, process: Process) -> Table:
    """Read fast, alone and beside sockets that take ten records a second."""
    await asyncio.to_thread(large, broker, LARGE_RECORDS)
    alone = await fast(port, process, LARGE_RECORDS)
    async with crawling(port, SLOW_SOCKETS, LARGE_RECORDS):
        beside = await fast(port, process, LARGE_RECORDS)
    return Table(
        title=f"one fast socket beside {SLOW_SOCKETS} that take 10 records a second",
        columns=("way", "records/s", "worker's CPU µs per record", "largest RSS MB"),
        rows=[
            ("alone", round(alone.rate), alone.cpu_us, alone.peak_mb),
            ("beside them", round(beside.rate), beside.cpu_us, beside.peak_mb),
        ],
        notes=(
            f"{LARGE_RECORDS} records of {LARGE_BYTES} B in batches of 1 MB, best of {ROUNDS}",
            "slow ones begin all over the log; their CPU counts with the fast one's",
        ),
    )


def large(broker: Target, records: int) -> None:
    """Make a topic of large batches."""
    broker.make_topic(LARGE, 1)
    write(broker, LARGE, records, LARGE_BYTES)


async def fast(port: int, process: Process, records: int) -> Beside:
    seconds = cpu = float("inf")
    for _ in range(ROUNDS):
        cpu_before, before = process.cpu_seconds(), time.perf_counter()
        async with asyncio.timeout(SECONDS):
            await consumed(port, LARGE, records)
        seconds = min(seconds, time.perf_counter() - before)
        cpu = min(cpu, process.cpu_seconds() - cpu_before)
    return Beside(
        rate=records / seconds, cpu_us=cpu / records * US, peak_mb=process.peak_bytes() / MB
    )


@asynccontextmanager
async def crawling(port: int, count: int, records: int) -> AsyncIterator[None]:
    """Have so many sockets read slowly, each from another place of the first half of a topic."""
    async with AsyncExitStack() as stack:
        sockets: list[ClientConnection] = []
        for first in range(0, count, AT_ONCE):
            some = [stack.enter_async_context(opened(port)) for _ in range(first, count)[:AT_ONCE]]
            sockets += await asyncio.gather(*some)
        for number, each in enumerate(sockets):
            await crept(each, number * records // (2 * count))
        # Each has had its first record.
        await asyncio.gather(*(told(each, "batch") for each in sockets))
        tasks = [asyncio.create_task(creep(each)) for each in sockets]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def crept(socket: ClientConnection, offset: int) -> None:
    await told(socket, "ready")
    start = {"offsets": [{"topic": LARGE, "partition": 0, "offset": offset}]}
    await say(socket, type="subscribe", sid="a", credit={"records": 1}, **{"from": start})
    await told(socket, "assigned")


async def creep(socket: ClientConnection) -> None:
    while True:
        await asyncio.sleep(SLOW_S)
        await say(socket, type="credit", sid="a", records=1)
        await told(socket, "batch")


async def reached(sockets: Sequence[ClientConnection], producer: Producer) -> list[float]:
    """Write a record; return when each socket had it, in order."""
    sent = time.perf_counter()
    producer.produce(QUIET, value=VALUE)
    await asyncio.to_thread(producer.flush)

    async def arrival(one: ClientConnection) -> float:
        await told(one, "batch")
        return time.perf_counter() - sent

    async with asyncio.timeout(SECONDS):
        return sorted(await asyncio.gather(*map(arrival, sockets)))


def opened(port: int) -> connect:
    return connect(
        f"ws://127.0.0.1:{port}/ws/v1",
        additional_headers={"Authorization": "Bearer bench"},
        compression=None,
        max_size=None,
        ping_interval=None,
    )


async def say(socket: ClientConnection, **frame: object) -> None:
    await socket.send(json.dumps(frame))


async def told(socket: ClientConnection, kind: str) -> bytes:
    """Return the next frame, which is of this kind."""
    text = await socket.recv(decode=False)
    assert text.startswith(b'{"type":"%s"' % kind.encode()), text[:300]
    return text


async def subscribed(socket: ClientConnection, topic: str, start: str = "latest") -> None:
    await told(socket, "ready")
    credit = {"records": FRAME}
    await say(socket, type="subscribe", sid="a", topics=[topic], credit=credit, **{"from": start})
    await told(socket, "assigned")


async def consumed(port: int, topic: str = READ, records: int = RECORDS) -> None:
    """Read a topic in frames of a hundred, with credit for some of them ahead."""
    async with opened(port) as socket:
        await subscribed(socket, topic, "earliest")
        for _ in range(9):
            await say(socket, type="credit", sid="a", records=FRAME)
        count = 0
        while count < records:
            found = (await told(socket, "batch")).count(b'"offset":')
            count += found
            await say(socket, type="credit", sid="a", records=found)


async def produced(port: int) -> None:
    async with opened(port) as socket:
        await told(socket, "ready")

        async def write() -> None:
            for number in range(WRITTEN):
                text = '{"type":"produce","id":"%d","topic":"%s","value":"12345678901234"}'
                await socket.send(text % (number, READ))

        writing = asyncio.create_task(write())
        for _ in range(WRITTEN):
            await told(socket, "receipt")
        await writing
