"""What happens to a shard at a desk, each in one call: an offset is safe, a member comes."""

from typing import Any

from brokers.coordination.groups import modern_operations
from brokers.coordination.groups.offset_operations import delete_group
from brokers.coordination.groups.records import OffsetKey, committed_record, tombstone
from brokers.coordination.groups.settings import GroupSettings
from brokers.coordination.groups.values import NO_TOPIC_ID, Committed, Who
from brokers.coordination.shard import Outcome
from brokers.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from brokers.protocol.messages.delete_groups import DeleteGroupsResponse
from tests.builders import clusters
from tests.fakes.group_desk import GroupDesk

WHO = Who("client", "/127.0.0.1")


def desk(**topics: int) -> GroupDesk:
    """A desk with topics of so many partitions, where nothing waits for its time."""
    image = clusters.image([clusters.topic(name, partitions=n) for name, n in topics.items()])
    settings = GroupSettings(initial_rebalance_delay_ms=0, assignment_interval_ms=0)
    return GroupDesk(image, settings)


def committed(
    at: GroupDesk,
    group: str,
    topic: str = "orders",
    index: int = 0,
    *,
    offset: int = 7,
    topic_id: bytes = NO_TOPIC_ID,
) -> None:
    """The offset is safe, whoever committed it."""
    value = Committed(offset, 1, "", at.clock.now_ms(), topic_id=topic_id)
    at.take(Outcome(records=(committed_record(group, topic, index, value),)))


def forgotten(at: GroupDesk, group: str, topic: str = "orders", index: int = 0) -> None:
    at.take(Outcome(records=(tombstone(OffsetKey(group, topic, index)),)))


def heartbeat(at: GroupDesk, group: str, member_id: str, epoch: int = 0, **said: Any) -> Any:
    """The answer to a member of the consumer protocol, who joins in epoch 0 and leaves in -1."""
    joins: dict[str, Any] = {"subscribed_topic_names": ["orders"], "topic_partitions": []}
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=60_000,
        **(joins if epoch == 0 else {}),
        **said,
    )
    return at.ask(modern_operations.heartbeat(request, WHO))


def deleted(at: GroupDesk, group: str) -> Any:
    return at.ask(delete_group(group, DeleteGroupsResponse()))
