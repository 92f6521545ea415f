"""The gateway's sockets: how fast records come, and what a thousand of them cost.

The client takes frames apart as little as it can, so that what is measured is the worker's.
"""

import asyncio
import json
import resource
import statistics
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

from confluent_kafka import Producer
from websockets.asyncio.client import ClientConnection, connect

from bench.broker_targets import Target
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


async def consumed(port: int) -> None:
    """Read a topic in frames of a hundred, with credit for some of them ahead."""
    async with opened(port) as socket:
        await subscribed(socket, READ, "earliest")
        for _ in range(9):
            await say(socket, type="credit", sid="a", records=FRAME)
        count = 0
        while count < RECORDS:
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
