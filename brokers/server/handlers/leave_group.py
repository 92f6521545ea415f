"""LeaveGroup: removes classic members, or members of either protocol for an administrator.

Before version 3 a request is about one member, and its error is that of the response.
"""

from typing import Final

from brokers.coordination.groups import classic_operations
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from brokers.protocol.schema import Message
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.handlers.group_answers import id_error, part_error, submitted
from brokers.server.served_api import Served

SERVED: Final = Served(key=13)

# No group has more members.
MAX_LEAVING: Final = 10_000
_SEVERAL_SINCE: Final = 3


def handle(context: Context, call: Call, request: LeaveGroupRequest) -> Message | None:
    has_several = call.version >= _SEVERAL_SINCE
    leaving = request.members if has_several else [MemberIdentity(member_id=request.member_id)]
    wrong = id_error(request.group_id) or _excess(leaving)
    if wrong is not None:
        return _refused(wrong)
    operation = classic_operations.leave(request.group_id, leaving)
    turned = None if has_several else _of_one
    return submitted(context, call, request.group_id, operation, _refused, turned)


def _excess(leaving: list[MemberIdentity]) -> KafkaError | None:
    if len(leaving) > MAX_LEAVING:
        return KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{len(leaving)} members in one request, {MAX_LEAVING} are allowed",
        )
    for each in leaving:
        wrong = part_error(each.member_id, each.group_instance_id)
        if wrong is not None:
            return wrong
    return None


def _of_one(answer: Message) -> LeaveGroupResponse:
    assert isinstance(answer, LeaveGroupResponse), f"{answer!r} answers no LeaveGroup"
    error = answer.error_code or (answer.members[0].error_code if answer.members else 0)
    return LeaveGroupResponse(error_code=error)


def _refused(error: KafkaError) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error.code)
