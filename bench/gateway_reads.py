"""The gateway's readers without a group: one alone, one beside slow ones, and many at one place.

All readers are in one process, as they are in a worker; nothing is written to sockets. For
comparison, the client library alone reads from the same broker.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.broker_targets import ROOT, Target, own_broker
from bench.measure import Table

SMALL: Final = "bench-reads-small"
LARGE: Final = "bench-reads-large"
SMALL_RECORDS: Final = 200_000
SMALL_BYTES: Final = 100
# In batches of a megabyte, as a producer that waits a little makes them.
LARGE_RECORDS: Final = 200_000
LARGE_BYTES: Final = 1_000
BATCH_BYTES: Final = 1_000_000
SLOW_READERS: Final = 200
SECONDS: Final = 300
ROUNDS: Final = 3


def run(**_options: str | int) -> Iterator[Table]:
    with own_broker() as (broker, _):
        for topic, records, size in (
            (SMALL, SMALL_RECORDS, SMALL_BYTES),
            (LARGE, LARGE_RECORDS, LARGE_BYTES),
        ):
            broker.make_topic(topic, 1)
            write(broker, topic, records, size)
        # Alternate the runs and keep the best, since other programs use the machine too.
        rounds = [
            (
                measured(broker, SMALL, 0, SMALL_RECORDS),
                measured(broker, LARGE, 0, LARGE_RECORDS),
                measured(broker, LARGE, SLOW_READERS, LARGE_RECORDS),
            )
            for _ in range(ROUNDS)
        ]
        small, alone, beside = (max(found) for found in zip(*rounds, strict=True))
        yield Table(
            title="readers without a group, in one process",
            columns=("way", "records/s", "memory MB", "CPU µs per record"),
            rows=[
                (
                    "the client library alone, 100 B",
                    round(direct(broker, SMALL, SMALL_RECORDS)),
                    None,
                    None,
                ),
                ("one reader, 100 B", *small),
                ("one reader, 1 kB", *alone),
                (f"the same beside {SLOW_READERS} that take 10/s", *beside),
            ],
            notes=(
                f"{SMALL_RECORDS} of {SMALL_BYTES} B, {LARGE_RECORDS} of {LARGE_BYTES} B in 1 MB",
                "the fast reader begins at the beginning, the slow ones all over the log",
                "memory is the largest resident set, a bare process of ours included",
            ),
        )


def write(broker: Target, topic: str, records: int, size: int) -> None:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "linger.ms": 200,
            "batch.size": BATCH_BYTES,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": records,
        }
    )
    value = b"x" * size
    for _ in range(records):
        producer.produce(topic, value, partition=0)
    assert producer.flush(SECONDS) == 0


def direct(broker: Target, topic: str, records: int) -> float:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "bench"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    begin, count = time.perf_counter(), 0
    while count < records:
        count += len(consumer.consume(500, 1))
    seconds = time.perf_counter() - begin
    consumer.close()
    return records / seconds


def measured(broker: Target, topic: str, slow: int, records: int) -> tuple[int, float, float]:
    """Read in a process of its own; return records per second, megabytes, CPU per record."""
    command = [
        *(sys.executable, "-m", "bench.gateway_reads"),
        *(broker.bootstrap, topic, str(slow), str(records)),
    ]
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, timeout=SECONDS
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return round(told["rate"]), round(told["mb"]), told["cpu_us"]


async def child(bootstrap: str, topic: str, slow: int, records: int) -> dict[str, float]:
    # Only the child needs these.
    from gateway.access import callers  # noqa: PLC0415
    from gateway.kafka.connection import Connection  # noqa: PLC0415
    from gateway.kafka.readers.admission import admit  # noqa: PLC0415
    from gateway.kafka.readers.engine import Readers  # noqa: PLC0415
    from gateway.kafka.readers.reading import Reading  # noqa: PLC0415
    from gateway.kafka.values import Place, Position, PositionKind  # noqa: PLC0415
    from gateway.rest.readers import reader_of  # noqa: PLC0415

    readers = Readers(Connection(bootstrap=bootstrap))
    admission = admit(reader_of(callers.of_host("bench"), ""), [topic])
    place = Place(topic=topic, partition=0)

    async def dawdle(reading: Reading) -> None:
        while True:
            await reading.take(max_records=10, max_bytes=1_000_000, wait_s=5)
            await asyncio.sleep(1)

    tasks = []
    for number in range(slow):
        at = Position(kind=PositionKind.OFFSET, value=number * records // (2 * slow))
        tasks.append(asyncio.create_task(dawdle(await readers.open(admission, {place: at}))))
    if slow:
        # Each has had its first turn.
        await asyncio.sleep(10)
    reading = await readers.open(admission, {place: Position(kind=PositionKind.BEGINNING)})
    count, begin, cpu = 0, time.perf_counter(), time.process_time()
    while count < records:
        count += len(await reading.take(max_records=100, max_bytes=1_000_000, wait_s=30))
    seconds = time.perf_counter() - begin
    spent = time.process_time() - cpu
    for task in tasks:
        task.cancel()
    await readers.close()
    return {"rate": records / seconds, "mb": largest_mb(), "cpu_us": spent / records * 1e6}


def largest_mb() -> float:
    """Return the most memory that this process ever had."""
    # The maximum of getrusage includes the memory of the parent process.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    bootstrap, topic, slow, records = sys.argv[1:]
    print(json.dumps(asyncio.run(child(bootstrap, topic, int(slow), int(records)))))  # noqa: T201
