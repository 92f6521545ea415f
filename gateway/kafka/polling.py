"""Reads what a consumer of librdkafka has fetched, whatever assigned its partitions."""

import operator
from typing import Final, cast

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
)

from gateway.kafka.connection import Reach
from gateway.kafka.values import Header, Place, Record, TimestampKind

# The request by which a cluster that seems down may prove that it answers.
PROBE_S: Final = 1.0
TIMESTAMP_KINDS: Final = {
    TIMESTAMP_CREATE_TIME: TimestampKind.CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME: TimestampKind.LOG_APPEND_TIME,
}
# Transient errors: the group rebalances, a topic is not there yet, or a broker is about to return.
PASSING: Final = frozenset(
    {
        KafkaError._NO_OFFSET,  # noqa: SLF001 - a documented constant: nothing to commit yet
        KafkaError._STATE,  # noqa: SLF001 - as above: a partition is not assigned any more
        KafkaError._TRANSPORT,  # noqa: SLF001 - as above
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 - as above; `reach` tells for how long
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - as above
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - as above
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)


def consume(client: Consumer, most: int, wait_s: float) -> list[Message]:
    """Return up to `most` messages; wait for the first one only."""
    # The library waits for as many messages as requested, so request one.
    messages = client.consume(1, wait_s)
    if messages and most > 1:
        messages += client.consume(most - 1, 0)
    return messages


def is_end(error: KafkaError) -> bool:
    """Return whether an error reports the end of a partition."""
    return error.code() == KafkaError._PARTITION_EOF  # noqa: SLF001 - a documented constant


def is_passing(error: KafkaError) -> bool:
    return error.code() in PASSING or error.retriable()


def require_cluster(client: Consumer, reach: Reach, patience_s: float) -> None:
    """Raise KafkaFailure if the cluster is down for so long, after one more request to it.

    Silence alone proves nothing: a reader at the end hears nothing from a broker that is back.
    """
    if reach.down_seconds() < patience_s:
        return
    try:
        client.list_topics(timeout=PROBE_S)
    except KafkaException:
        raise reach.failure() from None
    reach.heard()


def place_of(message: Message) -> Place | None:
    """Return the partition of a message; None for an event of the whole client."""
    topic, partition = message.topic(), message.partition()
    if topic is None or partition is None or partition < 0:
        return None
    return Place(topic=topic, partition=partition)


def record_of(message: Message) -> Record:
    """Return the record of a message without an error."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    kind, timestamp = message.timestamp()
    timestamp_kind = TIMESTAMP_KINDS.get(kind)
    headers = _headers(message)
    return Record(
        topic=topic,
        partition=partition,
        offset=offset,
        key=message.key(),
        value=message.value(),
        headers=headers or (),
        timestamp_ms=timestamp if timestamp_kind else None,
        timestamp_kind=timestamp_kind,
        has_unread_headers=headers is None,
    )


def _headers(message: Message) -> tuple[Header, ...] | None:
    """Return the headers of a message; None if the library fails to decode them.

    Any producer can write a name that is not UTF-8, and one such record must not end the reading.
    The library returns with its error still set. A call through `operator` checks for that, which
    the interpreter's fast path does not, and raises a SystemError.
    """
    try:
        # The stubs declare every form that a caller may send.
        return tuple(cast("list[Header]", operator.call(message.headers) or []))
    except (SystemError, UnicodeDecodeError):
        return None
