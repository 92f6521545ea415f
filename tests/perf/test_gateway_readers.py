"""Sockets that read slowly: what they cost, what they miss, and what they leave to a fast one.

The gateway is a process of its own, so that its memory and CPU are its own. The full count of slow
sockets is for `./samsa bench gateway`.
"""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from bench import gateway_ws
from bench.broker_targets import Target
from bench.gateway import worker
from bench.processes import Process
from tests.perf.brokers import one_broker
from tests.scale import count

pytestmark = [pytest.mark.campaign, pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(300)]

TOPIC = "fast"
SECONDS = count(6, 15, long=60)
RATE = 5_000
VALUE = b"x" * 200
# How often some are written, and one is read.
STEP_S = 0.1
# What a process may grow by while it does the same all the time: a tenth of what it would keep if
# it kept all that is written in fifteen seconds.
FLAT_MB = 6
# Of one core: it is a few records a second, whatever the topic gets. Measured: half a percent.
SLOW_CPU_PERCENT = 5
# What the first records bring with them: a client of the library, and its threads.
WARM_S = SECONDS / 3
MB = 1e6

FEW_SLOW = 40
FEW_RECORDS = 40_000
# Of 600 MB for two hundred.
FEW_MB = 120
# A fast reader keeps four fifths of its rate; other work on the machine may take half of that.
KEPT = 0.4


@contextmanager
def beside(folder: Path) -> Iterator[tuple[Target, int, Process]]:
    with one_broker(folder / "home") as (_cluster, broker), worker(broker) as (at, process):
        yield broker, at, process


class Writer(threading.Thread):
    """Writes some thousands of records a second until it is told to end."""

    def __init__(self, broker: Target) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 20})
        self._ended = threading.Event()
        self.written = 0

    def run(self) -> None:
        due = time.monotonic()
        while not self._ended.is_set():
            for _ in range(int(RATE * STEP_S)):
                self._producer.produce(TOPIC, VALUE, partition=0)
            self.written += int(RATE * STEP_S)
            self._producer.poll(0)
            due += STEP_S
            self._ended.wait(max(0.0, due - time.monotonic()))

    def end(self) -> None:
        self._ended.set()
        self.join()
        assert self._producer.flush(SECONDS) == 0


class Reader:
    """What one socket was told of a partition, without a hole that no `gap` has named."""

    def __init__(self) -> None:
        self.next = 0
        self.records = 0
        self.gaps = 0

    def take(self, frame: Any) -> int:
        if frame["type"] == "gap":
            assert frame["from"] == self.next
            self.gaps += frame["to"] - frame["from"]
            self.next = frame["to"]
            return 0
        assert frame["type"] == "batch", frame
        for record in frame["records"]:
            assert record["offset"] == self.next
            self.next += 1
        self.records += len(frame["records"])
        assert frame["lag"] == frame["hw"] - self.next
        return len(frame["records"])


def forget(broker: Target, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for future in admin.delete_records([TopicPartition(TOPIC, 0, before)]).values():
        future.result(SECONDS)


def test_a_slow_socket_costs_the_same_all_the_time_and_misses_nothing_unsaid(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    async def work(broker: Target, port: int, process: Process) -> None:
        reader = Reader()
        writer = Writer(broker)
        async with gateway_ws.opened(port) as socket:
            await gateway_ws.told(socket, "ready")
            place = {"topic": TOPIC, "partition": 0}
            await gateway_ws.say(
                socket,
                type="subscribe",
                sid="a",
                assign=[place],
                credit={"records": 1},
                **{"from": "earliest"},
            )
            await gateway_ws.told(socket, "assigned")
            writer.start()
            warm = cpu = 0.0
            begun, due = time.monotonic(), time.monotonic()
            while time.monotonic() - begun < SECONDS:
                reader.take(json.loads(await socket.recv()))
                if not warm and time.monotonic() - begun > WARM_S:
                    warm, cpu = process.rss_bytes() / MB, process.cpu_seconds()
                due += STEP_S
                await until(due)
                await gateway_ws.say(socket, type="credit", sid="a", records=1)
            grown = process.rss_bytes() / MB - warm
            percent = (process.cpu_seconds() - cpu) / (SECONDS - WARM_S) * 100
            writer.end()
            slowly = reader.records
            # What is gone by the time it comes there is told, and the rest is there for it.
            await asyncio.to_thread(forget, broker, writer.written // 2)
            await gateway_ws.say(socket, type="credit", sid="a", records=writer.written)
            async with asyncio.timeout(SECONDS * 4):
                while reader.next < writer.written:
                    reader.take(json.loads(await socket.recv()))
        report(
            f"{slowly} of {writer.written} records in {SECONDS} s: {grown:+.1f} MB,"
            f" {percent:.1f} % of a core; {reader.gaps} records were told to be gone"
        )
        assert slowly <= SECONDS / STEP_S + 2
        assert writer.written > SECONDS * RATE * 0.8
        assert reader.gaps > 0
        assert reader.records + reader.gaps == writer.written
        assert grown <= FLAT_MB
        assert percent <= SLOW_CPU_PERCENT

    with beside(tmp_path) as (broker, port, process):
        broker.make_topic(TOPIC, 1)
        asyncio.run(work(broker, port, process))


async def until(due: float) -> None:
    try:
        async with asyncio.timeout(max(0.0, due - time.monotonic())):
            await asyncio.Event().wait()
    except TimeoutError:
        pass


def test_a_fast_socket_keeps_its_rate_beside_slow_ones(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    async def work(broker: Target, port: int, process: Process) -> None:
        await asyncio.to_thread(gateway_ws.large, broker, FEW_RECORDS)
        alone = await gateway_ws.fast(port, process, FEW_RECORDS)
        async with gateway_ws.crawling(port, FEW_SLOW, FEW_RECORDS):
            slowed = await gateway_ws.fast(port, process, FEW_RECORDS)
        # What else the machine does may have begun meanwhile.
        again = await gateway_ws.fast(port, process, FEW_RECORDS)
        report(
            f"{alone.rate:,.0f} records/s alone, {slowed.rate:,.0f} beside {FEW_SLOW} slow ones;"
            f" {alone.cpu_us:.1f} and {slowed.cpu_us:.1f} µs of CPU each;"
            f" {alone.peak_mb:.0f} and {slowed.peak_mb:.0f} MB"
        )
        assert slowed.rate >= KEPT * min(alone.rate, again.rate)
        assert slowed.peak_mb - alone.peak_mb <= FEW_MB

    with beside(tmp_path) as (broker, port, process):
        asyncio.run(work(broker, port, process))
