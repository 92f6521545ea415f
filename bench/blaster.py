"""A raw client that replays requests made beforehand, in a process of its own.

Knows frames, and nothing of what is in the answers: whatever it computed beside the broker would be
measured, too. That the requests had an effect is checked afterwards by who gave the job. Each
connection has one request in flight, like a producer that waits for its acknowledgement, or as many
as the job says: Kafka's own producers send up to five before they wait.

`python -m bench.blaster` takes a job as JSON on its standard input and prints what it saw.
"""

import json
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from struct import Struct

from brokers.protocol.apis import APIS
from brokers.protocol.codec import codec
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from brokers.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from brokers.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from brokers.protocol.records.batch import CHECKED_POSITION, CRC, CRC_POSITION
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.crc32c import crc32c

# Kafka's table of positions in a batch's header; a replayed batch gets its own sequence there.
_SEQUENCE_POSITION = 53
_SEQUENCE = Struct(">i")
_HEAD = Struct(">ihhih")  # size, key, version, correlation id, length of the client id
_CLIENT = b"blaster"
PRODUCE_VERSION, FETCH_VERSION, INIT_VERSION = 9, 12, 4
PRODUCE, FETCH, API_VERSIONS, INIT_PRODUCER_ID = 0, 1, 18, 22
Sendable = bytes | bytearray
SIZE_BYTES = 4  # in front of each answer
RECEIVE_BYTES = 4 * 2**20
# A blaster that hears nothing for so long reports that, instead of hanging a benchmark.
SILENCE_SECONDS = 20.0
# How a broker says that it has no producer ids yet, and how soon it is asked again.
NOT_YET = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE})
RETRY_SECONDS = 0.05
# Requests made beforehand for each connection that numbers them; then it starts over, which an
# idempotent producer may not, so it stops.
NUMBERED = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    host: str
    port: int
    kind: str  # produce, fetch, versions
    connections: int
    seconds: float
    topic: str = ""
    partitions: int = 1
    bytes_each: int = 100  # the value of the one record of a batch, or what a fetch asks for
    acks: int = 1
    is_idempotent: bool = False
    # At most so many requests a second over all connections; 0: as fast as answers come.
    rate: int = 0
    # On each connection; several only where answers are small, so that each comes in one piece.
    in_flight: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    requests: int
    seconds: float
    sent_bytes: int
    received_bytes: int
    p50_us: float
    p99_us: float
    max_us: float


def framed(key: int, version: int, body: Sequence[bytes | bytearray | memoryview]) -> bytearray:
    """One whole request, its size in front."""
    is_flexible = APIS[key].is_flexible(version)
    joined = b"".join(body)
    head = _HEAD.size + len(_CLIENT) + is_flexible
    frame = bytearray(_HEAD.pack(head - 4 + len(joined), key, version, 7, len(_CLIENT)))
    frame += _CLIENT
    if is_flexible:
        frame += b"\0"
    return frame + joined


def produce_requests(job: Job, index: int) -> Iterator[bytes]:
    """The produce requests of one connection: one for ever, or numbered ones that end."""
    partition = index % job.partitions
    producer_id = new_producer_id(job.host, job.port) if job.is_idempotent else -1
    number = 0 if job.is_idempotent else -1
    builder = BatchBuilder(producer_id=producer_id, producer_epoch=number, base_sequence=number)
    now_ms = time.time_ns() // 1_000_000
    builder.append(None, b"x" * job.bytes_each, timestamp=now_ms)
    records = memoryview(builder.build())
    request = ProduceRequest(
        acks=job.acks,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name=job.topic,
                partition_data=[PartitionProduceData(index=partition, records=records)],
            )
        ],
    )
    frame = framed(PRODUCE, PRODUCE_VERSION, codec(ProduceRequest, PRODUCE_VERSION).encode(request))
    if not job.is_idempotent:
        whole = bytes(frame)
        while True:
            yield whole
    start = frame.index(bytes(records))
    view = memoryview(frame)[start : start + len(records)]
    for sequence in range(NUMBERED):
        _SEQUENCE.pack_into(view, _SEQUENCE_POSITION, sequence)
        CRC.pack_into(view, CRC_POSITION, crc32c(view[CHECKED_POSITION:]))
        yield bytes(frame)


def fetch_requests(job: Job, index: int) -> Iterator[bytes]:
    """The same fetch from the beginning of a partition, for ever."""
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=job.bytes_each,
        session_epoch=-1,
        topics=[
            FetchTopic(
                topic=job.topic,
                partitions=[
                    FetchPartition(
                        partition=index % job.partitions,
                        fetch_offset=0,
                        partition_max_bytes=job.bytes_each,
                    )
                ],
            )
        ],
    )
    whole = bytes(framed(FETCH, FETCH_VERSION, codec(FetchRequest, FETCH_VERSION).encode(request)))
    while True:
        yield whole


def version_requests(_job: Job, _index: int) -> Iterator[bytes]:
    """The cheapest request there is: what a connection costs without any log."""
    whole = bytes(framed(API_VERSIONS, 0, []))
    while True:
        yield whole


KINDS: dict[str, Callable[[Job, int], Iterator[bytes]]] = {
    "produce": produce_requests,
    "fetch": fetch_requests,
    "versions": version_requests,
}


class Link:
    """One connection, whose answers come in the order of its requests.

    `expected` is what each answer must say behind its correlation id, where one request is in
    flight and its answer fits into one read; to compare it costs next to nothing.
    """

    __slots__ = ("answer_left", "expected", "requests", "sent_ns", "socket")

    def __init__(
        self, address: tuple[str, int], requests: Iterator[Sendable], expected: bytes | None = None
    ) -> None:
        self.requests = requests
        self.expected = expected
        self.socket = socket.create_connection(address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answer_left = 0
        self.sent_ns: deque[int] = deque()  # when those in flight were sent

    def send(self) -> int:
        """Sends the next request; 0 when there is none left."""
        request = next(self.requests, b"")
        if request:
            self.sent_ns.append(time.perf_counter_ns())
            self.socket.sendall(request)
        return len(request)

    def receive(self, buffer: memoryview) -> tuple[int, int]:
        """How many bytes came, and how many answers they end."""
        count = self.socket.recv_into(buffer)
        if count == 0:
            raise ConnectionError("the broker closed the connection: see its log")
        if self.expected is not None and buffer[8:count] != self.expected:
            raise ValueError(f"answered {bytes(buffer[8:count])!r}, not {self.expected!r}")
        answers = at = 0
        while at < count:
            if self.answer_left == 0:
                assert count - at >= SIZE_BYTES, "the size of an answer came in pieces"
                self.answer_left = int.from_bytes(buffer[at : at + SIZE_BYTES], "big") + SIZE_BYTES
            part = min(self.answer_left, count - at)
            at += part
            self.answer_left -= part
            answers += self.answer_left == 0
        return count, answers


def blast(job: Job) -> Seen:
    """Does the job in this process."""
    assert job.in_flight == 1 or job.kind != "fetch", "fetched answers come in pieces"
    address, requests = (job.host, job.port), KINDS[job.kind]
    links = [Link(address, requests(job, index)) for index in range(job.connections)]
    return keep_busy(links, job.seconds, rate=job.rate, in_flight=job.in_flight)


def keep_busy(
    all_links: Sequence[Link], seconds: float, *, rate: int = 0, in_flight: int = 1
) -> Seen:
    """Keeps requests in flight on each connection until the time is over, and closes them."""
    buffer = memoryview(bytearray(RECEIVE_BYTES))
    links = {link.socket.fileno(): link for link in all_links}
    poll = select.epoll()
    for fd in links:
        poll.register(fd, select.EPOLLIN)
    sent = received = requests = 0
    times: list[int] = []
    start = time.perf_counter_ns()
    stop = start + int(seconds * 1e9)
    waiting = 0
    for _ in range(in_flight):
        for link in links.values():
            size = link.send()
            sent += size
            waiting += size > 0
    gap_ns = int(1e9 / rate) if rate else 0
    due = start
    while waiting:
        events = poll.poll(SILENCE_SECONDS)
        if not events:
            raise TimeoutError(f"no answer for {SILENCE_SECONDS} s")
        for fd, _event in events:
            link = links[fd]
            count, answers = link.receive(buffer)
            received += count
            if not answers:
                continue
            came = now = time.perf_counter_ns()
            requests += answers
            waiting -= answers
            for _ in range(answers):
                times.append(came - link.sent_ns.popleft())
                if gap_ns:
                    due += gap_ns
                    while now < due:
                        now = time.perf_counter_ns()
                if now < stop:
                    size = link.send()
                    sent += size
                    waiting += size > 0
    lasted = (time.perf_counter_ns() - start) / 1e9
    poll.close()
    for link in links.values():
        link.socket.close()
    times.sort()
    return Seen(
        requests=requests,
        seconds=lasted,
        sent_bytes=sent,
        received_bytes=received,
        p50_us=times[len(times) // 2] / 1e3,
        p99_us=times[len(times) * 99 // 100] / 1e3,
        max_us=times[-1] / 1e3,
    )


def ask(
    address: tuple[str, int],
    key: int,
    version: int,
    body: Sequence[bytes | bytearray | memoryview],
) -> bytes:
    """One request, and the body of its answer; ConnectionError where the broker hangs up."""
    with socket.create_connection(address) as link:
        link.settimeout(SILENCE_SECONDS)
        link.sendall(framed(key, version, body))
        with link.makefile("rb") as stream:
            size = int.from_bytes(stream.read(4), "big")
            answer = stream.read(size)
    if not answer or len(answer) < size:
        raise ConnectionError(f"{len(answer)} bytes came of an answer of {size}")
    # Behind the correlation id, flexible answers have tagged fields, of which there are none.
    return answer[4 + (APIS[key].is_flexible(version) and key != API_VERSIONS) :]


def new_producer_id(host: str, port: int) -> int:
    """Return an id; waits while the broker has no block of them yet, as after its start."""
    deadline = time.monotonic() + SILENCE_SECONDS
    while True:
        answer = _asked_for_id((host, port))
        if answer.error_code == ErrorCode.NONE:
            return answer.producer_id
        if answer.error_code not in NOT_YET or time.monotonic() > deadline:
            raise TimeoutError(f"no producer id was given: error {answer.error_code}")
        time.sleep(RETRY_SECONDS)


def _asked_for_id(address: tuple[str, int]) -> InitProducerIdResponse:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    body = codec(InitProducerIdRequest, INIT_VERSION).encode(request)
    return codec(InitProducerIdResponse, INIT_VERSION).decode(
        ask(address, INIT_PRODUCER_ID, INIT_VERSION, body)
    )


def main() -> None:
    job = Job(**json.load(sys.stdin))
    sys.stdout.write(json.dumps(asdict(blast(job))))


if __name__ == "__main__":
    main()
