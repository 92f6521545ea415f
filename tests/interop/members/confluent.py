"""A member of a group with confluent-kafka, of either protocol."""

from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.interop.members.journal import POLL_RECORDS, POLL_SECONDS, Job, Journal, Orders, Pace


class Member:
    def __init__(self, job: Job) -> None:
        self._job = job
        self._journal = Journal()
        # The new protocol has its session timeout from the broker.
        session = {"session.timeout.ms": job.session_ms} if job.protocol == "classic" else {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": job.bootstrap,
                "group.id": job.group,
                "group.protocol": job.protocol,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "log_level": 3,
                **session,
                **job.settings,
            }
        )

    def run(self, orders: Orders) -> None:
        self._consumer.subscribe(
            [self._job.topic],
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_lost,
        )
        pace = Pace(self._job.per_second)
        while not orders.is_over:
            pace.spend(self._take_some())
            self._commit(self._journal.tell_read())
            orders.wait(pace.left())
        self._journal.closing()
        self._consumer.close()

    def _take_some(self) -> int:
        """Read one by one: a rebalance in between must find what was read before it."""
        for taken in range(POLL_RECORDS):
            message = self._consumer.poll(0 if taken else POLL_SECONDS)
            if message is None:
                return taken
            if (error := message.error()) is not None:
                # Those that the client gets over by itself; others it raises.
                assert error.retriable() or not error.fatal(), str(error)
                return taken
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self._journal.note(partition, offset)
        return POLL_RECORDS

    def _commit(self, offsets: dict[int, int]) -> None:
        if not offsets:
            return
        places = [TopicPartition(self._job.topic, *each) for each in offsets.items()]
        try:
            self._consumer.commit(offsets=places, asynchronous=False)
        except KafkaException:
            # The group moved on meanwhile: somebody reads these records again.
            return
        self._journal.committed(offsets)

    def _on_assign(self, _consumer: Any, places: list[TopicPartition]) -> None:
        self._journal.assigned(place.partition for place in places)

    def _on_revoke(self, _consumer: Any, places: list[TopicPartition]) -> None:
        read = self._journal.tell_read()
        self._journal.revoked(place.partition for place in places)
        self._commit(read)

    def _on_lost(self, _consumer: Any, places: list[TopicPartition]) -> None:
        self._journal.tell_read()
        self._journal.lost(place.partition for place in places)


if __name__ == "__main__":
    told = Orders()
    Member(told.job).run(told)
