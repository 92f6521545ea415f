"""Heartbeat: keeps a classic member in a group of either protocol, and reports a rebalance.

While its group is loading the member is unknown, and an error would end a valid membership, so the
response reports success, as in Kafka.
"""

from typing import Final

from brokers.coordination.groups import classic_operations
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from brokers.protocol.schema import Message
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.handlers.group_answers import id_error, submitted
from brokers.server.served_api import Served

SERVED: Final = Served(key=12)


def handle(context: Context, call: Call, request: HeartbeatRequest) -> Message | None:
    wrong = id_error(request.group_id)
    if wrong is not None:
        return _refused(wrong)
    operation = classic_operations.heartbeat(request)
    return submitted(context, call, request.group_id, operation, _refused)


def _refused(error: KafkaError) -> HeartbeatResponse:
    is_loading = error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else error.code)
