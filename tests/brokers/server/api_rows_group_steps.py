"""What the rows of groups ask for alike, and the steps to the state of a group that they need.

Each version has a group of its own, whose only member's id the broker made up: it is looked up in
the coordinator.
"""

import re
from collections.abc import Callable
from typing import Any

from brokers.coordination.groups.classic import ClassicGroup
from brokers.coordination.groups.shard import GroupShard
from brokers.coordination.groups.subscription import encode_assignment
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)
from brokers.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
)
from brokers.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from brokers.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from brokers.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.brokers.server.api_rows import Placeholder, World, name_of
from tests.fakes.listener import until

# What the broker is told for these rows: no group waits for members that never come.
DEFAULTS = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2"}

NOBODY = "nobody"
# READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS and ALTER_CONFIGS.
ALL_OF_A_GROUP = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
CLIENT_ID, CLIENT_HOST = "test", "/127.0.0.1"
TYPE, PROTOCOL = "consumer", "range"
METADATA = b"\0\0\0\0\0\0\0\0\0\0"  # a subscription to nothing
ASSIGNED = encode_assignment({"a": frozenset({0})}, 0)
MEMBER, INSTANCE = "a-member", "an-instance"
INTERVAL_MS = 5_000
FIRST_EPOCH = 2  # with an assignment, of a group of the consumer protocol
COMMITTED, COMMITTED_EPOCH, NOTE = 42, 0, "a note"

_HEX = "[0-9a-f]"
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-4{_HEX}{{3}}-{_HEX}{{4}}-{_HEX}{{12}}"
A_MEMBER_ID: Any = Placeholder(
    "a member's id", lambda value: bool(re.fullmatch(f"{CLIENT_ID}-{_UUID}", value))
)
AN_OWN_ID: Any = Placeholder(
    "an id of the consumer protocol", lambda value: bool(re.fullmatch(r"[\w-]{22}", value))
)


def former_id_of(member_id: str) -> Any:
    """The id that the static member had before it came back as this one."""
    pattern = re.compile(f"{INSTANCE}-{_UUID}")
    return Placeholder(
        f"another id than {member_id}",
        lambda value: value != member_id and bool(pattern.fullmatch(value)),
    )


def coordinator_request(world: World, version: int, *, kind: int = 0) -> FindCoordinatorRequest:
    group_id = group_of(world, version)
    if version < 4:
        return FindCoordinatorRequest(key=group_id, key_type=kind)
    return FindCoordinatorRequest(coordinator_keys=[group_id], key_type=kind)


def join_request(
    world: World,
    version: int,
    *,
    member_id: str = "",
    instance_id: str | None = None,
    session_timeout_ms: int = 30_000,
) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_of(world, version),
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type=TYPE,
        protocols=[JoinGroupRequestProtocol(name=PROTOCOL, metadata=METADATA)],
    )


def sync_request(
    world: World, version: int, *, generation: int = 1, protocol_type: str | None = TYPE
) -> SyncGroupRequest:
    member_id = member_of(world, version)
    return SyncGroupRequest(
        group_id=group_of(world, version),
        generation_id=generation,
        member_id=member_id,
        protocol_type=protocol_type,
        protocol_name=PROTOCOL,
        assignments=[SyncGroupRequestAssignment(member_id=member_id, assignment=ASSIGNED)],
    )


def beat_request(
    world: World,
    version: int,
    *,
    member_id: str = MEMBER,
    assignor: str | None = None,
) -> ConsumerGroupHeartbeatRequest:
    """Joins a group of the consumer protocol and reads one topic."""
    return ConsumerGroupHeartbeatRequest(
        group_id=group_of(world, version),
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[name_of(world, version)],
        server_assignor=assignor,
        topic_partitions=[],
    )


# -- steps -----------------------------------------------------------------------------------------


def group_of(_world: World, version: int) -> str:
    """The group of the rows of a version; each API has a broker of its own."""
    return f"group-{version}"


def looked_up(world: World, group_id: str, fact: Callable[[ClassicGroup], str | None]) -> str:
    """A fact of a classic group that is committed."""

    def query(shard: GroupShard) -> str:
        group = shard.group(group_id)
        assert isinstance(group, ClassicGroup), f"{group_id} is {group}"
        found = fact(group)
        assert found is not None, f"{group} does not have it"
        return found

    return world.broker.context.groups.look(group_id, query)


def beside(version: int) -> int:
    """The number of a second group of a version, and of its topic."""
    return 100 + version


def member_of(world: World, version: int) -> str:
    return looked_up(world, group_of(world, version), lambda group: group.leader)


def id_given_out(world: World, version: int) -> str:
    """The id of the one who was sent back to come again with it."""
    return looked_up(world, group_of(world, version), lambda group: next(iter(group.pending), None))


async def have_coordinator(world: World, version: int) -> None:
    """Returns once the coordinator of the version's group is found and has read its groups."""

    def is_loaded() -> bool:
        try:
            world.broker.context.groups.look(group_of(world, version), lambda _shard: None)
        except KafkaError as error:
            if error.code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                raise
            return False
        return True

    found = await world.client.ask(coordinator_request(world, 4), 4)
    assert [one.error_code for one in found.coordinators] == [ErrorCode.NONE], found
    await until(is_loaded)


async def have_topic(world: World, version: int) -> None:
    if name_of(world, version) not in world.broker.twin.image.topics:
        await world.create(name_of(world, version))


async def have_joined(world: World, version: int) -> None:
    """Makes a group with one member, whose assignment is awaited."""
    await have_coordinator(world, version)
    answer = await world.client.ask(join_request(world, version), 3)
    assert answer.error_code == ErrorCode.NONE, answer


async def have_stable(world: World, version: int) -> None:
    """Makes a group with one member, which has its assignment."""
    await have_joined(world, version)
    answer = await world.client.ask(sync_request(world, version), 3)
    assert answer.error_code == ErrorCode.NONE, answer


async def have_static(world: World, version: int) -> None:
    """Makes a stable group whose one member is static."""
    await have_coordinator(world, version)
    request = join_request(world, version, instance_id=INSTANCE)
    answer = await world.client.ask(request, 5)
    assert answer.error_code == ErrorCode.NONE, answer
    answer = await world.client.ask(sync_request(world, version), 3)
    assert answer.error_code == ErrorCode.NONE, answer


async def have_committed(world: World, version: int) -> None:
    """Makes a group without members, that has an offset of the version's topic."""
    await have_coordinator(world, version)
    await have_topic(world, version)
    part = OffsetCommitRequestPartition(
        partition_index=0,
        committed_offset=COMMITTED,
        committed_leader_epoch=COMMITTED_EPOCH,
        committed_metadata=NOTE,
    )
    topic = OffsetCommitRequestTopic(name=name_of(world, version), partitions=[part])
    request = OffsetCommitRequest(group_id=group_of(world, version), topics=[topic])
    answer = await world.client.ask(request, 7)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE, answer


async def have_consumer(world: World, version: int) -> None:
    """Makes a group of the consumer protocol, with one member that reads the version's topic."""
    await have_coordinator(world, version)
    await have_topic(world, version)
    answer = await world.client.ask(beat_request(world, version), 1)
    assert answer.error_code == ErrorCode.NONE, answer
