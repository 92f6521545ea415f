"""A client that streams records to a gateway over a real connection, and reads while it sends."""

import asyncio
import json
import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Self

WAIT_S = 60
READ_BYTES = 65_536
LENGTH = re.compile(rb"content-length: ([0-9]+)", re.IGNORECASE)


class RawStream:
    """One call with a body in pieces. Receipts are read when they are asked for, and not before."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._text = b""
        self.status = 0

    @classmethod
    async def opened(
        cls,
        address: tuple[str, int],
        path: str,
        headers: Mapping[str, str] | None = None,
        *,
        buffer_bytes: int | None = None,
    ) -> Self:
        """Begin a call; the kernel keeps so many bytes either way, where that is given."""
        connection = socket.socket()
        if buffer_bytes is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, address)
        reader, writer = await asyncio.open_connection(
            sock=connection, limit=buffer_bytes or READ_BYTES
        )
        given = {
            "Host": "gateway",
            "Content-Type": "application/json",
            "Transfer-Encoding": "chunked",
            **(headers or {}),
        }
        lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n")
        return cls(reader, writer)

    async def send(self, piece: bytes) -> None:
        """Send a piece, as far as the connection takes it."""
        self._writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await self._writer.drain()

    async def finish(self) -> None:
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def receipts(self, count: int) -> list[dict[str, Any]]:
        """Return the next receipts, as soon as there are so many."""
        async with asyncio.timeout(WAIT_S):
            while self._text.count(b"\r\n") < count:
                piece = await self._piece()
                assert piece, f"the answer has ended with {self._text!r}"
                self._text += piece
        *lines, self._text = self._text.split(b"\r\n", count)
        return [json.loads(line) for line in lines]

    async def rest(self) -> list[dict[str, Any]]:
        """Return all receipts until the answer ends, or is broken off."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            async with asyncio.timeout(WAIT_S):
                while piece := await self._piece():
                    self._text += piece
        *lines, self._text = self._text.split(b"\r\n")
        return [json.loads(line) for line in lines]

    async def whole(self) -> Any:
        """Return the one value that is answered, as a stream or with a length."""
        async with asyncio.timeout(WAIT_S):
            head = await self._reader.readuntil(b"\r\n\r\n")
            self.status = int(head.split(b" ")[1])
            found = LENGTH.search(head)
            if found is None:
                return (await self.rest())[0]
            return json.loads(await self._reader.readexactly(int(found[1])))

    def leave(self) -> None:
        self._writer.close()

    async def _piece(self) -> bytes:
        """Return the next piece of the answer; nothing at its end."""
        if not self.status:
            head = await self._reader.readuntil(b"\r\n\r\n")
            self.status = int(head.split(b" ")[1])
        size = int(await self._reader.readuntil(b"\r\n"), 16)
        piece = await self._reader.readexactly(size)
        await self._reader.readexactly(2)
        return piece
