"""Members of both protocols in one group, for tests: requests by keyword, asked of a shard."""

from collections.abc import Collection, Iterable, Mapping
from struct import pack
from typing import Any

from brokers.cluster.image import ClusterImage
from brokers.coordination.groups import classic_operations, modern_operations, offset_operations
from brokers.coordination.groups.classic import ClassicGroup
from brokers.coordination.groups.modern import ConsumerGroup, ConsumerMember
from brokers.coordination.groups.offset_operations import Committing
from brokers.coordination.groups.settings import GroupSettings
from brokers.coordination.groups.subscription import decode_assignment, encode_assignment
from brokers.coordination.groups.values import Committed, Who
from brokers.coordination.shard import PARKED
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from brokers.protocol.messages.heartbeat import HeartbeatRequest
from brokers.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from brokers.protocol.messages.leave_group import MemberIdentity
from brokers.protocol.messages.offset_commit import OffsetCommitResponse
from brokers.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.builders import clusters
from tests.builders.classic_groups import CODES
from tests.fakes.group_desk import GroupDesk

WHO = Who("client", "/127.0.0.1")
GROUP = "readers"
SESSION_MS = 10_000
REBALANCE_MS = 30_000
DONE = OffsetCommitResponse()


def cluster(**topics: int) -> ClusterImage:
    return clusters.image([clusters.topic(name, partitions=n) for name, n in topics.items()])


def desk_of(image: ClusterImage, **settings: Any) -> GroupDesk:
    numbers = {"initial_rebalance_delay_ms": 0, "assignment_interval_ms": 0, **settings}
    return GroupDesk(image, GroupSettings(**numbers))


def subscription(
    topics: Iterable[str],
    owned: Mapping[str, Iterable[int]] | None = None,
    *,
    version: int = 3,
    generation: int = -1,
    rack_id: str | None = None,
) -> bytes:
    """What a consumer writes into its join."""
    names = sorted(topics)
    parts = [pack(">hi", version, len(names)), *map(_text, names), pack(">i", -1)]
    if version >= 1:
        kept = {name: sorted(numbers) for name, numbers in (owned or {}).items()}
        parts.append(pack(">i", len(kept)))
        for name, numbers in kept.items():
            parts += [_text(name), pack(f">i{len(numbers)}i", len(numbers), *numbers)]
    if version >= 2:
        parts.append(pack(">i", generation))
    if version >= 3:
        parts.append(pack(">h", -1) if rack_id is None else _text(rack_id))
    return b"".join(parts)


def _text(text: str) -> bytes:
    return pack(">h", len(text)) + text.encode()


def join_request(
    member_id: str = "",
    *,
    instance_id: str | None = None,
    protocols: Mapping[str, bytes] | None = None,
    protocol_type: str = "consumer",
    session_ms: int = SESSION_MS,
    rebalance_ms: int = REBALANCE_MS,
) -> JoinGroupRequest:
    ways = {"range": subscription(["orders"])} if protocols is None else protocols
    return JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type=protocol_type,
        protocols=[JoinGroupRequestProtocol(name=n, metadata=m) for n, m in ways.items()],
    )


def join(desk: GroupDesk, member_id: str = "", *, version: int = 9, **wishes: Any) -> Any:
    request = join_request(member_id, **wishes)
    return desk.ask(classic_operations.join(request, version, WHO))


def sync(
    desk: GroupDesk,
    member_id: str,
    generation: int,
    assignments: Mapping[str, bytes] | None = None,
    *,
    instance_id: str | None = None,
    protocol_type: str | None = "consumer",
    protocol_name: str | None = "range",
) -> Any:
    request = SyncGroupRequest(
        group_id=GROUP,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type=protocol_type,
        protocol_name=protocol_name,
        assignments=[
            SyncGroupRequestAssignment(member_id=known, assignment=data)
            for known, data in (assignments or {}).items()
        ],
    )
    return desk.ask(classic_operations.sync(request))


def heartbeat(
    desk: GroupDesk, member_id: str, generation: int, *, instance_id: str | None = None
) -> ErrorCode:
    request = HeartbeatRequest(
        group_id=GROUP,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=instance_id,
    )
    return code(desk.ask(classic_operations.heartbeat(request)))


def leave(desk: GroupDesk, *who: tuple[str, str | None]) -> list[ErrorCode]:
    identities = [MemberIdentity(member_id=m, group_instance_id=i) for m, i in who]
    answer = desk.ask(classic_operations.leave(GROUP, identities))
    return [code(member) for member in answer.members]


def beat(
    desk: GroupDesk,
    member_id: str,
    epoch: int,
    *,
    owned: Mapping[bytes, Collection[int]] | None = None,
    **said: Any,
) -> Any:
    """A heartbeat of the consumer protocol."""
    if owned is not None:
        said["topic_partitions"] = [
            TopicPartitions(topic_id=topic, partitions=sorted(numbers))
            for topic, numbers in owned.items()
        ]
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_id=member_id, member_epoch=epoch, **said
    )
    return desk.ask(modern_operations.heartbeat(request, WHO))


def enter(desk: GroupDesk, member_id: str, *names: str, **said: Any) -> Any:
    """A member of the consumer protocol joins."""
    return beat(
        desk,
        member_id,
        0,
        owned={},
        subscribed_topic_names=list(names or ("orders",)),
        rebalance_timeout_ms=REBALANCE_MS,
        **said,
    )


def commit(
    desk: GroupDesk,
    member_id: str,
    generation: int,
    *places: tuple[str, int],
    version: int = 9,
    offset: int = 7,
) -> ErrorCode:
    now_ms = desk.clock.now_ms()
    committing = Committing(
        group_id=GROUP,
        generation=generation,
        member_id=member_id,
        instance_id=None,
        version=version,
        committed={place: Committed(offset, 1, "", now_ms) for place in places},
        topic_ids={name: desk.image.topics[name].id for name, _index in places},
        answer=DONE,
    )
    answer = desk.ask(offset_operations.commit(committing))
    return ErrorCode.NONE if answer is DONE else code(answer)


def settle(
    desk: GroupDesk,
    shares: Mapping[str, Mapping[str, Iterable[int]]],
    *,
    instances: Mapping[str, str] | None = None,
    names: Iterable[str] = ("orders",),
) -> dict[str, str]:
    """A stable classic group; by the name of each member in `shares`, its id."""
    static = instances or {}
    ways = {"range": subscription(names)}
    ids: dict[str, str] = {}
    for name in shares:
        instance_id = static.get(name)
        if instance_id is None:
            ids[name] = join(desk, protocols=ways).member_id
    for name in shares:
        instance_id = static.get(name)
        answer = join(desk, ids.get(name, ""), protocols=ways, instance_id=instance_id)
        assert answer is PARKED
        if instance_id is not None:
            ids[name] = classic_group(desk).static_ids[instance_id]
    desk.pass_time(0)
    group = classic_group(desk)
    assignments = {
        ids[name]: encode_assignment({t: frozenset(n) for t, n in share.items()}, 3)
        for name, share in shares.items()
    }
    for name in sorted(shares, key=lambda known: ids[known] == group.leader):
        leads = ids[name] == group.leader
        sync(
            desk,
            ids[name],
            group.generation,
            assignments if leads else None,
            instance_id=static.get(name),
        )
    assert not desk.parked
    return ids


def classic_group(desk: GroupDesk) -> ClassicGroup:
    group = desk.shard.group(GROUP)
    assert isinstance(group, ClassicGroup), f"{group} is not a classic group"
    return group


def modern_group(desk: GroupDesk) -> ConsumerGroup:
    group = desk.shard.group(GROUP)
    assert isinstance(group, ConsumerGroup), f"{group} is not a group of the consumer protocol"
    return group


def member_of(desk: GroupDesk, member_id: str) -> ConsumerMember:
    return modern_group(desk).members[member_id]


def assigned(answer: Any) -> dict[str, list[int]]:
    """What the answer to a sync gives."""
    found = decode_assignment(answer.assignment)
    assert found is not None
    return {topic: sorted(numbers) for topic, numbers in found.partitions.items()}


def code(answer: Any) -> ErrorCode:
    return answer.code if isinstance(answer, KafkaError) else CODES[answer.error_code]
