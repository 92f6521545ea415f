"""DeleteAcls: answers every filter with an error, since there is no access control."""

from typing import Final

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.handlers.describe_acls import MAX_REFUSED, NO_AUTHORIZER
from brokers.server.served_api import Served

SERVED: Final = Served(key=31)


def handle(_context: Context, call: Call, request: DeleteAclsRequest) -> DeleteAclsResponse | None:
    count = len(request.filters)
    if count > MAX_REFUSED:
        call.disconnect(f"{count} filters in one request, {MAX_REFUSED} are allowed")
        return None
    refused = DeleteAclsFilterResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER
    )
    return DeleteAclsResponse(filter_results=[refused] * count)
