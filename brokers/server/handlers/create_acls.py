"""CreateAcls: refuses every rule, since the broker would not enforce it."""

from typing import Final

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.handlers.describe_acls import MAX_REFUSED, NO_AUTHORIZER
from brokers.server.served_api import Served

SERVED: Final = Served(key=30)


def handle(_context: Context, call: Call, request: CreateAclsRequest) -> CreateAclsResponse | None:
    count = len(request.creations)
    if count > MAX_REFUSED:
        call.disconnect(f"{count} rules in one request, {MAX_REFUSED} are allowed")
        return None
    refused = AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
    return CreateAclsResponse(results=[refused] * count)
