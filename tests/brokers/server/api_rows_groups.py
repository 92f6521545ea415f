"""The rows of FindCoordinator, and of what members of classic groups ask for."""

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorResponse,
)
from brokers.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from brokers.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from brokers.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from brokers.protocol.messages.sync_group import (
    SyncGroupResponse,
)
from tests.brokers.server.api_rows import A_SENTENCE, Row, World
from tests.brokers.server.api_rows_group_steps import (
    A_MEMBER_ID,
    ASSIGNED,
    INSTANCE,
    MEMBER,
    METADATA,
    NOBODY,
    PROTOCOL,
    TYPE,
    beside,
    coordinator_request,
    former_id_of,
    group_of,
    have_coordinator,
    have_joined,
    have_stable,
    have_static,
    id_given_out,
    join_request,
    member_of,
    sync_request,
)

# Versions of JoinGroup: who comes without an id is sent back; no protocol is null and not empty; a
# leader can be told to assign nothing.
_IDS_SINCE, _NULLS_SINCE, _SKIPS_SINCE = 4, 7, 9


# -- FindCoordinator -------------------------------------------------------------------------------


def _found(world: World, version: int) -> FindCoordinatorResponse:
    ready = world.broker.ready
    one = Coordinator(
        key=group_of(world, version),
        node_id=ready.id,
        host=ready.host,
        port=ready.port,
        error_message=None,
    )
    return _at_both_places(one)


def _not_found(world: World, version: int, *, error: ErrorCode) -> FindCoordinatorResponse:
    one = Coordinator(
        key=group_of(world, version),
        node_id=-1,
        port=-1,
        error_code=error,
        error_message=A_SENTENCE,
    )
    return _at_both_places(one)


def _at_both_places(one: Coordinator) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
        coordinators=[one],
    )


# -- members of classic groups ---------------------------------------------------------------------


async def _have_id(world: World, version: int) -> None:
    await have_coordinator(world, version)
    if version >= _IDS_SINCE:
        answer = await world.client.ask(join_request(world, version), version)
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED, answer


def _join_with_id(world: World, version: int) -> JoinGroupRequest:
    member_id = id_given_out(world, version) if version >= _IDS_SINCE else ""
    return join_request(world, version, member_id=member_id)


def _joined(world: World, version: int) -> JoinGroupResponse:
    member_id = member_of(world, version)
    return JoinGroupResponse(
        generation_id=1,
        protocol_type=TYPE,
        protocol_name=PROTOCOL,
        leader=member_id,
        member_id=member_id,
        members=[JoinGroupResponseMember(member_id=member_id, metadata=METADATA)],
    )


async def _have_static(world: World, version: int) -> None:
    await have_static(world, beside(version))


def _come_back(world: World, version: int) -> JoinGroupRequest:
    """The static member has lost its id, and has the same subscription as before."""
    return join_request(world, beside(version), instance_id=INSTANCE)


def _is_back(world: World, version: int) -> JoinGroupResponse:
    """It leads the group and need not assign: it is told so, or is not told that it leads."""
    member_id = member_of(world, beside(version))
    member = JoinGroupResponseMember(
        member_id=member_id, group_instance_id=INSTANCE, metadata=METADATA
    )
    is_told = version >= _SKIPS_SINCE
    return JoinGroupResponse(
        generation_id=1,
        protocol_type=TYPE,
        protocol_name=PROTOCOL,
        leader=member_id if is_told else former_id_of(member_id),
        skip_assignment=is_told,
        member_id=member_id,
        members=[member] if is_told else [],
    )


def _not_joined(version: int, error: ErrorCode, member_id: str) -> JoinGroupResponse:
    protocol = None if version >= _NULLS_SINCE else ""
    return JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=protocol)


def _heartbeat(world: World, version: int, *, generation: int = 1) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=group_of(world, version),
        generation_id=generation,
        member_id=member_of(world, version),
    )


def _heartbeat_of_other(world: World, version: int) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=group_of(world, beside(version)),
        generation_id=1,
        member_id=MEMBER,
        group_instance_id=INSTANCE,
    )


def _leave(world: World, version: int, *, member_id: str = "") -> LeaveGroupRequest:
    member_id = member_id or member_of(world, version)
    if version < 3:
        return LeaveGroupRequest(group_id=group_of(world, version), member_id=member_id)
    return LeaveGroupRequest(
        group_id=group_of(world, version), members=[MemberIdentity(member_id=member_id)]
    )


def _put_out(world: World, version: int) -> LeaveGroupRequest:
    """As an administrator asks, who knows only the name of the instance."""
    return LeaveGroupRequest(
        group_id=group_of(world, beside(version)),
        members=[MemberIdentity(member_id="", group_instance_id=INSTANCE)],
    )


def _left(
    version: int, *, member_id: str = A_MEMBER_ID, error: ErrorCode = ErrorCode.NONE
) -> LeaveGroupResponse:
    member = MemberResponse(member_id=member_id, group_instance_id=None, error_code=error)
    # The one member's error is the answer's, until there can be more than one.
    return LeaveGroupResponse(error_code=error if version < 3 else 0, members=[member])


_NO_MEMBER = ErrorCode.UNKNOWN_MEMBER_ID
_NO_TRANSACTIONS = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

ROWS = (
    Row(key=10, versions=(0, 6), request=coordinator_request, answer=_found),
    # The oldest version has no field that could be refused.
    Row(key=10, versions=(0, 0), request=coordinator_request, closes=True),
    Row(
        key=10,
        versions=(1, 6),
        request=lambda world, version: coordinator_request(world, version, kind=1),
        answer=lambda world, version: _not_found(world, version, error=_NO_TRANSACTIONS),
        error=_NO_TRANSACTIONS,
    ),
    Row(
        key=10,
        versions=(1, 6),
        request=lambda world, version: coordinator_request(world, version, kind=2),
        answer=lambda world, version: _not_found(world, version, error=ErrorCode.INVALID_REQUEST),
        error=ErrorCode.INVALID_REQUEST,
    ),
    Row(key=11, versions=(0, 9), before=_have_id, request=_join_with_id, answer=_joined),
    Row(
        key=11,
        versions=(0, 9),
        request=lambda world, version: join_request(
            world, version, member_id=MEMBER, session_timeout_ms=1
        ),
        answer=lambda _world, version: _not_joined(
            version, ErrorCode.INVALID_SESSION_TIMEOUT, MEMBER
        ),
        error=ErrorCode.INVALID_SESSION_TIMEOUT,
    ),
    Row(key=11, versions=(5, 9), before=_have_static, request=_come_back, answer=_is_back),
    Row(
        key=11,
        versions=(4, 9),
        request=join_request,
        answer=lambda _world, version: _not_joined(
            version, ErrorCode.MEMBER_ID_REQUIRED, A_MEMBER_ID
        ),
        error=ErrorCode.MEMBER_ID_REQUIRED,
    ),
    Row(
        key=12,
        versions=(0, 4),
        before=have_stable,
        request=_heartbeat,
        answer=lambda _world, _version: HeartbeatResponse(),
    ),
    Row(
        key=12,
        versions=(0, 4),
        request=lambda world, version: _heartbeat(world, version, generation=2),
        answer=lambda _world, _version: HeartbeatResponse(error_code=ErrorCode.ILLEGAL_GENERATION),
        error=ErrorCode.ILLEGAL_GENERATION,
    ),
    Row(
        key=12,
        versions=(3, 4),
        before=_have_static,
        request=_heartbeat_of_other,
        answer=lambda _world, _version: HeartbeatResponse(error_code=ErrorCode.FENCED_INSTANCE_ID),
        error=ErrorCode.FENCED_INSTANCE_ID,
    ),
    Row(
        key=13,
        versions=(0, 5),
        before=have_stable,
        request=_leave,
        answer=lambda _world, version: _left(version),
    ),
    Row(
        key=13,
        versions=(0, 5),
        request=lambda world, version: _leave(world, version, member_id=NOBODY),
        answer=lambda _world, version: _left(version, member_id=NOBODY, error=_NO_MEMBER),
        error=_NO_MEMBER,
    ),
    Row(
        key=13,
        versions=(3, 5),
        before=_have_static,
        request=_put_out,
        answer=lambda _world, _version: LeaveGroupResponse(
            members=[MemberResponse(member_id="", group_instance_id=INSTANCE)]
        ),
    ),
    Row(
        key=14,
        versions=(0, 5),
        before=have_joined,
        request=sync_request,
        answer=lambda _world, _version: SyncGroupResponse(
            protocol_type=TYPE, protocol_name=PROTOCOL, assignment=ASSIGNED
        ),
    ),
    Row(
        key=14,
        versions=(0, 5),
        request=lambda world, version: sync_request(world, version, generation=2),
        answer=lambda _world, _version: SyncGroupResponse(error_code=ErrorCode.ILLEGAL_GENERATION),
        error=ErrorCode.ILLEGAL_GENERATION,
    ),
    Row(
        key=14,
        versions=(5, 5),
        request=lambda world, version: sync_request(world, version, protocol_type=None),
        answer=lambda _world, _version: SyncGroupResponse(
            error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        ),
        error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ),
)
