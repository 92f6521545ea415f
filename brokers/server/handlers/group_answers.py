"""Provides shared code of group handlers: later answers, checks of ids, the client's identity.

Not a handler of an API. An operation on a group is answered in the turn of its request, or once its
records are safe, or when other members have joined; nothing here waits, and nothing is a task.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from brokers.coordination.groups.settings import MAX_ID_BYTES
from brokers.coordination.groups.shard import GroupShard
from brokers.coordination.groups.values import Who
from brokers.coordination.shard import Answer, Operation
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.schema import Message
from brokers.server.call import Call
from brokers.server.context import Context

M = TypeVar("M", bound=Message)

# Characters of a too long name that are repeated to its sender.
_SHOWN: Final = 100


class _Waiting:
    """The answer of one call: kept while its handler runs, sent afterwards."""

    __slots__ = ("_call", "_refused", "_turned", "is_late", "now")

    def __init__(
        self,
        call: Call,
        refused: Callable[[KafkaError], Message],
        turned: Callable[[Message], Message] | None,
    ) -> None:
        self._call = call
        self._refused = refused
        self._turned = turned
        self.now: Message | None = None
        self.is_late = False

    def __call__(self, answer: Answer) -> None:
        if isinstance(answer, KafkaError):
            message = self._refused(answer)
        else:
            message = answer if self._turned is None else self._turned(answer)
        if self.is_late:
            self._call.answer(message)
        else:
            self.now = message


def submitted(
    context: Context,
    call: Call,
    group_id: str,
    operation: Operation[GroupShard],
    refused: Callable[[KafkaError], Message],
    turned: Callable[[Message], Message] | None = None,
) -> Message | None:
    """Return the answer if it is ready in this turn; else send it later by the call.

    `refused` converts an error to a response, and `turned` converts the group's answer.
    """
    waiting = _Waiting(call, refused, turned)
    context.groups.submit(group_id, operation, waiting)
    waiting.is_late = True
    return waiting.now


class Gathered:
    """Collects the answers of several operations; calls `done` once with all of them in order."""

    __slots__ = ("_answers", "_done", "_missing")

    def __init__(self, count: int, done: Callable[[list[Answer]], None]) -> None:
        self._answers: list[Answer | None] = [None] * count
        self._missing = count
        self._done = done

    def take(self, index: int) -> Callable[[Answer], None]:
        """Return the receiver of one operation's answer."""

        def taken(answer: Answer) -> None:
            assert self._answers[index] is None, f"answer {index} came twice"
            self._answers[index] = answer
            self._missing -= 1
            if not self._missing:
                self._done([answer for answer in self._answers if answer is not None])

        return taken


def who_of(call: Call) -> Who:
    """Return the client's identity, as shown to people."""
    return Who(call.request.client_id or "", f"/{call.peer.address}")


def id_error(group_id: str) -> KafkaError | None:
    """Return the error of the id of a group with members."""
    if not group_id:
        return KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
    return long_id_error(group_id)


def long_id_error(group_id: str) -> KafkaError | None:
    """Return the error of a group's id; consumers without members may use the empty one."""
    if not _is_too_long(group_id):
        return None
    return KafkaError(
        ErrorCode.INVALID_GROUP_ID,
        f"the group id {group_id[:_SHOWN]!r}... is longer than {MAX_ID_BYTES} bytes",
    )


def part_error(*names: str | None) -> KafkaError | None:
    """Return the error of member and instance ids."""
    for name in names:
        if name is not None and _is_too_long(name):
            return KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"the id {name[:_SHOWN]!r}... is longer than {MAX_ID_BYTES} bytes",
            )
    return None


def _is_too_long(name: str) -> bool:
    # A character has four bytes at most, so that few names have to be encoded.
    return len(name) > MAX_ID_BYTES // 4 and len(name.encode()) > MAX_ID_BYTES
