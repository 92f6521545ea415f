"""An HTTP client for one request on an event loop; its caller limits the time of each step."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Final, Self, TypeVar

from brokers.http.address import Address, open_streams
from brokers.http.client import NO_HEADERS, reason
from brokers.http.protocol import ClientProtocol, Head, NoResponse

READ_BYTES: Final = 65_536

Read = TypeVar("Read")


class AsyncConnection:
    """Every call but `close` may raise NoResponse."""

    def __init__(
        self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._protocol = ClientProtocol(address.authority)
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, address: Address) -> Self:
        try:
            return cls(address, *await open_streams(address, limit=READ_BYTES))
        except (OSError, UnicodeError) as error:
            raise NoResponse(reason(error)) from error

    def begin(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes | None = None,
        is_open: bool = False,
    ) -> None:
        """Send a request; one that is open ends with `end`, maybe after its response."""
        data = self._protocol.begin(method, target, headers, body, is_open=is_open)
        self._writer.write(data)

    def end(self) -> None:
        """End a request that is open."""
        self._writer.write(self._protocol.end())

    async def head(self) -> Head:
        return await self._take(self._protocol.read_head)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives."""
        while piece := await self._take(self._protocol.read_piece):
            yield piece

    async def wait_dropped(self) -> None:
        """Wait until the server has ended the connection."""
        with suppress(OSError):
            while await self._reader.read(READ_BYTES):
                pass

    async def close(self) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def _take(self, read: Callable[[], Read | None]) -> Read:
        while (found := read()) is None:
            try:
                data = await self._reader.read(READ_BYTES)
            except OSError as error:
                raise self._protocol.explain_end(reason(error)) from error
            self._protocol.receive(data)
        return found
