"""Holds what all views of version 3 share."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import ClassVar, Final

from django.http import StreamingHttpResponse
from rest_framework import status
from rest_framework.response import Response

from gateway.kafka.errors import KafkaFailure
from gateway.kafka.pool import Clients
from gateway.kafka.values import Partition, Topic
from gateway.rest import compression
from gateway.rest.calls import JSON, BrokenOff, dumped
from gateway.rest.codes import ApiError, Code
from gateway.rest.v3.present import Bodies, Body
from gateway.rest.views import ApiView

log: Final = logging.getLogger(__name__)
# The length of the longest partition or broker number.
MAX_DIGITS = 10


class V3View(ApiView):
    # A missing topic is "this server does not host this topic-partition".
    no_topic: ClassVar[Code] = Code.NOT_THERE

    @property
    def bodies(self) -> Bodies:
        """Return a builder of bodies; links have the prefix of the request."""
        prefix = self.request.path.partition("/clusters")[0]
        return Bodies(base=self.request.build_absolute_uri(prefix), cluster=self.cluster_id)

    def topic(self, clients: Clients, name: str, *, has_operations: bool = False) -> Topic:
        [found] = clients.admin.describe([name], has_operations=has_operations)
        return found

    def listed_in_pieces(
        self, empty: Body, first: list[Body], rest: Sequence[Callable[[], list[Body]]]
    ) -> StreamingHttpResponse:
        """Answer with a list whose items are built as the caller reads, each piece in a thread.

        A failure cuts the answer in the middle, so that no client takes it for a list.
        """
        is_wanted = compression.is_wanted(self.request, self.caller)
        packer = compression.Packer() if is_wanted else None

        async def piece(text: bytes, *, is_last: bool = False) -> bytes:
            if packer is not None:
                text = await asyncio.to_thread(packer.packed, text, is_last=is_last)
            return self._counted(text)

        async def pieces() -> AsyncIterator[bytes]:
            # The empty list without its end, "]}".
            yield await piece(dumped(empty)[:-2] + joined(first))
            is_first = not first
            for make in rest:
                found = await self._made(make)
                if found:
                    yield await piece((b"" if is_first else b",") + joined(found))
                    is_first = False
            yield await piece(b"]}", is_last=True)

        assert empty["data"] == [], "items are appended"
        answer = StreamingHttpResponse(pieces(), content_type=JSON)
        if is_wanted:
            compression.mark(answer)
        return answer

    async def _made(self, make: Callable[[], list[Body]]) -> list[Body]:
        try:
            return await asyncio.to_thread(make)
        except (KafkaFailure, ApiError) as error:
            log.warning("rest.list_broken_off path=%s error=%s", self.request.path, error)
            # Django does so at the end of an answer.
            self.request._request._stream.close()  # noqa: SLF001 - has no other name
            raise BrokenOff from None

    def _counted(self, piece: bytes) -> bytes:
        self.worker.traffic.add(self.caller.key, bytes_out=len(piece))
        return piece

    def partition(self, clients: Clients, topic: str, number: str) -> Partition:
        wanted = number_of(number, "partition")
        for partition in self.topic(clients, topic).partitions:
            if partition.index == wanted:
                return partition
        raise ApiError(Code.NO_PARTITION, f"topic {topic} has no partition {wanted}")


def joined(items: Iterable[Body]) -> bytes:
    return b",".join(dumped(item) for item in items)


def number_of(text: str, what: str, *, code: Code = Code.NOT_FOUND) -> int:
    """Return a number in a path; raise an error for any other text, NOT_FOUND by default."""
    if not (text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS):
        raise ApiError(code, f"{text[:40]!r} is not the number of a {what}")
    return int(text)


def nothing() -> Response:
    return Response(status=status.HTTP_204_NO_CONTENT)


def flag(text: str | None) -> bool:
    return (text or "").lower() == "true"
