"""Submits the parts of an admin request to the store, and translates the outcomes.

Independent of single APIs. A handler turns each part of its request into an action, or into a
refusal if the request contradicts itself; the store decides all actions in one call, each
independently. The rules of what is allowed are in `cluster.decisions`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from brokers.cluster.proposals import Action, Outcome
from brokers.protocol.errors import ErrorCode
from brokers.server.call import Call
from brokers.server.context import Context

# Errors between a broker and the store that no admin client knows: the client should look for
# the controller again and repeat the request there.
_ASK_AGAIN: Final = frozenset(
    {ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED, ErrorCode.NOT_CONTROLLER}
)
# Kafka executes no more per request; a client that needs more sends more requests.
MAX_ACTIONS: Final = 10_000
_SHOWN: Final = 100
NOT_JOINED: Final = Outcome(
    error=ErrorCode.NOT_CONTROLLER,
    message="this broker has not joined the cluster yet; ask again in a moment",
)


def refusal(error: ErrorCode, message: str) -> Outcome:
    return Outcome(error=error, message=message)


def shown(name: str) -> str:
    """Return a name from a request for a message, cut to what its sender needs to recognize it."""
    return repr(name[:_SHOWN])


def repeated(names: Iterable[str | bytes]) -> frozenset[str | bytes]:
    """Return the names that occur more than once."""
    return frozenset(name for name, count in Counter(names).items() if count > 1)


async def outcomes_of(
    context: Context,
    call: Call,
    parts: Sequence[Action | Outcome],
    *,
    timeout_ms: int,
    validate_only: bool = False,
) -> list[Outcome]:
    """Return the outcome of each part, in order; parts that are outcomes already stay unchanged."""
    actions = [part for part in parts if not isinstance(part, Outcome)]
    if not actions:
        decided: list[Outcome] = []
    elif len(actions) > MAX_ACTIONS:
        decided = [_too_many(len(actions))] * len(actions)
    elif context.is_serving:
        decided = await context.propose(
            call, actions, timeout_ms=timeout_ms, validate_only=validate_only
        )
    else:
        decided = [NOT_JOINED] * len(actions)
    following = iter(decided)
    return [part if isinstance(part, Outcome) else next(following) for part in parts]


def _too_many(count: int) -> Outcome:
    return refusal(
        ErrorCode.POLICY_VIOLATION,
        f"{count} changes in one request, {MAX_ACTIONS} are allowed: send several requests",
    )


def error_fields(outcome: Outcome) -> tuple[ErrorCode, str | None]:
    """Return the error code of a part of a response and its readable message, null on success."""
    if outcome.error in _ASK_AGAIN:
        return ErrorCode.NOT_CONTROLLER, outcome.message or NOT_JOINED.message
    return outcome.error, None if outcome.error is ErrorCode.NONE else outcome.message or None
