"""Topics of a running home for tests on Spark."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

FIRST_MS = 1_700_000_000_000


def create(bootstrap: str, name: str, *, partitions: int = 1) -> str:
    """Create a topic that keeps its records, whatever times they have."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topic = NewTopic(name, partitions, 1, config={"retention.ms": "-1"})
    admin.create_topics([topic])[name].result()
    return name


def fill(bootstrap: str, topic: str, counts: Mapping[int, int], **settings: Any) -> None:
    """Write so many records to each partition, a millisecond apart."""
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    for partition, count in counts.items():
        for number in range(count):
            producer.produce(
                topic,
                key=None if number % 2 else b"k",
                value=b"%d" % number,
                partition=partition,
                timestamp=FIRST_MS + number,
                headers={"h": b"1"} if number % 3 == 0 else None,
            )
    assert producer.flush(30) == 0
