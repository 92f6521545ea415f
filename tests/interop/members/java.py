"""A member of a group with Kafka's own Java client, of either protocol, called through py4j.

Its virtual machine is a process beside this one, in the same process group, and ends with it.
"""

from typing import Any

from py4j.java_gateway import CallbackServerParameters
from py4j.protocol import Py4JJavaError

from tests.interop.members.journal import POLL_RECORDS, POLL_SECONDS, Job, Journal, Orders, Pace
from tests.oracles.java import gateway, java_class

CONSUMER = "org.apache.kafka.clients.consumer"
DESERIALIZER = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
HEARTBEATS_PER_SESSION = 6


class Listener:
    """Called by the machine on a thread of ours, while poll or close waits on the other one."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def onPartitionsAssigned(self, assigned: Any) -> None:  # noqa: N802 (Java's names)
        self._journal.assigned(_numbers(assigned))

    def onPartitionsRevoked(self, revoked: Any) -> None:  # noqa: N802
        self._journal.revoked(_numbers(revoked))

    # Java would call revoked for it, if py4j knew an interface's own methods.
    def onPartitionsLost(self, lost: Any) -> None:  # noqa: N802
        self._journal.lost(_numbers(lost))

    class Java:
        implements = (f"{CONSUMER}.ConsumerRebalanceListener",)


def _numbers(places: Any) -> list[int]:
    return [place.partition() for place in places]


class Member:
    def __init__(self, job: Job) -> None:
        self._job = job
        self._journal = Journal()
        self._place = java_class("org.apache.kafka.common.TopicPartition")
        self._offset = java_class(f"{CONSUMER}.OffsetAndMetadata")
        self._wait = java_class("java.time.Duration").ofMillis(int(POLL_SECONDS * 1000))
        # The new protocol has both from the broker.
        session = {
            "session.timeout.ms": str(job.session_ms),
            "heartbeat.interval.ms": str(job.session_ms // HEARTBEATS_PER_SESSION),
        }
        self._consumer = java_class(f"{CONSUMER}.KafkaConsumer")(
            {
                "bootstrap.servers": job.bootstrap,
                "group.id": job.group,
                "group.protocol": job.protocol,
                "key.deserializer": DESERIALIZER,
                "value.deserializer": DESERIALIZER,
                "enable.auto.commit": "false",
                "auto.offset.reset": "earliest",
                "max.poll.records": str(POLL_RECORDS),
                **(session if job.protocol == "classic" else {}),
                **job.settings,
            }
        )

    def run(self, orders: Orders) -> None:
        self._consumer.subscribe([self._job.topic], Listener(self._journal))
        pace = Pace(self._job.per_second)
        while not orders.is_over:
            pace.spend(self._take_some())
            self._commit(self._journal.tell_read())
            orders.wait(pace.left())
        self._journal.closing()
        self._consumer.close()

    def _take_some(self) -> int:
        records = self._consumer.poll(self._wait)
        if not (total := records.count()):
            return 0
        for place in records.partitions():
            # A call for each record would cost more than the record.
            batch = records.records(place)
            count = batch.size()
            first, last = (batch.get(number).offset() for number in (0, count - 1))
            assert last - first == count - 1, f"{count} records from {first} to {last}"
            self._journal.note(place.partition(), first, last)
        return int(total)

    def _commit(self, offsets: dict[int, int]) -> None:
        if not offsets:
            return
        try:
            self._consumer.commitSync(
                {
                    self._place(self._job.topic, place): self._offset(offset)
                    for place, offset in offsets.items()
                }
            )
        except Py4JJavaError:
            # The group moved on meanwhile: somebody reads these records again.
            return
        self._journal.committed(offsets)


def main() -> None:
    orders = Orders()
    opened = gateway()
    # On a free port, which the machine has to be told.
    opened.start_callback_server(
        CallbackServerParameters(port=0, daemonize=True, daemonize_connections=True)
    )
    port = opened.get_callback_server().get_listening_port()
    machine = opened.java_gateway_server
    machine.resetCallbackClient(machine.getCallbackClient().getAddress(), port)
    Member(orders.job).run(orders)
    opened.shutdown_callback_server()


if __name__ == "__main__":
    main()
