"""Bounds bodies while they arrive: the bytes of all and of each sender, and the pace of each body.

A body in memory costs its sender nothing, so what a process holds is counted over all of its calls,
those to Django's views included.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from gateway.access.callers import Caller
from gateway.rest.calls import Call, Message, Receive, declared_by, too_large
from gateway.rest.codes import ApiError, Code

# Of all bodies that a process holds.
MAX_HELD_BYTES: Final = 64 * 1024 * 1024
# Of one caller: the largest body that any call takes, and a quarter of all.
MAX_HELD_BYTES_EACH: Final = 16 * 1024 * 1024
# Of all callers of one address that are not known: far more than forms of a sign-in.
MAX_HELD_BYTES_STRANGERS: Final = 8 * 1024 * 1024
# Of those of all addresses together, as a share of all bodies: one in so many.
STRANGERS_SHARE: Final = 2
# A body keeps this pace after a start: slower ones would hold memory for as long as they like.
LEAST_BYTES_PER_S: Final = 16 * 1024
START_S: Final = 10.0
# The Retry-After while too much is held: bodies arrive in seconds.
COMES_BACK_S: Final = 1


class Budget:
    """The bytes of bodies in one process. Belongs to one event loop."""

    def __init__(
        self,
        most: int = MAX_HELD_BYTES,
        *,
        each: int = MAX_HELD_BYTES_EACH,
        strangers: int = MAX_HELD_BYTES_STRANGERS,
        what: str = "bodies",
    ) -> None:
        self._what = what
        self._most = most
        self._each = each
        self._strangers = strangers
        self._held = 0
        self._held_by_strangers = 0
        self._by_sender: Counter[str] = Counter()

    def change(self, sender: Caller | str, size: int) -> None:
        """Count the bytes of a caller or, if it is unknown, of its address; negative if released.

        Raises ApiError over a limit, and counts nothing then.
        """
        if size > 0:
            self._require_room(sender, size)
        name = name_of(sender)
        self._held += size
        if not isinstance(sender, Caller):
            self._held_by_strangers += size
        self._by_sender[name] += size
        if not self._by_sender[name]:
            # Senders without bytes need no row.
            del self._by_sender[name]

    def _require_room(self, sender: Caller | str, size: int) -> None:
        is_known = isinstance(sender, Caller)
        name, most = name_of(sender), self._each if is_known else self._strangers
        held = self._by_sender[name]
        if held + size > most:
            raise ApiError(
                Code.TOO_MANY,
                f"this process holds {held} bytes of {self._what} of {name} already;"
                f" at most {most} fit: wait for answers, or send less at once",
                retry_after_s=COMES_BACK_S,
            )
        shared = [(self._what, self._held, self._most)]
        if not is_known:
            # Addresses are free of charge: known callers need room beside them.
            share = self._most // STRANGERS_SHARE
            shared.append((f"{self._what} of unknown callers", self._held_by_strangers, share))
        for what, held, most in shared:
            if held + size > most:
                raise ApiError(
                    Code.UNAVAILABLE,
                    f"this process holds {held} bytes of {what} already; at most {most} fit: send"
                    " again in a moment, or less at once",
                    retry_after_s=COMES_BACK_S,
                )

    @asynccontextmanager
    async def whole(self, call: Call, limit: int) -> AsyncIterator[bytes]:
        """Read the body of a call, which counts until the block ends."""
        declared = declared_by(call.headers)
        if declared is not None and declared > limit:
            raise too_large(declared, limit)
        found = bytearray()
        try:
            await self._read(call, limit, found)
            yield bytes(found)
        finally:
            self.change(call.caller, -len(found))

    async def _read(self, call: Call, limit: int, found: bytearray) -> None:
        started = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(started + patience_s(0)) as pace:
                async for piece in call.pieces():
                    if len(found) + len(piece) > limit:
                        raise too_large(len(found) + len(piece), limit)
                    self.change(call.caller, len(piece))
                    found += piece
                    pace.reschedule(started + patience_s(len(found)))
        except TimeoutError:
            raise too_slow(len(found)) from None


class Arriving:
    """A body on its way to an application that knows no limits.

    A body that is refused looks like a disconnect to the application, which then frees what it has.
    """

    def __init__(
        self, receive: Receive, budget: Budget, *, sender: Caller | str, limit: int
    ) -> None:
        self._receive = receive
        self._budget = budget
        self._sender = sender
        self._limit = limit
        self._started = asyncio.get_running_loop().time()
        self._taken = 0
        self._is_whole = False
        self.refused: ApiError | None = None

    async def next(self) -> Message:
        """Return the next message of the client."""
        if self._is_whole:
            # Only its disconnect can follow.
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._started + patience_s(self._taken)):
                message = await self._receive()
            self._take(len(message.get("body", b"")))
        except TimeoutError:
            self.refused = too_slow(self._taken)
        except ApiError as error:
            self.refused = error
        if self.refused is not None:
            return {"type": "http.disconnect"}
        self._is_whole = not message.get("more_body")
        return message

    def release(self) -> None:
        """Stop counting the body; the application is done with it."""
        self._budget.change(self._sender, -self._taken)
        self._taken = 0

    def _take(self, size: int) -> None:
        if self._taken + size > self._limit:
            raise too_large(self._taken + size, self._limit)
        self._budget.change(self._sender, size)
        self._taken += size


@asynccontextmanager
async def unread(receive: Receive) -> AsyncIterator[Receive]:
    """Give the block an empty body, and discard what the client sends, as soon as it comes.

    The server would keep a quarter of a megabyte of it for each call that waits for its answer.
    """

    async def discard() -> Message:
        while (message := await receive())["type"] != "http.disconnect":
            pass
        return message

    leaving = asyncio.create_task(discard())
    has_begun = False

    async def next_message() -> Message:
        nonlocal has_begun
        if has_begun:
            return await asyncio.shield(leaving)
        has_begun = True
        return {"type": "http.request", "body": b"", "more_body": False}

    try:
        yield next_message
    finally:
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)


def name_of(sender: Caller | str) -> str:
    return sender.key if isinstance(sender, Caller) else f"address {sender}"


def patience_s(taken: int) -> float:
    """Return how long after its head the next part of a body may come."""
    return START_S + taken / LEAST_BYTES_PER_S


def too_slow(taken: int) -> ApiError:
    return ApiError(
        Code.TIMED_OUT,
        f"{taken} bytes of the body arrived in {patience_s(taken):.0f} s: send it again, with"
        f" {LEAST_BYTES_PER_S} bytes a second or more, or send less at once",
    )
