"""The rows of members of consumer groups, and of the APIs that tell of groups or delete them."""

from collections.abc import Iterable
from typing import Any

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages import consumer_group_describe as modern
from brokers.protocol.messages import describe_groups as classic
from brokers.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from brokers.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from brokers.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from tests.brokers.server.api_rows import A_SENTENCE, Placeholder, Row, World, as_of, name_of
from tests.brokers.server.api_rows_group_steps import (
    ALL_OF_A_GROUP,
    AN_OWN_ID,
    ASSIGNED,
    CLIENT_HOST,
    CLIENT_ID,
    FIRST_EPOCH,
    INTERVAL_MS,
    MEMBER,
    METADATA,
    NOBODY,
    PROTOCOL,
    TYPE,
    beat_request,
    beside,
    group_of,
    have_committed,
    have_consumer,
    have_coordinator,
    have_stable,
    have_topic,
    member_of,
)


def in_any_order(groups: Iterable[ListedGroup]) -> Any:
    wanted = sorted(groups, key=lambda group: group.group_id)
    return Placeholder(
        f"in any order {wanted}",
        lambda value: sorted(value, key=lambda group: group.group_id) == wanted,
    )


# -- members of consumer groups --------------------------------------------------------------------


def _next_beat(world: World, version: int, *, group_id: str = "") -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id or group_of(world, version), member_id=MEMBER, member_epoch=FIRST_EPOCH
    )


async def _have_topic_and_coordinator(world: World, version: int) -> None:
    await have_coordinator(world, version)
    await have_topic(world, version)


def _told(world: World, version: int) -> ConsumerGroupHeartbeatResponse:
    topic_id = world.topic(name_of(world, version)).id
    return ConsumerGroupHeartbeatResponse(
        member_id=AN_OWN_ID if version < 1 else MEMBER,
        member_epoch=FIRST_EPOCH,
        heartbeat_interval_ms=INTERVAL_MS,
        assignment=Assignment(
            topic_partitions=[TopicPartitions(topic_id=topic_id, partitions=[0])]
        ),
    )


def _not_told(error: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error, error_message=A_SENTENCE)


# -- what is told of groups ------------------------------------------------------------------------


def _describe(world: World, version: int, *, group_id: str = "") -> classic.DescribeGroupsRequest:
    return classic.DescribeGroupsRequest(
        groups=[group_id or group_of(world, version)],
        include_authorized_operations=version >= 3,
    )


def _described(world: World, version: int) -> classic.DescribeGroupsResponse:
    member = classic.DescribedGroupMember(
        member_id=member_of(world, version),
        client_id=CLIENT_ID,
        client_host=CLIENT_HOST,
        member_metadata=METADATA,
        member_assignment=ASSIGNED,
    )
    group = classic.DescribedGroup(
        group_id=group_of(world, version),
        group_state="Stable",
        protocol_type=TYPE,
        protocol_data=PROTOCOL,
        members=[member],
        authorized_operations=ALL_OF_A_GROUP,
    )
    return classic.DescribeGroupsResponse(groups=[group])


def _dead(_world: World, version: int) -> classic.DescribeGroupsResponse:
    """Before there was a code for it, a group that is not there is one that has died."""
    group = classic.DescribedGroup(group_id=NOBODY, group_state="Dead")
    if version < 6:
        group.authorized_operations = ALL_OF_A_GROUP
    else:
        group.error_code, group.error_message = ErrorCode.GROUP_ID_NOT_FOUND, A_SENTENCE
    return classic.DescribeGroupsResponse(groups=[group])


def _describe_modern(
    world: World, version: int, *, group_id: str = ""
) -> modern.ConsumerGroupDescribeRequest:
    return modern.ConsumerGroupDescribeRequest(
        group_ids=[group_id or group_of(world, version)], include_authorized_operations=True
    )


def _described_modern(world: World, version: int) -> modern.ConsumerGroupDescribeResponse:
    topic = name_of(world, version)
    given = modern.TopicPartitions(topic_id=world.topic(topic).id, topic_name=topic, partitions=[0])
    member = modern.Member(
        member_id=MEMBER,
        member_epoch=FIRST_EPOCH,
        client_id=CLIENT_ID,
        client_host=CLIENT_HOST,
        subscribed_topic_names=[topic],
        subscribed_topic_regex="",
        assignment=modern.Assignment(topic_partitions=[given]),
        target_assignment=modern.Assignment(topic_partitions=[given]),
        member_type=1,
    )
    group = modern.DescribedGroup(
        group_id=group_of(world, version),
        group_state="Stable",
        group_epoch=FIRST_EPOCH,
        assignment_epoch=FIRST_EPOCH,
        assignor_name="uniform",
        members=[member],
        authorized_operations=ALL_OF_A_GROUP,
    )
    return modern.ConsumerGroupDescribeResponse(groups=[group])


def _not_described_modern(_world: World, _version: int) -> modern.ConsumerGroupDescribeResponse:
    group = modern.DescribedGroup(
        group_id=NOBODY, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=A_SENTENCE
    )
    return modern.ConsumerGroupDescribeResponse(groups=[group])


async def _have_two(world: World, version: int) -> None:
    """A stable group, and one that has nothing but an offset."""
    await have_stable(world, version)
    await have_committed(world, beside(version))


def _list(_world: World, version: int) -> ListGroupsRequest:
    return ListGroupsRequest(
        states_filter=["stable"] if version >= 4 else [],
        types_filter=["Classic"] if version >= 5 else [],
    )


def _listed(world: World, version: int) -> ListGroupsResponse:
    """All groups of this version's row and of those before; the newer filters leave some out."""
    groups = [
        ListedGroup(
            group_id=group_of(world, number),
            protocol_type=TYPE,
            group_state="Stable",
            group_type="classic",
        )
        for number in range(version + 1)
    ]
    if version < 4:
        groups += [
            ListedGroup(group_id=group_of(world, beside(number))) for number in range(version + 1)
        ]
    told = in_any_order(as_of(group, version) for group in groups)  # type: ignore[misc]
    return ListGroupsResponse(groups=told)


def _delete(world: World, version: int, *, group_id: str = "") -> DeleteGroupsRequest:
    return DeleteGroupsRequest(groups_names=[group_id or group_of(world, version)])


def _deleted(group_id: str, error: ErrorCode = ErrorCode.NONE) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=[DeletableGroupResult(group_id=group_id, error_code=error)])


_NO_GROUP = ErrorCode.GROUP_ID_NOT_FOUND

ROWS = (
    Row(key=15, versions=(0, 6), before=have_stable, request=_describe, answer=_described),
    Row(
        key=15,
        versions=(0, 5),
        request=lambda world, version: _describe(world, version, group_id=NOBODY),
        answer=_dead,
    ),
    # Before version 6 no group is refused: see the row above.
    Row(key=15, versions=(0, 5), request=_describe, closes=True),
    Row(
        key=15,
        versions=(6, 6),
        request=lambda world, version: _describe(world, version, group_id=NOBODY),
        answer=_dead,
        error=_NO_GROUP,
    ),
    Row(key=16, versions=(0, 5), before=_have_two, request=_list, answer=_listed),
    # A filter that nothing passes is no error, and there is nothing else to ask for.
    Row(key=16, versions=(0, 5), request=_list, closes=True),
    Row(
        key=42,
        versions=(0, 2),
        before=have_committed,
        request=_delete,
        answer=lambda world, version: _deleted(group_of(world, version)),
    ),
    Row(
        key=42,
        versions=(0, 2),
        request=lambda world, version: _delete(world, version, group_id=NOBODY),
        answer=lambda _world, _version: _deleted(NOBODY, _NO_GROUP),
        error=_NO_GROUP,
    ),
    Row(
        key=42,
        versions=(0, 2),
        before=have_stable,
        request=_delete,
        answer=lambda world, version: _deleted(group_of(world, version), ErrorCode.NON_EMPTY_GROUP),
        error=ErrorCode.NON_EMPTY_GROUP,
    ),
    Row(
        key=68,
        versions=(0, 1),
        before=_have_topic_and_coordinator,
        request=lambda world, version: beat_request(
            world, version, member_id="" if version < 1 else MEMBER
        ),
        answer=_told,
    ),
    Row(
        key=68,
        versions=(1, 1),
        request=_next_beat,
        answer=lambda _world, _version: ConsumerGroupHeartbeatResponse(
            member_id=MEMBER, member_epoch=FIRST_EPOCH, heartbeat_interval_ms=INTERVAL_MS
        ),
    ),
    Row(
        key=68,
        versions=(0, 1),
        request=lambda world, version: _next_beat(world, version, group_id=NOBODY),
        answer=lambda _world, _version: _not_told(_NO_GROUP),
        error=_NO_GROUP,
    ),
    Row(
        key=68,
        versions=(0, 1),
        request=lambda world, version: beat_request(world, version, assignor="luck"),
        answer=lambda _world, _version: _not_told(ErrorCode.UNSUPPORTED_ASSIGNOR),
        error=ErrorCode.UNSUPPORTED_ASSIGNOR,
    ),
    Row(
        key=68,
        versions=(1, 1),
        request=lambda world, version: beat_request(world, version, member_id=""),
        answer=lambda _world, _version: _not_told(ErrorCode.INVALID_REQUEST),
        error=ErrorCode.INVALID_REQUEST,
    ),
    Row(
        key=69,
        versions=(0, 1),
        before=have_consumer,
        request=_describe_modern,
        answer=_described_modern,
    ),
    Row(
        key=69,
        versions=(0, 1),
        request=lambda world, version: _describe_modern(world, version, group_id=NOBODY),
        answer=_not_described_modern,
        error=_NO_GROUP,
    ),
)
