"""DescribeUserScramCredentials: reports that no user has credentials.

Listeners require no passwords in this release, so there are none to describe.
"""

from collections import Counter
from typing import Final

from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.served_api import Served

SERVED: Final = Served(key=50)

# Users that one request may name: each is answered with a sentence.
MAX_USERS: Final = 10_000


def handle(
    _context: Context, _call: Call, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    count = len(request.users or ())
    if count > MAX_USERS:
        return DescribeUserScramCredentialsResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            error_message=f"the request names {count} users, {MAX_USERS} are allowed",
        )
    asked = Counter(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(
        results=[_result(name, times) for name, times in asked.items()]
    )


def _result(name: str, times: int) -> DescribeUserScramCredentialsResult:
    if times > 1:
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=ErrorCode.DUPLICATE_RESOURCE,
            error_message=f"user {name!r} is named {times} times in one request; name it once",
        )
    return DescribeUserScramCredentialsResult(
        user=name,
        error_code=ErrorCode.RESOURCE_NOT_FOUND,
        error_message=f"user {name!r} has no SCRAM credentials",
    )
