"""What one client can do to the others: costly requests beside an active client of the same broker.

Each scenario is one client's, and is within what a stranger may send. The figures are what the
active client felt, how late the broker's event loop was by its own samples, and whether the cluster
gave the broker up meanwhile.
"""

import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from bench.blaster import FETCH, PRODUCE, PRODUCE_VERSION, framed
from bench.broker_targets import Target
from bench.bystander import Felt, bystander
from bench.groups import largest_new, loop_delays
from bench.homes import BenchHome, running_home
from bench.log import batch
from bench.measure import Cell, Table
from brokers.protocol.codec import codec
from brokers.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from brokers.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from brokers.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from brokers.protocol.records.batch import CHECKED_POSITION, CRC, CRC_POSITION, MAGIC_POSITION
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.crc32c import crc32c
from brokers.storage.files import LocalFiles
from brokers.storage.handles import Handles
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig

ACTIVE: Final = "bench-active"
COMPACTED: Final = "bench-compacted"
LYING: Final = "bench-lying"
DAMAGED: Final = "bench-damaged"
RECOMPRESSED: Final = "bench-recompressed"

WORST_MS: Final = 25.0
P99_MS: Final = 10.0
ANSWER_SECONDS: Final = 600.0
LIST_OFFSETS: Final = 2
LIST_VERSION, FETCH_VERSION = 7, 11
# Kafka's table of positions in a batch's header.
MAX_TIMESTAMP_AT: Final = 35
SMALL_BATCH: Final = 170
# With the last record below the default of max.message.bytes.
RECOMPRESSED_BYTES: Final = 1_000_000
# A consumer that meets an error waits before it asks again; this one is ten times as impatient as
# librdkafka.
RETRY_SECONDS: Final = 0.05
SESSION_ENDED: Final = '"broker.session_ended"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much of everything; tests are content with little."""

    produces: int = 600
    headers: int = 49_000
    batches: int = 200
    records: int = 100_000
    segment_bytes: int = 256 * 2**20
    consumer_seconds: float = 10.0
    recompressed: int = 500


def run() -> Iterator[Table]:
    with running_home(brokers=1) as home:
        yield loop_table(home, Size())


def loop_table(home: BenchHome, size: Size) -> Table:
    rows: list[tuple[Cell, ...]] = []
    broker = home.first_broker()
    broker.make_topic(ACTIVE, 1, durability="replicated")
    rows.append(_row("nothing else", home, lambda: time.sleep(size.consumer_seconds)))
    for name, prepare in SCENARIOS.items():
        rows.append(_row(name, home, prepare(home, size)))
    return Table(
        title="an active client beside one costly client",
        columns=(
            "beside",
            "seconds",
            "requests",
            "p50 ms",
            "p99 ms",
            "longest ms",
            "loop late by ms: below",
            "sessions ended",
            "met",
        ),
        rows=rows,
        notes=(
            f"targets: p99 ≤ {P99_MS:g} ms, longest wait ≤ {WORST_MS:g} ms, no session ended",
            (
                "the longest wait is no shorter than the longest turn of the loop that fell into "
                "it; the loop's own samples are taken four times a second"
            ),
        ),
    )


def _row(name: str, home: BenchHome, attack: Callable[[], object]) -> tuple[Cell, ...]:
    broker = home.first_broker()
    ended, delays = sessions_ended(home.folder), loop_delays(broker)
    began = time.perf_counter()
    with _beside(broker) as felt:
        attack()
    seconds = time.perf_counter() - began
    late = largest_new(delays, loop_delays(broker))
    ended = sessions_ended(home.folder) - ended
    return (
        name,
        seconds,
        felt.requests,
        felt.p50_ms,
        felt.p99_ms,
        felt.max_ms,
        late,
        ended,
        judged(felt, ended),
    )


def _beside(broker: Target) -> AbstractContextManager[Felt]:
    return bystander(broker, ACTIVE)


def judged(felt: Felt, ended: int) -> str:
    is_met = felt.p99_ms <= P99_MS and felt.max_ms <= WORST_MS and not ended
    return "yes" if is_met else "NO"


def sessions_ended(home: Path) -> int:
    """How often the cluster gave a broker of this home up."""
    logs = (home / "logs").glob("*.log*")
    return sum(log.read_text(encoding="utf-8").count(SESSION_ENDED) for log in logs)


# -- scenarios: each prepares, and returns what is done beside the active client ----------------


def costly_produces(home: BenchHome, size: Size) -> Callable[[], object]:
    """Batches of a hundred bytes that say thousands of headers, all in one send."""
    broker = home.first_broker()
    broker.make_topic(COMPACTED, 1, durability="replicated", config={"cleanup.policy": "compact"})
    builder = BatchBuilder(compression=Compression.ZSTD)
    builder.append(b"k", b"", [(b"", None)] * size.headers, timestamp=_now_ms())
    frame = _produce(COMPACTED, builder.build(level=19))
    return lambda: asked(broker, frame, times=size.produces)


def recompressed_produces(home: BenchHome, size: Size) -> Callable[[], object]:
    """Uncompressed batches of a megabyte of JSON, all in one send, for a topic of zstd."""
    broker = home.first_broker()
    broker.make_topic(RECOMPRESSED, 1, durability="replicated", config={"compression.type": "zstd"})
    builder, draw = BatchBuilder(), Random(1)
    while builder.size < RECOMPRESSED_BYTES:
        words = " ".join(f"{draw.randrange(16**4):x}" for _ in range(40))
        value = f'{{"id": {builder.record_count}, "name": "samsa", "words": "{words}"}}'
        builder.append(b"k", value.encode(), timestamp=_now_ms())
    frame = _produce(RECOMPRESSED, builder.build())
    return lambda: asked(broker, frame, times=size.recompressed)


def lying_batches(home: BenchHome, size: Size) -> Callable[[], object]:
    """A search by time in batches whose headers promise what no record has."""
    broker, now_ms = home.first_broker(), _now_ms()
    broker.make_topic(LYING, 1, durability="replicated")
    builder = BatchBuilder(compression=Compression.ZSTD)
    for _ in range(size.records):
        builder.append(None, b"", timestamp=now_ms - 1_000)
    data = builder.build()
    data[MAX_TIMESTAMP_AT : MAX_TIMESTAMP_AT + 8] = now_ms.to_bytes(8, "big")
    CRC.pack_into(data, CRC_POSITION, crc32c(memoryview(data)[CHECKED_POSITION:]))
    for _ in range(size.batches):
        asked(broker, _produce(LYING, data))
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=LYING,
                partitions=[ListOffsetsPartition(partition_index=0, timestamp=now_ms)],
            )
        ],
    )
    body = codec(ListOffsetsRequest, LIST_VERSION).encode(request)
    return lambda: asked(broker, bytes(framed(LIST_OFFSETS, LIST_VERSION, body)))


def damaged_segment(home: BenchHome, size: Size) -> Callable[[], object]:
    """A consumer that stands at one flipped byte in a closed segment, and asks on and on."""
    home.first_broker().make_topic(DAMAGED, 1, durability="replicated")
    home.stop()
    [folder] = home.folder.glob(f"data/*/{DAMAGED}-0")
    offset = fill_and_damage(folder, size.segment_bytes)
    home.start(brokers=1)
    broker = home.first_broker()
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=2**20,
        session_epoch=-1,
        topics=[
            FetchTopic(
                topic=DAMAGED,
                partitions=[
                    FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=2**20)
                ],
            )
        ],
    )
    body = codec(FetchRequest, FETCH_VERSION).encode(request)
    frame = bytes(framed(FETCH, FETCH_VERSION, body))

    def consume() -> None:
        until = time.perf_counter() + size.consumer_seconds
        while time.perf_counter() < until:
            asked(broker, frame)
            time.sleep(RETRY_SECONDS)

    return consume


SCENARIOS: Final[dict[str, Callable[[BenchHome, Size], Callable[[], object]]]] = {
    "600 pipelined costly produces": costly_produces,
    "500 batches of 1 MB, recompressed with zstd": recompressed_produces,
    "ListOffsets over 200 batches that lie": lying_batches,
    "a consumer at a damaged segment": damaged_segment,
}


def fill_and_damage(folder: Path, segment_bytes: int) -> int:
    """Fills one segment of a log that nobody has open, and flips a byte near its end.

    Returns the offset of the batch that is damaged by that.
    """
    log = PartitionLog.open(
        str(folder), LogConfig(segment_bytes=segment_bytes), handles=Handles(LocalFiles())
    )
    data, now_ms = memoryview(batch(SMALL_BATCH, timestamp=_now_ms())), _now_ms()
    while len(log.segments) < 2:
        data[:8] = bytes(8)
        log.append(data, 0, now_ms)
    path, count = log.segments[0].file.path, log.segments[0].size // SMALL_BATCH
    log.flush()
    log.close()
    offset = count * 19 // 20
    with open(path, "r+b") as file:
        os.pwrite(file.fileno(), b"\x09", offset * SMALL_BATCH + MAGIC_POSITION)
    return offset


def asked(broker: Target, frame: bytes, *, times: int = 1) -> None:
    """Sends a request so many times at once, and waits for all answers."""
    with socket.create_connection((broker.host, broker.port), ANSWER_SECONDS) as link:
        link.sendall(frame * times)
        with link.makefile("rb") as stream:
            for _ in range(times):
                (length,) = struct.unpack(">i", stream.read(4))
                stream.read(length)


def _produce(topic: str, records: bytes | bytearray) -> bytes:
    data = PartitionProduceData(index=0, records=memoryview(records))
    request = ProduceRequest(
        acks=1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    body = codec(ProduceRequest, PRODUCE_VERSION).encode(request)
    return bytes(framed(PRODUCE, PRODUCE_VERSION, body))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
