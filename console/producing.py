"""Writes or reads one record for a waiting request, within limits of number and time.

Must not know pages. A request occupies a thread of the web server while it waits for the brokers,
so both the time and the number of waiting requests are limited.
"""

from typing import Final

from gateway.access.turns import Turns
from gateway.kafka.connection import Connection
from gateway.kafka.producer import TopicWriter
from gateway.kafka.readers.admission import Admission
from gateway.kafka.readers.ranges import KafkaSource
from gateway.kafka.values import Delivered, NewRecord, Record, Span

# Healthy brokers answer within milliseconds, an election takes a few seconds; no user waits for a
# form longer than this.
WRITE_S: Final = 8.0
# For the initial record of the form, which can also be filled in without it.
READ_S: Final = 4.0
CLIENT_ID: Final = "samsa-console"
# Each is a client with threads and connections of its own, for some milliseconds if brokers are
# healthy; if they are not, further requests are refused rather than queued.
TURNS: Final = Turns(places=4, queue=4, wait_s=1.0, what="records are being written or read here")


def write(bootstrap: str, topic: str, record: NewRecord) -> Delivered:
    """Return the position once all in-sync replicas have it. Raises TooBusy and KafkaFailure.

    After a timeout or a connection failure, the record may have been written nevertheless.
    """
    with TURNS.turn():
        delivered: list[Delivered] = []
        producer = TopicWriter(_connection(bootstrap, WRITE_S), topic, on_delivery=delivered.append)
        producer.send(record)
        producer.flush()
    assert delivered, "flushed without a failure"
    return delivered[0]


def record_at(
    admission: Admission, bootstrap: str, topic: str, partition: int, offset: int
) -> Record | None:
    """Return the record of an offset; None if there is none, or none arrived in time."""
    connection = _connection(bootstrap, READ_S)
    deadline = connection.deadline()
    span = Span(partition=partition, start=offset, end=offset + 1)
    source = KafkaSource(admission, connection, topic)
    with TURNS.turn(), source.reading([span]) as records:
        for batch in records.batches():
            if batch:
                return batch[0]
            if deadline.is_over():
                return None
    return None


def _connection(bootstrap: str, timeout_s: float) -> Connection:
    return Connection(bootstrap=bootstrap, timeout_s=timeout_s, client_id=CLIENT_ID)
