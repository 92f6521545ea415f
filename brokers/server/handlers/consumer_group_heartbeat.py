"""ConsumerGroupHeartbeat: a member of a consumer group joins, stays, leaves, learns what to read.

From version 1 a client makes up the id of its member; in version 0 a newcomer without one gets it
here. A member that has nothing to say and nothing to learn is answered in the same turn.
"""

import base64
import uuid
from typing import Final

from brokers.coordination.groups import modern_operations, modern_request
from brokers.coordination.groups.modern import JOINS
from brokers.protocol.errors import KafkaError
from brokers.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from brokers.protocol.schema import Message
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.handlers.group_answers import submitted, who_of
from brokers.server.served_api import Served

SERVED: Final = Served(key=68)


def handle(context: Context, call: Call, request: ConsumerGroupHeartbeatRequest) -> Message | None:
    try:
        modern_request.check(request, call.version)
    except KafkaError as error:
        return _refused(error)
    # The check lets nobody else through without an id but who leaves for a while, and is refused.
    if not request.member_id and request.member_epoch == JOINS:
        request.member_id = new_member_id()
    operation = modern_operations.heartbeat(request, who_of(call))
    return submitted(context, call, request.group_id, operation, _refused)


def new_member_id() -> str:
    """22 characters, as Kafka's ids of 16 bytes are written."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()


def _refused(error: KafkaError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
