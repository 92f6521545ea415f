"""Reads the partitions of a sink's task, and commits to its group without being its member.

Offsets are committed as for a group without members, which any client may do. The caller has to
check who may commit.
"""

from collections.abc import Collection, Mapping
from typing import Final

from connectors.sdk.records import TopicPartition
from gateway.kafka.clients import SINK_READS
from gateway.kafka.connection import Connection
from gateway.kafka.consumer import AssignedConsumer, End
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.values import Place, Record

# A slice that waits for a cluster that is down for longer ends, since its worker has other work.
AWAY_S: Final = 5.0


class ClusterInlet:
    """An assigned consumer with the types of the sdk. Not thread-safe. Close it."""

    def __init__(self, connection: Connection, group: str, *, reset: str) -> None:
        # Partitions that were read to their end at some time.
        self._ended: set[TopicPartition] = set()
        # The policy applies to an offset that a partition no longer holds.
        self._consumer = AssignedConsumer(
            connection, SINK_READS, {"auto.offset.reset": reset}, group=group
        )

    def begin(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._consumer.assign(places_of(offsets))

    def seek(self, place: TopicPartition, offset: int) -> None:
        """Continue at another offset; drop what was fetched before."""
        at = place_of(place)
        self._consumer.remove([at])
        self._consumer.add({at: offset})

    def take(self, *, most: int, wait_s: float) -> list[Record]:
        """Return records as they arrive, or none after a wait."""
        events = self._consumer.poll(most=most, wait_s=wait_s)
        if not events:
            self._consumer.require_cluster(AWAY_S)
        failed: KafkaFailure | None = None
        found: list[Record] = []
        for event in events:
            if isinstance(event, Record):
                found.append(event)
            elif isinstance(event, End):
                self._ended.add(partition_of(event.place))
            elif not event.is_passing:
                failed = failed or event.failure
        # Records that came with an error are read again by the next reader.
        if failed is not None:
            raise failed
        return found

    def ended(self) -> Collection[TopicPartition]:
        return set(self._ended)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._consumer.commit(places_of(offsets))

    def close(self) -> None:
        self._consumer.close()


def place_of(partition: TopicPartition) -> Place:
    return Place(topic=partition.topic, partition=partition.partition)


def places_of(offsets: Mapping[TopicPartition, int]) -> dict[Place, int]:
    return {place_of(partition): offset for partition, offset in offsets.items()}


def partition_of(place: Place) -> TopicPartition:
    return TopicPartition(topic=place.topic, partition=place.partition)
