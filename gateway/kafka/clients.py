"""Makes the clients of librdkafka, with the settings of each use.

The only place where a client gets its address, id, credentials and limits. The connection's
properties win over all of them: they are what its owner has asked for.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from gateway.kafka.connection import Connection, Reach
from gateway.kafka.errors import from_exception

Settings: TypeAlias = Mapping[str, str | float | bool]

# No broker's answer is larger; a larger one comes from something else.
MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024
# The largest record that librdkafka accepts; the broker enforces the topic's own limit.
MAX_RECORD_BYTES: Final = 64 * 1024 * 1024
# Properties that a caller may set at the cost of order, or of duplicates.
RULES_OUT_IDEMPOTENCE: Final = frozenset({"acks", "request.required.acks", "enable.idempotence"})

# --- producers -----------------------------------------------------------------------------------

# One program writes, and waits: a command, a form, the collector.
WRITES: Final[Settings] = {
    # Room for a few of the largest records, and for batches to fill.
    "queue.buffering.max.kbytes": 2 * MAX_RECORD_BYTES // 1024,
    # A new topic is unknown for a moment; after this it counts as missing.
    "topic.metadata.propagation.max.ms": 5_000,
}
# For producers that send records of users without the right to create topics. The property is meant
# for consumers, but the library honours it for producers, too.
CREATES_NO_TOPIC: Final[Settings] = {"allow.auto.create.topics": False}
# A slice of a connector hands over thousands of small records at once, and waits for all.
CONNECT_WRITES: Final[Settings] = {**WRITES, **CREATES_NO_TOPIC}
# Callers of the gateway. Its own limits are lower than the library's, so that they apply first.
GATEWAY_WRITES: Final[Settings] = {
    **CREATES_NO_TOPIC,
    "queue.buffering.max.messages": 200_000,
    "queue.buffering.max.kbytes": 4 * MAX_RECORD_BYTES // 1024,
    # A batch of many small records must not exceed the topic's limit for one large record.
    "batch.size": 256 * 1024,
    # Long enough to fill a batch from one piece of a stream, short beside an HTTP round trip.
    "linger.ms": 2,
    # A topic is looked up before a record is sent; the producer's broker may know it later.
    "topic.metadata.propagation.max.ms": 2_000,
}

# --- consumers -----------------------------------------------------------------------------------

# How soon a full queue is checked again; librdkafka's default second is for slow readers.
FULL_QUEUE: Final[Settings] = {"fetch.queue.backoff.ms": 10}
# Data that is fetched ahead of one that reads many records.
FAR_AHEAD: Final[Settings] = {"queued.max.messages.kbytes": 16 * 1024, **FULL_QUEUE}
# Spans of a topic, each read once.
READS: Final[Settings] = {"check.crcs": True, "fetch.wait.max.ms": 500, **FAR_AHEAD}
# The reader waits for exactly the empty answer that a broker delays.
READS_TO_END: Final[Settings] = {**READS, "fetch.wait.max.ms": 50}
# The partitions of a sink's task.
SINK_READS: Final[Settings] = {
    **FAR_AHEAD,
    "fetch.wait.max.ms": 500,
    # One partition's share.
    "fetch.message.max.bytes": 4 * 1024 * 1024,
    # The answer to a commit arrives within the lease of a silent task.
    "socket.timeout.ms": 8_000,
}
# One record of each partition; the rest of a fetch is discarded.
FIRST_RECORDS: Final[Settings] = {
    # Records of an open transaction count, too.
    "isolation.level": "read_uncommitted",
    "fetch.wait.max.ms": 10,
    "fetch.message.max.bytes": 16 * 1024,
    # With the first record of a partition, its queue is full.
    "queued.min.messages": 1,
    **FULL_QUEUE,
}
# Many partitions for many readers, which come and go: `gateway.kafka.readers`.
LANE_READS: Final[Settings] = {
    "check.crcs": True,
    # How long a broker holds an empty fetch. An added partition waits as long.
    "fetch.wait.max.ms": 100,
    # From one partition at a time. A larger batch arrives whole.
    "fetch.message.max.bytes": 1024 * 1024,
    # The largest answer of a broker, over all partitions.
    "fetch.max.bytes": 4 * 1024 * 1024,
    **FULL_QUEUE,
    # How long a missing topic counts as a new one.
    "topic.metadata.propagation.max.ms": 3_000,
}
# A member of a group that a caller drives.
MEMBER_READS: Final[Settings] = {
    "queued.max.messages.kbytes": 4 * 1024,
    "fetch.message.max.bytes": 1024 * 1024,
    # How long the coordinator, or a leader, may take to answer one request.
    "socket.timeout.ms": 10_000,
}
# A member that is slower than its topics: more would keep it busy with the first of its partitions
# for minutes.
SLOW_MEMBER_READS: Final[Settings] = {
    **MEMBER_READS,
    "queued.max.messages.kbytes": 1024,
    "fetch.message.max.bytes": 16 * 1024,
}


def settings_of(connection: Connection, reach: Reach, *uses: Settings) -> dict[str, Any]:
    """Return the settings of a client for these uses, of which the later ones win."""
    settings: dict[str, Any] = {
        "bootstrap.servers": connection.bootstrap,
        "client.id": connection.client_id,
        "receive.message.max.bytes": MAX_ANSWER_BYTES,
        # Its log goes to stderr; the callback gets what matters.
        "log_level": 0,
        "error_cb": reach.note,
    }
    for use in (*uses, connection.properties):
        settings |= use
    return settings


def make_admin(connection: Connection, reach: Reach) -> AdminClient:
    try:
        return AdminClient(settings_of(connection, reach))
    except (KafkaException, ValueError, TypeError) as error:
        raise from_exception(error, connection.bootstrap) from error


def make_producer(
    connection: Connection, reach: Reach, *uses: Settings, delivery_s: float
) -> Producer:
    """Return a producer, idempotent unless the connection's properties say otherwise."""
    common: Settings = {
        "enable.idempotence": not RULES_OUT_IDEMPOTENCE & set(connection.properties),
        "message.max.bytes": MAX_RECORD_BYTES,
        # Java's client sends equal keys to the same partition.
        "partitioner": "murmur2_random",
        "message.timeout.ms": int(delivery_s * 1000),
    }
    try:
        return Producer(settings_of(connection, reach, common, *uses))
    except (KafkaException, ValueError, TypeError) as error:
        raise from_exception(error, connection.bootstrap) from error


def make_consumer(
    connection: Connection, reach: Reach, *uses: Settings, group: str = ""
) -> Consumer:
    """Return a consumer that commits only on request, and fails at an offset that is gone.

    The library requires a group for each; without one, nothing is ever stored under its name.
    """
    common: Settings = {
        "group.id": group or connection.client_id,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
    }
    try:
        return Consumer(settings_of(connection, reach, common, *uses))
    except (KafkaException, ValueError, TypeError) as error:
        value = f"group {group}" if group else connection.bootstrap
        raise from_exception(error, value) from error
