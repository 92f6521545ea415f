"""confluent-kafka as a test needs it: what was acknowledged at which offset, and all that is there.

Records leave as our own reader's tuples, so that what a client wrote or read can be compared with
what lies in a log.
"""

from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from brokers.protocol.records.reader import Record

SECONDS = 30
# A broker that goes away during a test is no news, and the client would tell it all over.
QUIET = {"log_level": 2}
# Batches of several records, whatever the machine is busy with.
LINGER_MS = 20

Headers = tuple[tuple[bytes, bytes | None], ...]


def create_topic(client: AdminClient, topic: str, partitions: int, config: dict[str, str]) -> None:
    """Create a topic with one replica of each partition."""
    for created in client.create_topics([NewTopic(topic, partitions, 1, config=config)]).values():
        created.result(SECONDS)


class Scribe:
    """Writes to one topic with one producer after the other, and notes what was acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._told: defaultdict[int, list[Record]] = defaultdict(list)

    def producer(self, **settings: str | int | bool) -> Producer:
        """Make an idempotent producer; `settings` are its properties, with `_` for `.`."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        return Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,
                "linger.ms": LINGER_MS,
                **QUIET,
                **named,
            }
        )

    def write(
        self,
        producer: Producer,
        partition: int,
        contents: Iterable[tuple[bytes | None, bytes | None, Headers]],
        timestamp: int,
    ) -> None:
        """Write records a millisecond apart and wait until all are acknowledged."""
        for number, (key, value, headers) in enumerate(contents):
            producer.produce(
                self._topic,
                value,
                key,
                partition,
                headers=[(name.decode(), content) for name, content in headers],
                timestamp=timestamp + number,
                on_delivery=partial(self._note, (timestamp + number, key, value, headers)),
            )
            producer.poll(0)
        assert producer.flush(SECONDS) == 0

    def rows(self, partition: int) -> list[Record]:
        """Return the acknowledged records of a partition in the order of their offsets."""
        return sorted(self._told[partition], key=lambda record: record.offset)

    def _note(self, content: Any, error: KafkaError | None, message: Message) -> None:
        assert error is None, str(error)
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        self._told[partition].append(Record(offset, *content))


def read_all(
    bootstrap: str, topic: str, partition: int, *, isolation: str = "read_uncommitted"
) -> list[Record]:
    """Read a partition from its beginning to its end."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "samsa-test",
            "isolation.level": isolation,
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "check.crcs": True,
            "fetch.wait.max.ms": 10,
            **QUIET,
        }
    )
    found: list[Record] = []
    try:
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        while (message := consumer.poll(SECONDS)) is not None:
            error = message.error()
            if error is None:
                found.append(row(message))
                continue
            # The client's own codes have no public names.
            assert error.name() == "_PARTITION_EOF", str(error)
            return found
    finally:
        consumer.close()
    raise TimeoutError(f"{topic}-{partition} did not end within {SECONDS} s")


def offset_for_time(bootstrap: str, topic: str, partition: int, timestamp: int) -> int:
    """Ask the broker for the first record that is not older than a time; -1 for none."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "samsa-test", **QUIET})
    try:
        asked = TopicPartition(topic, partition, timestamp)
        return consumer.offsets_for_times([asked], SECONDS)[0].offset
    finally:
        consumer.close()


def row(message: Message) -> Record:
    offset = message.offset()
    assert offset is not None
    headers: Any = message.headers() or ()
    return Record(
        offset,
        message.timestamp()[1],
        message.key(),
        message.value(),
        tuple((name.encode(), content) for name, content in headers),
    )
