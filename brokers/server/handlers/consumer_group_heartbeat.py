"""ConsumerGroupHeartbeat: lets members of a consumer group join, stay, leave and get assignments.

From version 1 a client makes up the id of its member; in version 0 a new member without one gets it
here. A heartbeat without changes on either side is answered in the same turn.
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
    # The check passes only one other request without an id, a temporary leave, which is refused.
    if not request.member_id and request.member_epoch == JOINS:
        request.member_id = new_member_id()
    operation = modern_operations.heartbeat(request, who_of(call))
    return submitted(context, call, request.group_id, operation, _refused)


def new_member_id() -> str:
    """Return 22 characters, in the format of Kafka's ids of 16 bytes."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()


def _refused(error: KafkaError) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
