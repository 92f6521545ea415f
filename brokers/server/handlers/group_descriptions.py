"""Provides the shared code of the two APIs that describe groups, one lookup each, within limits.

Not a handler of an API. A lookup reads the committed state at its moment, so a response about
several groups mixes several moments; between them the loop goes on.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.server.context import Context
from brokers.slices import Slices

T = TypeVar("T")

# Groups of one request; an administrator's tool requests the groups of one page.
MAX_GROUPS: Final = 1_000
# The approximate limit of a response: one group always fits, a thousand large ones need several
# requests.
MAX_ANSWER_BYTES: Final = 64 << 20
# All operations on a group: read, delete and describe it, and its configs.
ALL_GROUP_OPERATIONS: Final = sum(1 << operation for operation in (3, 6, 8, 10, 11))


async def described_each(
    context: Context,
    group_ids: Sequence[str],
    look: Callable[[str], T],
    refused: Callable[[str, KafkaError], T],
    size_of: Callable[[T], int],
) -> list[T]:
    """Return one description for each id, in order; `refused` converts an error of `look`."""
    wrong = excess(len(group_ids))
    slices = Slices(context.clock)
    found: list[T] = []
    size = 0
    for group_id in group_ids:
        try:
            if wrong is not None:
                raise wrong
            if size > MAX_ANSWER_BYTES:
                raise _too_large()
            description = look(group_id)
            size += size_of(description)
        except KafkaError as error:
            description = refused(group_id, error)
        found.append(description)
        await slices.breathe()
    return found


def excess(count: int) -> KafkaError | None:
    """Return the error of a request with too many groups."""
    if count <= MAX_GROUPS:
        return None
    return KafkaError(
        ErrorCode.INVALID_REQUEST,
        f"the request is about {count} groups, {MAX_GROUPS} are allowed at once",
    )


def _too_large() -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_REQUEST,
        f"the groups before this one take {MAX_ANSWER_BYTES} bytes, which is all that fits in an "
        "answer: ask for fewer at once",
    )
