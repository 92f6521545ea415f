"""Many partitions on one broker: made, all of them led, written and asked after.

Speaks to one broker in frames, since a client of the usual kind would be measured with it. To be
told that a partition exists is not enough here: it is led when the broker answers for its log.
"""

import time
from collections.abc import Sequence
from typing import Final

from bench.blaster import ask
from bench.broker_targets import Target
from bench.processes import Process
from brokers.protocol.codec import codec
from brokers.protocol.messages.api_versions import ApiVersionsRequest
from brokers.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from brokers.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from brokers.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from brokers.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.schema import Message

CREATE_VERSION, OFFSETS_VERSION, PRODUCE_VERSION, METADATA_VERSION = 7, 9, 9, 12
LATEST: Final = -1
# Between two looks whether all is there: this, or ten times what the look took, since a look at
# 5,000 partitions costs the broker some 50 ms that it would spend on them.
LOOK_SECONDS: Final = 0.05
LOOK_SHARE: Final = 10
QUICK_LOOK_SECONDS: Final = 0.005
PATIENCE_SECONDS: Final = 180.0
CREATE_MS: Final = 60_000
# Partitions that one request writes to: a client with that many batches at hand would do the same.
WRITTEN_AT_ONCE: Final = 500


def _asked(target: Target, request: Message, response: type[Message], version: int) -> Message:
    assert request.KEY is not None, "a request has the key of its API"
    body = codec(type(request), version).encode(request)
    return codec(response, version).decode(
        ask((target.host, target.port), request.KEY, version, body)
    )


def create(target: Target, topic: str, partitions: int) -> float:
    """Makes a topic with one request; returns the seconds until the broker leads all of it."""
    started = time.perf_counter()
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)],
        timeout_ms=CREATE_MS,
    )
    answer = _asked(target, request, CreateTopicsResponse, CREATE_VERSION)
    assert isinstance(answer, CreateTopicsResponse)
    (result,) = answer.topics
    assert result.error_code == 0, f"{result.error_code}: {result.error_message}"
    wait_until_led(target, topic, partitions)
    return time.perf_counter() - started


def wait_until_led(target: Target, topic: str, partitions: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        began = time.monotonic()
        led = led_partitions(target, topic, partitions)
        if led == partitions:
            return
        now = time.monotonic()
        if now > deadline:
            raise TimeoutError(f"{led} of {partitions} are led after {PATIENCE_SECONDS} s")
        time.sleep(max(LOOK_SECONDS, LOOK_SHARE * (now - began)))


def led_partitions(target: Target, topic: str, partitions: int) -> int:
    """For how many partitions the broker answers; 0 also while it takes no connections."""
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(partition_index=index, timestamp=LATEST)
                    for index in range(partitions)
                ],
            )
        ],
    )
    try:
        answer = _asked(target, request, ListOffsetsResponse, OFFSETS_VERSION)
    except OSError:
        return 0
    assert isinstance(answer, ListOffsetsResponse)
    return sum(one.error_code == 0 for each in answer.topics for one in each.partitions)


def produce(target: Target, topic: str, indexes: Sequence[int]) -> None:
    """One record to each of these partitions; returns when all are acknowledged."""
    builder = BatchBuilder(producer_id=-1, producer_epoch=-1, base_sequence=-1)
    builder.append(None, b"x" * 100, timestamp=time.time_ns() // 1_000_000)
    records = memoryview(builder.build())
    for start in range(0, len(indexes), WRITTEN_AT_ONCE):
        some = indexes[start : start + WRITTEN_AT_ONCE]
        data = [PartitionProduceData(index=index, records=records) for index in some]
        request = ProduceRequest(
            acks=-1,
            timeout_ms=CREATE_MS,
            topic_data=[TopicProduceData(name=topic, partition_data=data)],
        )
        answer = _asked(target, request, ProduceResponse, PRODUCE_VERSION)
        assert isinstance(answer, ProduceResponse)
        codes = {one.error_code for each in answer.responses for one in each.partition_responses}
        assert codes == {0}, f"produce was answered with {codes}"


def spread(partitions: int, count: int = 16) -> list[int]:
    """Some partitions from the first to the last."""
    return sorted({index * (partitions - 1) // (count - 1) for index in range(count)})


def first_answers(target: Target, since: float) -> tuple[float, float]:
    """Seconds to the first answer at all, and to the first Metadata that names the broker.

    `since` is a moment of `time.perf_counter`; the process may not listen yet.
    """
    assert target.pid is not None, "the broker is a process of this machine"
    versions = codec(ApiVersionsRequest, 0).encode(ApiVersionsRequest())
    deadline = time.monotonic() + PATIENCE_SECONDS
    first = None
    while time.monotonic() < deadline:
        try:
            if first is None:
                ask((target.host, target.port), ApiVersionsRequest.KEY or 18, 0, versions)
                first = time.perf_counter() - since
            if _knows_itself(target):
                return first, time.perf_counter() - since
        except OSError:
            assert Process(target.pid).rss_bytes(), "the broker has ended"
        time.sleep(QUICK_LOOK_SECONDS)
    raise TimeoutError(f"the broker has not answered in {PATIENCE_SECONDS} s")


def _knows_itself(target: Target) -> bool:
    no_topics: list[MetadataRequestTopic] = []
    answer = _asked(target, MetadataRequest(topics=no_topics), MetadataResponse, METADATA_VERSION)
    assert isinstance(answer, MetadataResponse)
    return any(broker.port == target.port for broker in answer.brokers)
