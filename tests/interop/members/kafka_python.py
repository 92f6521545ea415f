"""A member of a group with kafka-python; with the setting `assigns_twice` it is a broken one."""

from collections.abc import Collection
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from tests.interop.members.broken_assignor import TwiceAssignor
from tests.interop.members.journal import POLL_RECORDS, Job, Journal, Orders, Pace

# Longer than a rebalance that has nobody to wait for. The client forgets what it was assigned where
# the answer comes after a poll has given up and before the next one: it is a member then that reads
# nothing and sends no heartbeat. A poll ends as soon as there are records.
POLL_MS = 3000
# Three in a session, as the client demands.
HEARTBEATS_PER_SESSION = 3


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # (the package has no types)
    """Tells what the client is given and loses; all that was read is committed by then."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        self._journal.assigned(place.partition for place in assigned)

    def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        self._journal.revoked(place.partition for place in revoked)

    def on_partitions_lost(self, lost: Collection[Any]) -> None:
        self._journal.lost(place.partition for place in lost)


class Member:
    def __init__(self, job: Job) -> None:
        assert job.protocol == "classic", f"kafka-python has no protocol {job.protocol!r}"
        settings = dict(job.settings)
        if settings.pop("assigns_twice", False):
            settings["partition_assignment_strategy"] = [TwiceAssignor]
        self._job = job
        self._journal = Journal()
        self._consumer = KafkaConsumer(
            bootstrap_servers=job.bootstrap,
            group_id=job.group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=job.session_ms,
            heartbeat_interval_ms=job.session_ms // HEARTBEATS_PER_SESSION // 2,
            max_poll_records=POLL_RECORDS,
            **settings,
        )

    def run(self, orders: Orders) -> None:
        self._consumer.subscribe([self._job.topic], listener=Listener(self._journal))
        pace = Pace(self._job.per_second)
        while not orders.is_over:
            for batch in self._consumer.poll(POLL_MS).values():
                for message in batch:
                    self._journal.note(message.partition, message.offset)
                pace.spend(len(batch))
            self._commit(self._journal.tell_read())
            orders.wait(pace.left())
        self._journal.closing()
        self._consumer.close(autocommit=False)

    def _commit(self, offsets: dict[int, int]) -> None:
        if not offsets:
            return
        try:
            self._consumer.commit(
                {
                    TopicPartition(self._job.topic, place): OffsetAndMetadata(offset, "", -1)
                    for place, offset in offsets.items()
                }
            )
        except KafkaError:
            # The group moved on meanwhile: somebody reads these records again.
            return
        self._journal.committed(offsets)


if __name__ == "__main__":
    told = Orders()
    Member(told.job).run(told)
