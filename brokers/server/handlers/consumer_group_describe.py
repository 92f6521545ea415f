"""ConsumerGroupDescribe: describes consumer protocol groups, with current and target assignments.

A classic group is reported as not found, with a sentence that says why; clients then send
DescribeGroups. From version 1 the response has the protocol of each member.
"""

from typing import Final

from brokers.coordination.groups import describe
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.handlers.group_answers import id_error
from brokers.server.handlers.group_descriptions import ALL_GROUP_OPERATIONS, described_each
from brokers.server.served_api import Served

SERVED: Final = Served(key=69)


async def handle(
    context: Context, _call: Call, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    def look(group_id: str) -> DescribedGroup:
        wrong = id_error(group_id)
        if wrong is not None:
            raise wrong
        return context.groups.look(
            group_id, lambda shard: describe.described_consumer(shard, group_id)
        )

    groups = await described_each(
        context, request.group_ids, look, _refused, describe.size_of_consumer
    )
    if request.include_authorized_operations:
        for group in groups:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = ALL_GROUP_OPERATIONS
    return ConsumerGroupDescribeResponse(groups=groups)


def _refused(group_id: str, error: KafkaError) -> DescribedGroup:
    return DescribedGroup(error_code=error.code, error_message=error.message, group_id=group_id)
