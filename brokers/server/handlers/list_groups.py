"""ListGroups: lists the groups that this broker coordinates, also those that only have offsets.

From version 4 a request may filter by state, from version 5 by type, both in any case. While a
shard is loading its groups are missing: the response reports that, and has the others. A response
ends after MAX_LISTED groups.
"""

from typing import Final

from brokers.coordination.groups import describe
from brokers.coordination.groups.settings import MAX_LISTED
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.served_api import Served
from brokers.slices import Slices

SERVED: Final = Served(key=16)


async def handle(context: Context, _call: Call, request: ListGroupsRequest) -> ListGroupsResponse:
    if not context.is_serving:
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    error = ErrorCode.NONE
    if context.groups.is_loading:
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    filters = describe.Filters.of(request.states_filter, request.types_filter)
    slices = Slices(context.clock)
    found: list[ListedGroup] = []
    for _index, shard in tuple(context.groups.shards()):
        for group in describe.listed(shard):
            if len(found) == MAX_LISTED:
                return ListGroupsResponse(error_code=error, groups=found)
            if filters.let_through(group):
                found.append(group)
            await slices.breathe()
    return ListGroupsResponse(error_code=error, groups=found)
