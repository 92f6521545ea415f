"""FindCoordinator: names the broker that coordinates a group, up to 1,000 of them at once.

The first lookup of a group's coordinator creates the internal topic. Before version 4 a request has
one key and its answer is at the top level. Transactions and share groups are not served yet:
lookups for the former fail with a code that ends a producer, for the latter as an invalid request.
"""

from typing import Final

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.served_api import Served

SERVED: Final = Served(key=10, waits=True)

# Tools look up all groups that they know at once.
MAX_KEYS: Final = 1_000
GROUP, TRANSACTION, SHARE = 0, 1, 2
_MANY_SINCE: Final = 4  # the first version with several keys
_NOBODY: Final = -1


async def handle(
    context: Context, call: Call, request: FindCoordinatorRequest
) -> FindCoordinatorResponse:
    keys = request.coordinator_keys if call.version >= _MANY_SINCE else [request.key]
    refused = _refused(request.key_type, len(keys))
    if refused is None:
        try:
            await context.groups.ensure_topic(call)
        except KafkaError as error:
            refused = error
    found = [_found(context, key, refused) for key in keys[:MAX_KEYS]]
    if call.version >= _MANY_SINCE:
        return FindCoordinatorResponse(coordinators=found)
    (one,) = found
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


def _refused(kind: int, count: int) -> KafkaError | None:
    """Return the error of the request as a whole."""
    if kind == TRANSACTION:
        return KafkaError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "transactions are not served by this release",
        )
    if kind == SHARE:
        return KafkaError(ErrorCode.INVALID_REQUEST, "share groups are not served by this release")
    if kind != GROUP:
        return KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"key type {kind} is unknown; 0 is a group, 1 a transactional id, 2 a share partition",
        )
    if count > MAX_KEYS:
        return KafkaError(
            ErrorCode.INVALID_REQUEST, f"{count} keys are asked for at once, {MAX_KEYS} are allowed"
        )
    return None


def _found(context: Context, key: str, refused: KafkaError | None) -> Coordinator:
    try:
        if refused is not None:
            raise refused
        broker = context.groups.node_of(key)
    except KafkaError as error:
        return Coordinator(
            key=key,
            node_id=_NOBODY,
            host="",
            port=_NOBODY,
            error_code=error.code,
            error_message=error.message,
        )
    return Coordinator(
        key=key, node_id=broker.id, host=broker.host, port=broker.port, error_message=None
    )
