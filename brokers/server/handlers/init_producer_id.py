"""InitProducerId: returns a producer id that no other idempotent producer has had.

A producer without a transactional id starts over with every call: an earlier id in the request
changes nothing, as in Kafka. Transactions are not served yet; requests for them fail with the code
that ends a producer, since most others would make it retry without end.
"""

from typing import Final

from brokers.cluster.proposals import AllocateProducerIds, Outcome
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.served_api import Served

SERVED = Served(key=22, waits=True)

# The deadline for a new block of ids; clients wait 30 s or more for their response.
ALLOCATION_TIMEOUT_MS: Final = 5_000
_NONE: Final = -1


async def handle(
    context: Context, call: Call, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    try:
        _check(request)

        async def allocate(highest_seen: int) -> Outcome:
            block = AllocateProducerIds(highest_seen=highest_seen)
            outcomes = await context.propose(call, [block], timeout_ms=ALLOCATION_TIMEOUT_MS)
            return outcomes[0]

        producer_id = await context.producer_ids.next(allocate)
    except KafkaError as error:
        return InitProducerIdResponse(error_code=error.code, producer_epoch=_NONE)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _check(request: InitProducerIdRequest) -> None:
    if request.transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
    if request.transactional_id is not None:
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "transactions are not served by this release",
        )
    if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"producer id {request.producer_id} and epoch {request.producer_epoch}: "
            "both are given or none",
        )
