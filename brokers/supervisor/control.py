"""The control socket of a running home: one request per connection, one line of JSON each way.

The socket lies in a private folder, so whoever can open it is the owner of the home. The other end
is brokers.supervisor.client.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from brokers.supervisor.home import CONTROL_SOCKET, Home

# A request names a command.
MAX_REQUEST_BYTES: Final = 4096
# Commands are answered from memory; only the probe of the web server may take a moment.
ANSWER_SECONDS: Final = 5.0

Command = Callable[[], Awaitable[Mapping[str, Any]]]


@asynccontextmanager
async def serve(home: Home, commands: Mapping[str, Command]) -> AsyncIterator[None]:
    """Answer commands while the block runs."""

    async def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, ValueError):
            async with asyncio.timeout(ANSWER_SECONDS):
                request = json.loads(await reader.readline())
                name = request.get("command") if isinstance(request, dict) else None
                command = commands.get(str(name))
                answer = {"error": "unknown command"} if command is None else await command()
                writer.write(f"{json.dumps(answer)}\n".encode())
                await writer.drain()
        writer.close()

    path = home.socket_folder() / CONTROL_SOCKET
    path.unlink(missing_ok=True)
    server = await asyncio.start_unix_server(on_connection, path, limit=MAX_REQUEST_BYTES)
    try:
        yield
    finally:
        server.close()
