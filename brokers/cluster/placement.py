"""Assigns brokers to the partitions of a topic.

Pure and stateless: the caller passes the start, so that one-partition topics do not all use the
first broker.
"""

from collections.abc import Collection
from typing import Final

from brokers.protocol.errors import ErrorCode, KafkaError

# Until followers fetch from leaders, a second replica would have no copy of the records.
MAX_REPLICATION_FACTOR: Final = 1


def place(
    brokers: Collection[int], partitions: int, replication_factor: int, *, start: int
) -> tuple[tuple[int, ...], ...]:
    """Return the replicas of each partition, leaders evenly spread over unfenced brokers."""
    check_replication_factor(replication_factor)
    if not brokers:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "no broker is available for the partitions: all are fenced or none has registered; "
            "try again once a broker is running",
        )
    ring = sorted(brokers)
    return tuple((ring[(start + index) % len(ring)],) for index in range(partitions))


def check_replication_factor(replication_factor: int) -> None:
    if replication_factor > MAX_REPLICATION_FACTOR:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor} is not served by this release, which keeps "
            f"one replica of each partition: ask for {MAX_REPLICATION_FACTOR}, or for -1, the "
            "default",
        )
