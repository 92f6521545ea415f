"""DescribeGroups: describes classic groups with their members and assignments.

A group that is missing, or is of the consumer protocol, is dead; from version 6 that is an error
with a sentence. The empty id is a group like any other here, since offsets may be committed to it.
"""

from typing import Final

from brokers.coordination.groups import describe
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.handlers.group_descriptions import ALL_GROUP_OPERATIONS, described_each
from brokers.server.served_api import Served

SERVED: Final = Served(key=15)

_MESSAGE_SINCE: Final = 6


async def handle(
    context: Context, call: Call, request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    version = call.version

    def look(group_id: str) -> DescribedGroup:
        return context.groups.look(
            group_id, lambda shard: describe.described(shard, group_id, version)
        )

    def refused(group_id: str, error: KafkaError) -> DescribedGroup:
        message = error.message if version >= _MESSAGE_SINCE else None
        return DescribedGroup(error_code=error.code, error_message=message, group_id=group_id)

    groups = await described_each(context, request.groups, look, refused, describe.size_of)
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = ALL_GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=groups)
