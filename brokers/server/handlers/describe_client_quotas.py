"""DescribeClientQuotas: reports that no quota is set, and refuses filters that Kafka refuses."""

from collections.abc import Sequence
from typing import Final

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from brokers.server.call import Call
from brokers.server.context import Context
from brokers.server.served_api import Served

SERVED: Final = Served(key=48)

_EXACT: Final = 0
_ANY: Final = 2  # 1 is the default entity
_IP: Final = "ip"
_TYPES: Final = frozenset({"user", "client-id", _IP})
_SHOWN: Final = 100


def handle(
    _context: Context, _call: Call, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    try:
        _check(request.components)
    except KafkaError as error:
        return DescribeClientQuotasResponse(
            error_code=error.code, error_message=error.message, entries=None
        )
    return DescribeClientQuotasResponse(entries=[])


def _check(components: Sequence[ComponentData]) -> None:
    seen: set[str] = set()
    for component in components:
        kind, match_type = component.entity_type, component.match_type
        if not kind:
            raise _invalid("a filter component has an empty entity type")
        if kind not in _TYPES:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"entity type {kind[:_SHOWN]!r} is not one of {', '.join(sorted(_TYPES))}",
            )
        if kind in seen:
            raise _invalid(f"entity type {kind} appears more than once in the filter")
        if not _EXACT <= match_type <= _ANY:
            raise _invalid(f"match type {match_type} is not 0, 1 or 2")
        if (component.match is not None) != (match_type == _EXACT):
            raise _invalid(
                f"match type {match_type} of {kind} "
                + ("needs a name to match" if match_type == _EXACT else "takes no name to match")
            )
        seen.add(kind)
    if _IP in seen and len(seen) > 1:
        raise _invalid("the entity type ip does not go with user and client-id")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
