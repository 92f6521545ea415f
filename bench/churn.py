"""Clients that come, produce and go, as fast as they are told to, in a process of their own.

Raw connections also leave as no good client does: without reading the answer, in the middle of a
request, or by a reset. Whole clients are librdkafka's producers.

`python -m bench.churn` takes a job as JSON on its standard input and prints what it did.
"""

import json
import socket
import struct
import sys
import threading
import time
from collections import deque
from dataclasses import asdict, dataclass
from typing import Final

from confluent_kafka import Producer

from bench import blaster
from bench.children import done_by

# Raw connections that are open at once, before the oldest must leave.
OPEN_AT_ONCE: Final = 8
# Ways to leave, in turn, among the raw: most of them read their answer first.
UNREAD, HALF, RESET = 3, 5, 7
WAYS: Final = 8
LINGER_NONE: Final = struct.pack("ii", 1, 0)
# Whole clients at work at once, and records that each produces.
THREADS: Final = 2
RECORDS: Final = 10
ANSWER_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Churn:
    host: str
    port: int
    topic: str
    partitions: int
    seconds: float
    # A second, at most: so that a machine with two cores is busy and not full.
    raw_rate: float = 200
    client_rate: float = 10
    # What a broker knows of such a producer has to outlive its connection, by a day.
    is_idempotent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """How many came, produced if they meant to, and went."""

    raw: int
    clients: int


def churn(job: Churn) -> Came:
    """Does the job in this process; every connection is closed when it returns."""
    came: list[int] = []
    stop = time.monotonic() + job.seconds
    threads = [
        threading.Thread(target=_come_whole, args=(job, stop, came, number))
        for number in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    raw = _come_raw(job, stop)
    for thread in threads:
        thread.join()
    assert len(came) == THREADS, "a client failed: see above"
    return Came(raw=raw, clients=sum(came))


def in_a_child(job: Churn) -> Came:
    """The same in a process of its own, whose memory and descriptors are nobody's business."""
    return Came(**done_by("bench.churn", asdict(job), seconds=job.seconds))


def _come_raw(job: Churn, stop: float) -> int:
    requests = [
        next(blaster.produce_requests(_blast(job), index)) for index in range(job.partitions)
    ]
    inside: deque[tuple[socket.socket, int]] = deque()
    started = time.monotonic()
    count = 0
    while (now := time.monotonic()) < stop:
        ahead = count / job.raw_rate - (now - started)
        if ahead > 0:
            time.sleep(ahead)
        way = count % WAYS
        request = requests[count % job.partitions]
        link = socket.create_connection((job.host, job.port), ANSWER_SECONDS)
        link.sendall(request[: len(request) // 2] if way == HALF else request)
        inside.append((link, way))
        count += 1
        if len(inside) == OPEN_AT_ONCE:
            _leave(*inside.popleft())
    for link, way in inside:
        _leave(link, way)
    return count


def _leave(link: socket.socket, way: int) -> None:
    with link:
        if way == RESET:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NONE)
        elif way not in {UNREAD, HALF}:
            with link.makefile("rb") as stream:
                size = int.from_bytes(stream.read(4), "big")
                assert size > 0, "the broker closed a connection in place of an answer"
                assert len(stream.read(size)) == size, "an answer ended too early"


def _blast(job: Churn) -> blaster.Job:
    return blaster.Job(
        host=job.host,
        port=job.port,
        kind="produce",
        connections=1,
        seconds=job.seconds,
        topic=job.topic,
        partitions=job.partitions,
    )


def _come_whole(job: Churn, stop: float, came: list[int], number: int) -> None:
    """One client after the other; says how many only if every record was acknowledged."""
    pace = THREADS / job.client_rate
    count = 0
    while time.monotonic() < stop:
        due = time.monotonic() + pace
        producer = Producer(
            {
                "bootstrap.servers": f"{job.host}:{job.port}",
                "enable.idempotence": job.is_idempotent,
                "log_level": 3,
            }
        )
        for index in range(RECORDS):
            producer.produce(job.topic, b"x" * 100, partition=(number + index) % job.partitions)
        left = producer.flush(ANSWER_SECONDS)
        assert left == 0, f"{left} records were not acknowledged"
        del producer
        count += 1
        time.sleep(max(0.0, due - time.monotonic()))
    came.append(count)


def main() -> None:
    sys.stdout.write(json.dumps(asdict(churn(Churn(**json.load(sys.stdin))))))


if __name__ == "__main__":
    main()
