"""DescribeAcls: reports that there is no access control, which lets consoles go on without it."""

from typing import Final

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.served_api import Served

SERVED: Final = Served(key=29)

# Kafka's words, which consoles show.
NO_AUTHORIZER: Final = "No Authorizer is configured on the broker"
# Rules or filters of one request that are refused one by one; a refusal takes ten times the bytes
# of the smallest. Tools send a few hundred at most.
MAX_REFUSED: Final = 10_000


def handle(_context: Context, _call: Call, _request: DescribeAclsRequest) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
