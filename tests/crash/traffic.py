"""Producing while a broker dies, with a ledger of what was acknowledged, and the judgement after.

The ledger is kept by the client's own delivery reports, so an acknowledgement counts from the
moment a user could have acted on it.
"""

import struct
import time
from collections import defaultdict
from collections.abc import Iterable

from confluent_kafka import KafkaError, Message, Producer

from tests.interop.clients.records import Row

RECORD_BYTES = 1024
NUMBER = struct.Struct(">q")
FILLING = bytes(RECORD_BYTES - NUMBER.size)
PARTITIONS = (0, 1, 2)
# What is on its way at most: the client stays busy, and a crash meets records.
QUEUED_RECORDS = 20_000
FINISH_SECONDS = 90
SETTINGS = {
    "acks": "all",
    "linger.ms": 5,
    "batch.num.messages": 500,
    # No limit of its own: while the broker is away, more than that may wait.
    "queue.buffering.max.messages": 10 * QUEUED_RECORDS,
    # The broker is back within seconds, and the client shall notice at once.
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 250,
    "retry.backoff.ms": 50,
    "log_level": 0,
}


class Traffic:
    """One producer that numbers its records, and what it was told of them."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        is_idempotent: bool,
        patience_seconds: int = FINISH_SECONDS,
    ) -> None:
        self.is_idempotent = is_idempotent
        self.sent = 0
        self.acknowledged: list[tuple[int, int, int]] = []  # partition, offset, number
        self._topic = topic
        self._errors: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": is_idempotent,
                "message.timeout.ms": 1000 * patience_seconds,
                **SETTINGS,
            }
        )

    @property
    def in_flight(self) -> int:
        return self.sent - len(self.acknowledged) - len(self._errors)

    def write_until_acknowledged(self, total: int) -> float:
        """Write as fast as the broker takes it until so many are acknowledged; return MB/s."""
        started, sent = time.monotonic(), self.sent
        while len(self.acknowledged) < total:
            assert time.monotonic() - started < FINISH_SECONDS, "the broker takes nothing"
            room = QUEUED_RECORDS - self.in_flight
            self.write(min(room, 100))
            self._producer.poll(0 if room > 0 else 0.01)
        written = (self.sent - sent) * RECORD_BYTES
        return written / 1e6 / (time.monotonic() - started)

    def write(self, count: int) -> None:
        """Write so many, whether the broker is there or not."""
        for _ in range(count):
            self._write_one()

    def poll(self) -> None:
        """Take the client's reports."""
        self._producer.poll(0)

    def _write_one(self) -> None:
        self._producer.produce(
            self._topic,
            NUMBER.pack(self.sent) + FILLING,
            partition=PARTITIONS[self.sent % len(PARTITIONS)],
            on_delivery=self._note,
        )
        self.sent += 1

    def _note(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._errors.append(str(error))
            return
        value, partition, offset = message.value(), message.partition(), message.offset()
        assert value is not None
        assert partition is not None
        assert offset is not None
        self.acknowledged.append((partition, offset, *NUMBER.unpack_from(value)))

    def finish(self) -> None:
        """Wait until the broker that came back has acknowledged everything."""
        left = self._producer.flush(FINISH_SECONDS)
        assert (left, self._errors[:3]) == (0, [])


def judge(traffic: Traffic, rows: Iterable[Row]) -> None:
    """Compare what is in the log with the ledger; the messages name the promise that was broken."""
    logs: defaultdict[int, list[int]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row[:2]):
        log = logs[row.partition]
        assert row.offset == len(log), f"offsets are not dense: {row[:2]} follows {len(log) - 1}"
        assert row.value is not None
        log.append(*NUMBER.unpack_from(row.value))
    for partition, offset, number in traffic.acknowledged:
        log = logs[partition]
        found = log[offset] if offset < len(log) else None
        assert found == number, (
            f"lost: record {number} was acknowledged at {partition}-{offset}, where {found} is"
        )
    if traffic.is_idempotent:
        numbers = sorted(number for log in logs.values() for number in log)
        assert numbers == list(range(traffic.sent)), "an idempotent record is there twice, or not"
        assert all(log == sorted(log) for log in logs.values()), "records changed their order"
