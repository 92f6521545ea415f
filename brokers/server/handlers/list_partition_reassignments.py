"""ListPartitionReassignments: reports that none is running; this release moves no replicas."""

from typing import Final

from brokers.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.served_api import Served

SERVED: Final = Served(key=46)


def handle(
    _context: Context, _call: Call, _request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    # Kafka does not refuse unknown topics either.
    return ListPartitionReassignmentsResponse(error_message=None)
