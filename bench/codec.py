"""Messages encoded and decoded by our codec, by kio and by kafka-python, side by side.

Seven messages stand for the traffic of a broker: the two big answers, the two hot requests, and the
small requests of groups. All three libraries work on the same values and must agree on the bytes
before anything is timed. Each takes its own best way: ours the compiled function that dispatch
keeps, kafka-python the methods of prepared message objects as its client calls them, kio its cached
readers and writers. Everybody decodes from a memoryview, which is what a broker's frame is.
"""

import io
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pkgutil import resolve_name
from typing import Any

import kio.index
import kio.serial

from bench.measure import ROUND_SECONDS, Table, best_cpu, geometric_mean
from brokers.protocol.codec import codec
from brokers.protocol.messages import fetch, join_group, metadata, offset_commit, produce
from brokers.protocol.schema import Message

SEED = 20_260
RECORD_BYTES = 16 * 1024

# What our codec may cost beside kafka-python: a bound on every message, and one on the mean
# (geometric for encoding, where the gains differ by an order of magnitude; plain for decoding).
ENCODE_LIMIT = 0.6
ENCODE_MEAN_LIMIT = 0.25
DECODE_LIMIT = 1.3
DECODE_MEAN_LIMIT = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One message with its value, and where in `kafka.protocol` its counterpart stands."""

    name: str
    value: Message
    version: int
    kafka_python: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Microseconds per call of each library, for one message."""

    case: Case
    size: int
    encode: dict[str, float]
    decode: dict[str, float]

    @property
    def encode_ratio(self) -> float:
        return self.encode["ours"] / self.encode["kafka-python"]

    @property
    def decode_ratio(self) -> float:
        return self.decode["ours"] / self.decode["kafka-python"]


def run() -> Iterable[Table]:
    figures = [measure(case) for case in cases()]
    yield table("encode", figures)
    yield table("decode", figures)


def cases() -> list[Case]:
    return [
        Case(
            name="Metadata v12 response 100x3",
            value=metadata_response(),
            version=12,
            kafka_python="metadata:MetadataResponse",
        ),
        Case(
            name="Produce v9 1x16 KiB",
            value=produce_request(partitions=1),
            version=9,
            kafka_python="producer:ProduceRequest",
        ),
        Case(
            name="Produce v9 10x16 KiB",
            value=produce_request(partitions=10),
            version=9,
            kafka_python="producer:ProduceRequest",
        ),
        Case(
            name="Fetch v12 request 10p",
            value=fetch_request(),
            version=12,
            kafka_python="consumer:FetchRequest",
        ),
        Case(
            name="Fetch v12 response 10x16 KiB",
            value=fetch_response(),
            version=12,
            kafka_python="consumer:FetchResponse",
        ),
        Case(
            name="JoinGroup v9 request",
            value=join_group_request(),
            version=9,
            kafka_python="consumer:JoinGroupRequest",
        ),
        Case(
            name="OffsetCommit v8 request 10p",
            value=offset_commit_request(),
            version=8,
            kafka_python="consumer:OffsetCommitRequest",
        ),
    ]


def measure(case: Case, *, rounds: int = 5, round_seconds: float = ROUND_SECONDS) -> Figures:
    """Time both directions, after checking that all three mean the same bytes."""
    ours = codec(type(case.value), case.version)
    wire = b"".join(ours.encode(case.value))
    frame = memoryview(wire)
    kafka_python = resolve_name(f"kafka.protocol.{case.kafka_python}")
    theirs = kafka_python.decode(frame, version=case.version)
    read, write, entity = kio_functions(case.value, case.version, frame)

    assert ours.decode(frame) == case.value
    assert theirs.encode() == wire, f"kafka-python writes {case.name} in other bytes"
    assert write(entity) == wire, f"kio writes {case.name} in other bytes"

    encode = {
        "ours": partial(ours.encode, case.value),
        "kio": partial(write, entity),
        "kafka-python": theirs.encode,
    }
    decode = {
        "ours": partial(ours.decode, frame),
        "kio": partial(read, frame, 0),
        "kafka-python": partial(kafka_python.decode, frame, version=case.version),
    }
    encoded, decoded = (
        best_cpu(contenders, rounds=rounds, round_seconds=round_seconds)
        for contenders in (encode, decode)
    )
    return Figures(
        case=case,
        size=len(wire),
        encode={name: spent * 1e6 for name, spent in encoded.items()},
        decode={name: spent * 1e6 for name, spent in decoded.items()},
    )


def kio_functions(
    value: Message, version: int, frame: memoryview
) -> tuple[Callable[[memoryview, int], Any], Callable[[object], bytes], object]:
    """Return kio's reader, its writer into bytes, and its object for these bytes."""
    is_request = type(value).__name__.endswith("Request")
    assert value.KEY is not None
    load = kio.index.load_request_schema if is_request else kio.index.load_response_schema
    entity_type: Any = load(value.KEY, version)
    read = kio.serial.entity_reader(entity_type)
    write_into = kio.serial.entity_writer(entity_type)

    def write(entity: object) -> bytes:
        buffer = io.BytesIO()
        write_into(buffer, entity)
        return buffer.getvalue()

    return read, write, read(frame, 0)[0]


def table(direction: str, figures: list[Figures]) -> Table:
    rows: list[tuple[str | int | float | None, ...]] = []
    ratios = []
    for figure in figures:
        times = figure.encode if direction == "encode" else figure.decode
        ratios.append(times["ours"] / times["kafka-python"])
        rows.append(
            (
                figure.case.name,
                figure.size,
                times["ours"],
                times["kio"],
                times["kafka-python"],
                times["ours"] / times["kio"],
                ratios[-1],
            )
        )
    rows.append(("geometric mean", None, None, None, None, None, geometric_mean(ratios)))
    rows.append(("mean", None, None, None, None, None, sum(ratios) / len(ratios)))
    note = (
        f"target: each ≤ {ENCODE_LIMIT} of kafka-python, geometric mean ≤ {ENCODE_MEAN_LIMIT}"
        if direction == "encode"
        else f"target: each ≤ {DECODE_LIMIT} of kafka-python, mean ≤ {DECODE_MEAN_LIMIT}"
    )
    return Table(
        title=f"{direction}: CPU per message, best of 5 alternated rounds",
        columns=(
            "message",
            "bytes",
            "ours µs",
            "kio µs",
            "kafka-python µs",
            "ours/kio",
            "ours/kafka-python",
        ),
        rows=rows,
        notes=(note,),
    )


def metadata_response() -> metadata.MetadataResponse:
    brokers = [
        metadata.MetadataResponseBroker(
            node_id=node, host=f"broker-{node}.samsa.example", port=9092 + node, rack=f"rack-{node}"
        )
        for node in range(3)
    ]
    topics = [
        metadata.MetadataResponseTopic(
            name=f"orders.by-customer.region-{number:03}",
            topic_id=number.to_bytes(16, "big"),
            partitions=[
                metadata.MetadataResponsePartition(
                    partition_index=index,
                    leader_id=index,
                    leader_epoch=7,
                    replica_nodes=[0, 1, 2],
                    isr_nodes=[0, 1, 2],
                )
                for index in range(3)
            ],
        )
        for number in range(1, 101)
    ]
    return metadata.MetadataResponse(
        brokers=brokers, cluster_id="yLsWfQnJTUKZ0mAXsCi-Eg", controller_id=1, topics=topics
    )


def produce_request(*, partitions: int) -> produce.ProduceRequest:
    data = [
        produce.PartitionProduceData(index=index, records=batch()) for index in range(partitions)
    ]
    return produce.ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[produce.TopicProduceData(name="orders.by-customer", partition_data=data)],
    )


def batch() -> memoryview:
    """Stands for a record batch: the codec looks at its length only."""
    return memoryview(random.Random(SEED).randbytes(RECORD_BYTES))


def fetch_request() -> fetch.FetchRequest:
    partitions = [
        fetch.FetchPartition(
            partition=index,
            current_leader_epoch=7,
            fetch_offset=1_234_567 + index,
            partition_max_bytes=1 << 20,
        )
        for index in range(10)
    ]
    return fetch.FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=50 << 20,
        session_id=77,
        session_epoch=3,
        topics=[fetch.FetchTopic(topic="orders.by-customer", partitions=partitions)],
        rack_id="rack-1",
    )


def fetch_response() -> fetch.FetchResponse:
    partitions = [
        fetch.PartitionData(
            partition_index=index,
            high_watermark=1_234_567,
            last_stable_offset=1_234_567,
            log_start_offset=0,
            aborted_transactions=None,
            records=batch(),
        )
        for index in range(10)
    ]
    return fetch.FetchResponse(
        session_id=77,
        responses=[fetch.FetchableTopicResponse(topic="orders.by-customer", partitions=partitions)],
    )


def join_group_request() -> join_group.JoinGroupRequest:
    protocols = [
        join_group.JoinGroupRequestProtocol(
            name=name, metadata=b"\0\3\0\0\0\1\0\6orders" + bytes(20)
        )
        for name in ("range", "cooperative-sticky")
    ]
    return join_group.JoinGroupRequest(
        group_id="billing-service",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        member_id="consumer-billing-1-8d6f2a36-5a6b-4f0e-9d0a-6d7a8f0f9a11",
        protocol_type="consumer",
        protocols=protocols,
        reason="need to re-join with the given member-id",
    )


def offset_commit_request() -> offset_commit.OffsetCommitRequest:
    partitions = [
        offset_commit.OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=1_234_567 + index,
            committed_leader_epoch=7,
            committed_metadata="",
        )
        for index in range(10)
    ]
    return offset_commit.OffsetCommitRequest(
        group_id="billing-service",
        generation_id_or_member_epoch=12,
        member_id="consumer-billing-1-8d6f2a36-5a6b-4f0e-9d0a-6d7a8f0f9a11",
        topics=[offset_commit.OffsetCommitRequestTopic(name="orders", partitions=partitions)],
    )
