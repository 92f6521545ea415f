"""Finds a group's coordinator, and the group's shard where that is this broker.

Knows which partition of the internal topic holds a group and which broker leads it, and has the
topic created when a coordinator is requested for the first time. The shard knows the group itself.
"""

import asyncio
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeVar

from brokers.clock import Clock
from brokers.cluster import broker_configs
from brokers.cluster.config_values import parse
from brokers.cluster.image import Broker, ClusterImage, Topic
from brokers.cluster.placement import MAX_REPLICATION_FACTOR
from brokers.cluster.proposals import CreateTopic
from brokers.coordination.groups.facts import Tally
from brokers.coordination.groups.settings import MAX_ID_BYTES, GroupSettings, MigrationPolicy
from brokers.coordination.groups.shard import GroupShard
from brokers.coordination.groups.values import partition_of
from brokers.coordination.house import Limits
from brokers.coordination.runtime import Runtime, ShardState
from brokers.coordination.shard import Answer, Operation
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.replication.replicas import Replicas, Trouble
from brokers.server.call import Call

if TYPE_CHECKING:
    from brokers.server.context import Context

GROUPS_TOPIC: Final = "__consumer_offsets"
# How long the creation of the topic may take; after that the client is told to retry.
CREATION_WAIT_MS: Final = 3_000
# Groups whose partition is cached: computing it takes a microsecond for every twenty characters.
MAX_PLACES: Final = 4_096
# Longer names have no practical use, and must not fill that cache.
_LONGEST_KEPT: Final = 256

_place = lru_cache(maxsize=MAX_PLACES)(partition_of)

T = TypeVar("T")


class GroupCoordinator:
    """The groups of one broker, and the coordinators of others. Belongs to the event loop."""

    def __init__(
        self,
        context: "Context",
        runtime: Runtime[GroupShard],
        settings: GroupSettings,
        tally: Tally,
    ) -> None:
        self.settings = settings
        self.tally = tally
        self._context = context
        self._runtime = runtime
        self._creating: asyncio.Task[None] | None = None

    def submit(
        self, group_id: str, operation: Operation[GroupShard], done: Callable[[Answer], None]
    ) -> None:
        """Run an operation on a group of this broker; `done` is called once, perhaps at once."""
        try:
            index = self._here(group_id)
        except KafkaError as error:
            done(error)
        else:
            self._runtime.submit(index, operation, done)

    def look(self, group_id: str, query: Callable[[GroupShard], T]) -> T:
        """Query the committed state of a group; KafkaError if it is not here, or not yet."""
        return self._runtime.look(self._here(group_id), query)

    def shards(self) -> Iterator[tuple[int, GroupShard]]:
        """Yield the shards of this broker that are loaded."""
        return self._runtime.active()

    @property
    def parked(self) -> int:
        """The number of members that wait for other members."""
        return self._runtime.parked

    @property
    def is_loading(self) -> bool:
        """Whether some groups of this broker are not loaded yet."""
        return ShardState.LOADING in self._runtime.states().values()

    def node_of(self, group_id: str) -> Broker:
        """Return the broker that coordinates a group."""
        image = self._context.image
        topic = self._topic()
        leader = topic.partitions[_index_in(topic, group_id)].leader
        broker = image.brokers.get(leader)
        if broker is None or broker.is_fenced:
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"broker {leader} leads the group's partition of {GROUPS_TOPIC} and is not running",
            )
        return broker

    async def ensure_topic(self, call: Call) -> None:
        """Create the topic if it is missing; KafkaError if it cannot be created now."""
        if not self._context.is_serving:
            raise _not_available("this broker has not joined the cluster yet")
        if GROUPS_TOPIC in self._context.image.topics:
            return
        if self._creating is None:
            self._creating = self._context.loop.create_task(self._create(call))
            self._creating.add_done_callback(self._created)
        # All waiters share one request; one that is cancelled must not end it for the others.
        await asyncio.shield(self._creating)

    async def _create(self, call: Call) -> None:
        settings = self.settings
        alive = sum(not broker.is_fenced for broker in self._context.image.brokers.values())
        wanted = settings.offsets_replication_factor
        action = CreateTopic(
            name=GROUPS_TOPIC,
            partitions=settings.offsets_partitions,
            replication_factor=max(1, min(wanted, alive, MAX_REPLICATION_FACTOR)),
            configs=(
                ("cleanup.policy", "compact"),
                ("compression.type", "producer"),
                ("segment.bytes", str(settings.offsets_segment_bytes)),
            ),
        )
        (outcome,) = await self._context.propose(call, [action], timeout_ms=CREATION_WAIT_MS)
        if outcome.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise _not_available(
                f"{GROUPS_TOPIC} could not be created: {outcome.error.name} {outcome.message}"
            )

    def _created(self, task: "asyncio.Task[None]") -> None:
        self._creating = None
        if not task.cancelled():
            task.exception()  # Waiters have got it; the next caller tries again.

    def _here(self, group_id: str) -> int:
        """Return the partition of a group that other brokers may have sent a client here for.

        The cluster may know before this broker does that it coordinates the group. The client is
        not redirected then: librdkafka's admin client does not survive that.
        """
        topic = self._context.image.topics.get(GROUPS_TOPIC)
        if topic is None or not self._context.is_serving:
            raise _loading(f"{GROUPS_TOPIC} is not known here yet")
        index = _index_in(topic, group_id)
        if self._runtime.is_active(index):
            return index
        is_mine = topic.partitions[index].leader == self._context.broker_id
        if (GROUPS_TOPIC, index) in self._context.replicas.log_dir.failed:
            raise _not_available(f"the log of {GROUPS_TOPIC}-{index} could not be opened")
        if is_mine and not self._runtime.hosts(index):
            raise _loading(f"{GROUPS_TOPIC}-{index} is not open yet")
        return index

    def _topic(self) -> Topic:
        topic = self._context.image.topics.get(GROUPS_TOPIC)
        if topic is None or not self._context.is_serving:
            raise _not_available(
                f"{GROUPS_TOPIC} does not exist yet: look up the coordinator again"
            )
        return topic


def _index_in(topic: Topic, group_id: str) -> int:
    """Return which of the topic's partitions holds the group."""
    length, count = len(group_id), len(topic.partitions)
    if length <= _LONGEST_KEPT:
        return _place(group_id, count)
    if length > MAX_ID_BYTES:
        raise KafkaError(
            ErrorCode.INVALID_GROUP_ID,
            f"the group id has {length} characters, {MAX_ID_BYTES} bytes are allowed",
        )
    return partition_of(group_id, count)


def group_settings(defaults: Mapping[str, str]) -> GroupSettings:
    """Read the group settings from the broker's configs, which have been checked."""

    def text(key: str) -> str:
        row = broker_configs.ROWS[key]
        return defaults.get(key) or row.default or ""

    def number(key: str) -> int:
        value = parse(broker_configs.ROWS[key].type, text(key))
        assert isinstance(value, int), f"{key} is {value!r}"
        return value

    return GroupSettings.from_numbers(
        number, MigrationPolicy(text("group.consumer.migration.policy"))
    )


def group_runtime(
    settings: GroupSettings,
    *,
    tally: Tally,
    replicas: Replicas,
    clock: Clock,
    loop: asyncio.AbstractEventLoop,
    on_trouble: Trouble,
) -> Runtime[GroupShard]:
    """Create the runtime of the groups of one broker."""

    def made(_index: int, image: ClusterImage) -> GroupShard:
        return GroupShard(image, settings, _new_id, tally=tally)

    return Runtime(
        GROUPS_TOPIC,
        replicas=replicas,
        clock=clock,
        loop=loop,
        make_shard=made,
        on_trouble=on_trouble,
        limits=Limits(commit_timeout_ms=settings.commit_timeout_ms),
    )


def _new_id() -> str:
    return str(uuid.uuid4())


def _loading(message: str) -> KafkaError:
    return KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, message)


def _not_available(message: str) -> KafkaError:
    return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)
