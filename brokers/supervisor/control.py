"""Serves the control socket of a home: one request per connection, one line of JSON each way.

The socket is in a private folder, and the kernel reports the user at the other end, which must be
the owner of the home or root. The other end is brokers.supervisor.client.
"""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

from brokers.supervisor.home import CONTROL_SOCKET, Home

# A request names a command, a broker, and the requester.
MAX_REQUEST_BYTES: Final = 4096
# Most commands are answered from memory; only the probe of the web server may take longer.
ANSWER_SECONDS: Final = 5.0
# A socket's record of the process at its other end: pid, user, group.
CREDENTIALS: Final = Struct("3i")

Request = Mapping[str, Any]
Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The function that answers a request, and how long it may take."""

    run: Callable[[Request], Awaitable[Answer]]
    seconds: float = ANSWER_SECONDS


@asynccontextmanager
async def serve(home: Home, commands: Mapping[str, Command]) -> AsyncIterator[None]:
    """Answer commands while the block runs."""

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, ValueError):
            if is_owner(writer):
                async with asyncio.timeout(ANSWER_SECONDS):
                    request = json.loads(await reader.readline())
                answer = await answer_to(request, commands)
                writer.write(f"{json.dumps(answer)}\n".encode())
                async with asyncio.timeout(ANSWER_SECONDS):
                    await writer.drain()
        writer.close()

    path = home.socket_folder() / CONTROL_SOCKET
    path.unlink(missing_ok=True)
    server = await asyncio.start_unix_server(on_connection, path, limit=MAX_REQUEST_BYTES)
    try:
        yield
    finally:
        server.close()


async def answer_to(request: object, commands: Mapping[str, Command]) -> Answer:
    """Run the command that a request names; TimeoutError if it takes too long."""
    asked = request if isinstance(request, dict) else {}
    command = commands.get(str(asked.get("command")))
    if command is None:
        return {"error": "unknown command"}
    async with asyncio.timeout(command.seconds):
        return await command.run(asked)


def is_owner(writer: asyncio.StreamWriter) -> bool:
    """Tell whether the other end runs as the user of this process, or as root."""
    there: socket.socket = writer.get_extra_info("socket")
    credentials = there.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    _pid, user, _group = CREDENTIALS.unpack(credentials)
    return user in {os.geteuid(), 0}
