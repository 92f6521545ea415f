"""Passes a call to the worker that owns its consumer, over that worker's own socket."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

from brokers.http.address import Address
from brokers.http.asyncio_client import AsyncConnection
from brokers.http.protocol import NoResponse
from gateway.access.callers import Caller
from gateway.rest.calls import Call, Gone
from gateway.rest.codes import ApiError, Code
from gateway.rest.consume.delivery import left_whole
from gateway.rest.passed import HEADER, signed
from gateway.rest.worker import Place

CONNECT_S: Final = 1.0
# The longest fetch waits for its assignment and then for records; add a margin for transfer.
ANSWER_S: Final = 60.0
# A worker stores offsets within milliseconds once the client has its records.
STORE_S: Final = 5.0
OK: Final = 200
NO_CONTENT: Final = 204


class OwnerGone(Exception):
    """No worker answers on a socket, or it ended before its answer did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A call in the form in which another worker gets it. `under` is the rest of its path."""

    method: str
    group: str
    instance: str
    under: str = ""
    query: str = ""
    accept: str = "*/*"
    content_type: str = ""
    body: bytes = b""
    # The call is a fetch: its request body ends once the client has the records of the answer.
    is_fetch: bool = False

    def send(self, connection: AsyncConnection, prefix: str, caller: Caller) -> None:
        """Send the request; that of a fetch is ended later."""
        target = (
            f"{prefix}/consumers/{quote(self.group, safe='')}"
            f"/instances/{quote(self.instance, safe='')}{self.under}"
            f"{'?' if self.query else ''}{self.query}"
        )
        headers = {
            "Connection": "close",
            "Accept": self.accept,
            HEADER: signed(caller, self.method, target),
        }
        if self.content_type:
            headers["Content-Type"] = self.content_type
        body = self.body or None
        connection.begin(self.method, target, headers=headers, body=body, is_open=self.is_fetch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of another worker; its body is still arriving."""

    status: int
    content_type: str
    length: int
    connection: AsyncConnection

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self.connection.pieces():
                yield piece
        except NoResponse as error:
            # Break off: the client notices an answer that is too short.
            raise Gone from error


class Passing:
    """Sends calls to other workers of the home."""

    def __init__(self, place: Place, *, prefix: str) -> None:
        self._place = place
        self._prefix = prefix

    def others(self) -> Sequence[str]:
        return self._place.others()

    async def has(self, caller: Caller, group: str, instance: str, worker: str) -> bool:
        """Tell whether a worker has an instance; False if it does not answer."""
        passed = Passed(method="GET", group=group, instance=instance)
        with suppress(OwnerGone):
            async with self._answer_of(worker, passed, caller) as answer:
                return answer.status == NO_CONTENT
        return False

    async def pass_on(self, call: Call, passed: Passed, worker: str) -> bool:
        """Answer a call with another worker's answer; False if it has no such instance."""
        try:
            async with self._answer_of(worker, passed, call.caller) as answer:
                if answer.status == Code.NOT_THERE.status:
                    return await refused(call, answer)
                await self._hand_over(call, passed, answer)
        except OwnerGone:
            return False
        return True

    async def _hand_over(self, call: Call, passed: Passed, answer: Answer) -> None:
        call.errors += answer.status >= Code.BAD_REQUEST.status
        if answer.status == NO_CONTENT:
            await call.answer(NO_CONTENT, content_type=answer.content_type)
            return
        is_taken = await left_whole(
            call, answer.status, answer.content_type, answer.length, answer.pieces()
        )
        if passed.is_fetch and is_taken:
            answer.connection.end()
            # The next request must see these records as read; the connection ends once they are.
            with suppress(TimeoutError):
                async with asyncio.timeout(STORE_S):
                    await answer.connection.wait_dropped()
        if not is_taken:
            raise Gone
        await call.end()

    @asynccontextmanager
    async def _answer_of(
        self, worker: str, passed: Passed, caller: Caller
    ) -> AsyncIterator[Answer]:
        try:
            async with asyncio.timeout(CONNECT_S):
                address = Address(path=self._place.socket_of(worker))
                connection = await AsyncConnection.open(address)
        except (NoResponse, TimeoutError) as error:
            raise OwnerGone from error
        try:
            yield await self._answer(worker, passed, caller, connection)
        finally:
            await connection.close()

    async def _answer(
        self, worker: str, passed: Passed, caller: Caller, connection: AsyncConnection
    ) -> Answer:
        try:
            passed.send(connection, self._prefix, caller)
            async with asyncio.timeout(ANSWER_S):
                head = await connection.head()
        except TimeoutError:
            raise ApiError(
                Code.UNAVAILABLE,
                f"{worker}, which has this consumer, did not answer in {ANSWER_S:g} s: ask again",
                retry_after_s=1,
            ) from None
        except NoResponse as error:
            raise OwnerGone from error
        return Answer(
            status=head.status,
            content_type=head.headers.get("content-type", ""),
            length=int(head.headers.get("content-length", "0")),
            connection=connection,
        )


async def refused(call: Call, answer: Answer) -> bool:
    """Answer with a 404 of another worker; False if the consumer itself was not found."""
    text = b"".join([piece async for piece in answer.pieces()])
    if json.loads(text)["error_code"] == Code.NOT_THERE.number:
        return False
    call.errors += 1
    await call.answer(answer.status, text, content_type=answer.content_type)
    return True


def query_of(call: Call) -> str:
    return urlencode(call.query())
