"""InitProducerId: gives an idempotent producer an id that no other has had.

A producer without a transactional id starts anew with every call: what it says of an earlier id
changes nothing, as in Kafka. Transactions are not served yet; who asks for one is answered with the
code that ends a producer, since it would try again for ever after most others.
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

# How long a new block of ids may take; clients wait 30 s or more for their answer.
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
