"""Encodes the requests of sources and sinks, and decodes the responses.

Pure. Each API has one version here, which Samsa and Kafka since 3.1 support; if a later version has
nothing more to offer, it is the last one without flexible encoding. Unused fields are skipped.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from spark_integration.datasource.wire.errors import WireCorrupt, check
from spark_integration.datasource.wire.primitives import (
    INT32,
    UUID_BYTES,
    Reader,
    array,
    blob,
    compact_array,
    compact_string,
    string,
)

NO_TAGS: Final = b"\0"
NOBODY: Final = -1
# Special timestamps of ListOffsets for the ends of a log.
LATEST: Final = -1
EARLIEST: Final = -2
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    name: str
    key: int
    version: int
    is_flexible: bool = False


PRODUCE: Final = Api(name="Produce", key=0, version=8)
# The first version that fetches by topic id, so that a recreated topic is not read.
FETCH: Final = Api(name="Fetch", key=1, version=13, is_flexible=True)
LIST_OFFSETS: Final = Api(name="ListOffsets", key=2, version=5)
# The first version that returns topic ids usable for lookups.
METADATA: Final = Api(name="Metadata", key=3, version=12, is_flexible=True)
SASL_HANDSHAKE: Final = Api(name="SaslHandshake", key=17, version=1)
API_VERSIONS: Final = Api(name="ApiVersions", key=18, version=0)
CREATE_TOPICS: Final = Api(name="CreateTopics", key=19, version=4)
INIT_PRODUCER_ID: Final = Api(name="InitProducerId", key=22, version=1)
SASL_AUTHENTICATE: Final = Api(name="SaslAuthenticate", key=36, version=1)


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFacts:
    name: str
    error_code: int
    # All zero if the broker returned none.
    topic_id: bytes
    is_internal: bool
    # Partition to broker; -1 while there is no leader.
    leaders: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    brokers: Mapping[int, Address]
    topics: dict[str, TopicFacts]


class Found(NamedTuple):
    """The ListOffsets result of one partition; the offset is -1 if there is no such record."""

    error_code: int
    offset: int


class Aborted(NamedTuple):
    producer_id: int
    first_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The Fetch result of the one requested partition."""

    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    # How long a quota throttles the client; the broker may have withheld records for it.
    throttle_ms: int
    aborted: Sequence[Aborted]
    records: memoryview = field(repr=False)


class Produced(NamedTuple):
    error_code: int
    base_offset: int
    message: str | None


class Producer(NamedTuple):
    """The id and epoch of an idempotent producer."""

    producer_id: int
    epoch: int


def request_head(api: Api, correlation: int, client_id: str) -> bytes:
    head = struct.pack(">hhi", api.key, api.version, correlation) + string(client_id)
    return head + NO_TAGS if api.is_flexible else head


def read_api_versions(reader: Reader) -> dict[int, tuple[int, int]]:
    """Return the lowest and highest version of each API that a broker serves."""
    check(reader.int16(), "ApiVersions")
    rows = reader.array(lambda: (reader.int16(), reader.int16(), reader.int16()))
    return {key: (lowest, highest) for key, lowest, highest in rows}


def metadata_request(topics: Sequence[str] | None, *, may_create: bool = False) -> bytes:
    """Request the metadata of some topics, or with None of all."""
    rows = None
    if topics is not None:
        rows = [bytes(UUID_BYTES) + compact_string(name) + NO_TAGS for name in topics]
    return compact_array(rows) + bytes([may_create, False]) + NO_TAGS


def read_metadata(reader: Reader) -> Metadata:
    reader.int32()  # throttle time
    brokers = dict(reader.compact_array(lambda: read_broker(reader)))
    reader.compact_string()  # cluster id
    reader.int32()  # controller
    topics = reader.compact_array(lambda: read_topic(reader))
    return Metadata(brokers=brokers, topics={topic.name: topic for topic in topics})


def read_broker(reader: Reader) -> tuple[int, Address]:
    node = reader.int32()
    address = Address(reader.compact_string() or "", reader.int32())
    reader.compact_string()  # rack
    reader.skip_tags()
    return node, address


def read_topic(reader: Reader) -> TopicFacts:
    error_code = reader.int16()
    name = reader.compact_string() or ""
    topic_id = reader.uuid()
    is_internal = reader.boolean()
    leaders = dict(reader.compact_array(lambda: read_leader(reader)))
    reader.int32()  # authorized operations
    reader.skip_tags()
    return TopicFacts(
        name=name,
        error_code=error_code,
        topic_id=topic_id,
        is_internal=is_internal,
        leaders=leaders,
    )


def read_leader(reader: Reader) -> tuple[int, int]:
    reader.int16()  # an error of the partition leaves it without a leader
    row = reader.int32(), reader.int32()
    reader.int32()  # leader epoch
    for _replicas in ("all", "in sync", "offline"):
        reader.compact_array(reader.int32)
    reader.skip_tags()
    return row


def list_offsets_request(wanted: Mapping[TopicPartition, int], *, isolation: int) -> bytes:
    """Request offsets by time, in ms, or by end of the log."""
    topics: dict[str, list[bytes]] = {}
    for (topic, partition), timestamp in wanted.items():
        topics.setdefault(topic, []).append(struct.pack(">iiq", partition, -1, timestamp))
    rows = [string(topic) + array(partitions) for topic, partitions in topics.items()]
    return struct.pack(">ib", NOBODY, isolation) + array(rows)


def read_list_offsets(reader: Reader) -> dict[TopicPartition, Found]:
    found = {}

    def read_partition(topic: str) -> None:
        partition, error_code = reader.int32(), reader.int16()
        reader.int64()  # the record's time
        found[TopicPartition(topic, partition)] = Found(error_code, reader.int64())
        reader.int32()  # leader epoch

    def read_rows() -> None:
        topic = reader.string() or ""
        reader.array(lambda: read_partition(topic))

    reader.int32()  # throttle time
    reader.array(read_rows)
    return found


def fetch_request(
    topic_id: bytes,
    partition: int,
    offset: int,
    *,
    max_bytes: int,
    max_wait_ms: int,
    isolation: int,
) -> bytes:
    """Fetch one partition from an offset, without a session."""
    wanted = struct.pack(">iiqiqi", partition, -1, offset, -1, -1, max_bytes) + NO_TAGS
    return b"".join(
        [
            struct.pack(">iiiibii", NOBODY, max_wait_ms, 1, max_bytes, isolation, 0, -1),
            compact_array([topic_id + compact_array([wanted]) + NO_TAGS]),
            compact_array([]),  # partitions that leave a session
            compact_string(""),  # rack
            NO_TAGS,
        ]
    )


def read_fetch(reader: Reader) -> Fetched:
    throttle_ms = reader.int32()
    check(reader.int16(), "Fetch")
    reader.int32()  # session
    found: list[Fetched] = []

    def read_rows() -> None:
        reader.uuid()
        found.extend(reader.compact_array(lambda: read_fetched(reader, throttle_ms)))
        reader.skip_tags()

    reader.compact_array(read_rows)
    if len(found) != 1:
        raise WireCorrupt(f"a fetch of one partition returned {len(found)}")
    return found[0]


def read_fetched(reader: Reader, throttle_ms: int) -> Fetched:
    reader.int32()  # partition
    error_code = reader.int16()
    high_watermark, last_stable, log_start = reader.int64(), reader.int64(), reader.int64()
    aborted = reader.compact_array(lambda: read_aborted(reader))
    reader.int32()  # preferred replica, unused without a rack
    records = reader.compact_blob()
    reader.skip_tags()
    return Fetched(
        error_code=error_code,
        high_watermark=high_watermark,
        last_stable_offset=last_stable,
        log_start_offset=log_start,
        throttle_ms=throttle_ms,
        aborted=aborted,
        records=memoryview(b"") if records is None else records,
    )


def read_aborted(reader: Reader) -> Aborted:
    row = Aborted(reader.int64(), reader.int64())
    reader.skip_tags()
    return row


def produce_request(
    batches: Mapping[TopicPartition, bytes], *, timeout_ms: int, acks: int = -1
) -> bytes:
    """Produce one record batch for each partition; all need the same leader."""
    topics: dict[str, list[bytes]] = {}
    for (topic, partition), batch in batches.items():
        topics.setdefault(topic, []).append(INT32.pack(partition) + blob(batch))
    rows = [string(topic) + array(partitions) for topic, partitions in topics.items()]
    return string(None) + struct.pack(">hi", acks, timeout_ms) + array(rows)


def read_produce(reader: Reader) -> dict[TopicPartition, Produced]:
    produced = {}

    def read_partition(topic: str) -> None:
        partition, error_code, base_offset = reader.int32(), reader.int16(), reader.int64()
        reader.int64()  # append time
        reader.int64()  # log start offset
        reader.array(lambda: (reader.int32(), reader.string()))
        said = Produced(error_code, base_offset, reader.string())
        produced[TopicPartition(topic, partition)] = said

    def read_rows() -> None:
        topic = reader.string() or ""
        reader.array(lambda: read_partition(topic))

    reader.array(read_rows)
    return produced


def init_producer_id_request() -> bytes:
    """Request a new idempotent producer id, without transactions."""
    return string(None) + INT32.pack(0)


def read_init_producer_id(reader: Reader) -> Producer:
    reader.int32()  # throttle time
    check(reader.int16(), "InitProducerId")
    return Producer(reader.int64(), reader.int16())


def create_topic_request(
    name: str, *, partitions: int, configs: Mapping[str, str], timeout_ms: int
) -> bytes:
    """Create a topic with the cluster's default replication factor."""
    settings = [string(key) + string(value) for key, value in configs.items()]
    topic = string(name) + struct.pack(">ih", partitions, -1) + array([]) + array(settings)
    return array([topic]) + INT32.pack(timeout_ms) + b"\0"


def read_create_topics(reader: Reader) -> list[tuple[str, int, str | None]]:
    """Return the error code and message of each topic, by name."""
    reader.int32()  # throttle time
    return reader.array(lambda: (reader.string() or "", reader.int16(), reader.string()))


def sasl_handshake_request(mechanism: str) -> bytes:
    return string(mechanism)


def read_sasl_handshake(reader: Reader) -> tuple[int, list[str | None]]:
    return reader.int16(), reader.array(reader.string)


def sasl_authenticate_request(token: bytes) -> bytes:
    return blob(token)


def read_sasl_authenticate(reader: Reader) -> tuple[int, str | None, bytes]:
    answer = reader.int16(), reader.string(), bytes(reader.blob() or b"")
    reader.int64()  # lifetime
    return answer
