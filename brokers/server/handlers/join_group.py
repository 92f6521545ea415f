"""JoinGroup: adds a classic member to a group, and answers once all members have joined.

A group of the consumer protocol answers at once. From version 4 on a new member is sent back for
its id first. The group decides on a join; this module only refuses requests that are invalid in any
group.
"""

from typing import Final

from brokers.coordination.groups import classic_operations
from brokers.coordination.groups.classic import join_refused
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from brokers.protocol.schema import Message
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.handlers.group_answers import id_error, part_error, submitted, who_of
from brokers.server.served_api import Served

SERVED: Final = Served(key=11)

_MAY_NAME_NONE: Final = 7


def handle(context: Context, call: Call, request: JoinGroupRequest) -> Message | None:
    version = call.version

    def refused(error: KafkaError) -> JoinGroupResponse:
        return _as_told(join_refused(error.code, request.member_id), version)

    wrong = id_error(request.group_id) or part_error(request.member_id, request.group_instance_id)
    if wrong is None:
        wrong = _session_error(context, request.session_timeout_ms)
    if wrong is not None:
        return refused(wrong)
    operation = classic_operations.join(request, version, who_of(call))
    return submitted(
        context,
        call,
        request.group_id,
        operation,
        refused,
        lambda answer: _as_told(answer, version),
    )


def _as_told(answer: Message, version: int) -> JoinGroupResponse:
    """Convert a missing protocol, which older clients read as an empty name."""
    assert isinstance(answer, JoinGroupResponse), f"{answer!r} answers no JoinGroup"
    if answer.error_code and version >= _MAY_NAME_NONE:
        answer.protocol_name = None
    return answer


def _session_error(context: Context, session_ms: int) -> KafkaError | None:
    settings = context.groups.settings
    least, most = settings.min_session_timeout_ms, settings.max_session_timeout_ms
    if least <= session_ms <= most:
        return None
    return KafkaError(
        ErrorCode.INVALID_SESSION_TIMEOUT,
        f"the session timeout is {session_ms} ms; it must be between {least} and {most}",
    )
