"""The gateway: produce in streams, in requests of many records and of one; sockets.

The worker is a process of its own, without a check of tokens; its client here speaks HTTP by hand,
so that little of what is measured is the client's. For comparison, the client library alone
produces to the same broker.
"""

import asyncio
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

from confluent_kafka import Producer

from bench import gateway_console, gateway_ws
from bench.broker_targets import ROOT, Target, own_broker
from bench.measure import Cell, Table
from bench.processes import Process

TOPIC: Final = "bench-gateway"
STREAMED: Final = 30_000
# Passed to the child by its command line, and not imported from it: the import would load the web
# project, which needs its home first.
CLUSTER: Final = "bench"
CARRIED: Final = 100
REQUESTS: Final = 400
CONNECTIONS: Final = 8
SINGLES: Final = 300
ROUNDS: Final = 3
SECONDS: Final = 120
# Bytes handed to the socket, and taken from it, at once.
WRITE_BYTES: Final = 32 * 1024
READ_BYTES: Final = 256 * 1024
KEY: Final = b"k"
VALUE: Final = b'{"n":12345678}'
RECORD: Final = b'{"key":{"type":"STRING","data":"k"},"value":{"type":"JSON","data":%s}}' % VALUE
V2_RECORD: Final = b'{"key":"aw==","value":"eyJuIjoxMjM0NTY3OH0="}'
V2_TYPE: Final = "application/vnd.kafka.binary.v2+json"
V3: Final = f"/clusters/{CLUSTER}/topics/{TOPIC}/records"
OFFSETS: Final = re.compile(rb'"offset":(\d+)')
MS: Final = 1e3
US: Final = 1e6


def run(**_options: str | int) -> Iterator[Table]:
    with own_broker() as (broker, _), worker(broker) as (port, process):
        broker.make_topic(TOPIC, 1)
        yield asyncio.run(rates(broker, port, process))
        yield asyncio.run(delays(broker, port))
        gateway_ws.filled(broker)
        yield asyncio.run(gateway_ws.rates(port, process))
        yield asyncio.run(gateway_ws.crowd(broker, port, process))
    # A new process, so that its memory is the cost of these sockets.
    with own_broker() as (broker, _), worker(broker) as (port, process):
        yield asyncio.run(gateway_ws.crawl(broker, port, process))
    with own_broker() as (broker, _), worker(broker) as (port, _):
        broker.make_topic(TOPIC, 1)
        yield gateway_console.beside(port)


@contextmanager
def worker(broker: Target) -> Iterator[tuple[int, Process]]:
    """Start a worker of the gateway; yield its port and its process."""
    command = [sys.executable, "-m", "bench.gateway_child", broker.bootstrap, CLUSTER]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            yield int(child.stdout.readline()), Process(child.pid)
        finally:
            child.terminate()


async def rates(broker: Target, port: int, process: Process) -> Table:
    v2_body = b'{"records":[%s]}' % b",".join([V2_RECORD] * CARRIED)
    ways: tuple[tuple[str, Callable[[], Awaitable[None]], int], ...] = (
        ("v3, one stream", lambda: streamed(port), STREAMED),
        ("v3, requests of 100", lambda: requested(port, v3(RECORD * CARRIED)), REQUESTS * CARRIED),
        ("v2, requests of 100", lambda: requested(port, v2(v2_body)), REQUESTS * CARRIED),
    )
    rows: list[tuple[Cell, ...]] = []
    for name, work, count in ways:
        best = cpu = float("inf")
        for _ in range(ROUNDS):
            cpu_before, before = process.cpu_seconds(), time.perf_counter()
            async with asyncio.timeout(SECONDS):
                await work()
            best = min(best, time.perf_counter() - before)
            cpu = min(cpu, process.cpu_seconds() - cpu_before)
        rows.append((name, round(count / best), cpu / count * US))
    alone = max([await asyncio.to_thread(direct, broker) for _ in range(ROUNDS)])
    rows.append(("the client library alone", round(alone), None))
    return Table(
        title="produce by one worker: records of 15 bytes, acks=all",
        columns=("way", "records/s", "worker's CPU µs per record"),
        rows=rows,
        notes=(f"best of {ROUNDS}; a stream's receipts are in order, without a gap",),
    )


async def delays(broker: Target, port: int) -> Table:
    one = b'{"records":[%s]}' % V2_RECORD
    ways = {
        "v2, one record": await singles(port, v2(one)),
        "v3, one record": await singles(port, v3(RECORD)),
        "the client library alone": await asyncio.to_thread(direct_singles, broker),
    }
    return Table(
        title="one record at a time, acks=all",
        columns=("way", "p50 ms", "p95 ms"),
        rows=[(name, *middle_and_late(seconds)) for name, seconds in ways.items()],
        notes=(f"{SINGLES} records, one after the other, over one connection",),
    )


def v3(body: bytes) -> bytes:
    return head(V3, "application/json", f"Content-Length: {len(body)}") + body


def v2(body: bytes) -> bytes:
    return head(f"/topics/{TOPIC}", V2_TYPE, f"Content-Length: {len(body)}") + body


def head(path: str, content_type: str, length: str) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: {content_type}\r\n{length}\r\n\r\n"
    ).encode()


async def streamed(port: int) -> None:
    """Send one request, in which each record is a chunk, and read receipts meanwhile."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = b"%x\r\n%s\r\n" % (len(RECORD), RECORD) * STREAMED + b"0\r\n\r\n"
    text = head(V3, "application/json", "Transfer-Encoding: chunked") + body

    async def write() -> None:
        for at in range(0, len(text), WRITE_BYTES):
            writer.write(text[at : at + WRITE_BYTES])
            await writer.drain()

    writing = asyncio.create_task(write())
    found = bytearray()
    while not found.endswith(b"\r\n0\r\n\r\n"):
        piece = await reader.read(READ_BYTES)
        assert piece, f"the answer breaks off: {found[-300:]!r}"
        found += piece
    await writing
    writer.close()
    offsets = [int(offset) for offset in OFFSETS.findall(found)]
    assert offsets == list(range(offsets[0], offsets[0] + STREAMED))


async def requested(port: int, request: bytes) -> None:
    """Send requests one after the other, over each of some connections."""

    async def connection() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(REQUESTS // CONNECTIONS):
            writer.write(request)
            text = await answer(reader)
            assert len(OFFSETS.findall(text)) == CARRIED, text[-300:]
        writer.close()

    await asyncio.gather(*(connection() for _ in range(CONNECTIONS)))


async def answer(reader: asyncio.StreamReader) -> bytes:
    """Return one answer of an open connection, of known length or in chunks."""
    told = (await reader.readuntil(b"\r\n\r\n")).lower()
    assert b" 200 " in told.partition(b"\r\n")[0], told
    _, has_length, rest = told.partition(b"content-length: ")
    if has_length:
        return await reader.readexactly(int(rest.partition(b"\r\n")[0]))
    found = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        found += (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
    return found


async def singles(port: int, request: bytes) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    seconds = []
    for _ in range(SINGLES):
        before = time.perf_counter()
        writer.write(request)
        await answer(reader)
        seconds.append(time.perf_counter() - before)
    writer.close()
    return seconds


def producer(broker: Target) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})


def direct(broker: Target) -> float:
    """Return the records a second of the client library alone."""
    client = producer(broker)
    before = time.perf_counter()
    for number in range(STREAMED):
        client.produce(TOPIC, value=VALUE, key=KEY)
        if number % CARRIED == 0:
            client.poll(0)
    client.flush()
    return STREAMED / (time.perf_counter() - before)


def direct_singles(broker: Target) -> list[float]:
    client = producer(broker)
    seconds = []
    for _ in range(SINGLES):
        before = time.perf_counter()
        client.produce(TOPIC, value=VALUE, key=KEY)
        client.flush()
        seconds.append(time.perf_counter() - before)
    return seconds


def middle_and_late(seconds: list[float]) -> tuple[float, float]:
    return statistics.median(seconds) * MS, statistics.quantiles(seconds, n=20)[18] * MS
