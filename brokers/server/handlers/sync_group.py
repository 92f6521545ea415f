"""SyncGroup: returns the assignment of the leader, or of the coordinator, once it is safe."""

from typing import Final

from brokers.coordination.groups import classic_operations
from brokers.coordination.groups.classic import sync_refused
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from brokers.protocol.schema import Message
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.handlers.group_answers import id_error, part_error, submitted
from brokers.server.served_api import Served

SERVED: Final = Served(key=14)

# From this version on a member names the protocol by which it syncs.
_NAMES_PROTOCOL: Final = 5


def handle(context: Context, call: Call, request: SyncGroupRequest) -> Message | None:
    wrong = id_error(request.group_id) or part_error(request.member_id, request.group_instance_id)
    if wrong is not None:
        return _refused(wrong)
    is_silent = request.protocol_type is None or request.protocol_name is None
    if call.version >= _NAMES_PROTOCOL and is_silent:
        return sync_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    operation = classic_operations.sync(request)
    return submitted(context, call, request.group_id, operation, _refused)


def _refused(error: KafkaError) -> SyncGroupResponse:
    return sync_refused(error.code)
