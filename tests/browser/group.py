"""A group of the newcomer's topic, as a program outside of the browser is one."""

from typing import Final

from confluent_kafka import Consumer, Producer

# A group of one member is formed within three seconds; CI has other tests beside it.
PATIENCE_S: Final = 60.0


def produce(bootstrap: str, topic: str, count: int) -> None:
    """Write so many small records."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        producer.produce(topic, value=f"record {number}".encode(), key=f"key {number}".encode())
    assert producer.flush(PATIENCE_S) == 0, "records could not be written"


def consume(bootstrap: str, topic: str, group: str, count: int) -> None:
    """Read so many records as a member of the group, commit, and leave."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    try:
        read = 0
        while read < count:
            messages = consumer.consume(count - read, timeout=PATIENCE_S)
            assert messages, f"{read} of {count} records came"
            for message in messages:
                assert message.error() is None, message.error()
            read += len(messages)
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
