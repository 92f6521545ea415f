"""Asks a process over HTTP whether it serves."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Final

from brokers.http.address import Address
from brokers.http.asyncio_client import AsyncConnection
from brokers.http.protocol import NoResponse

# A healthy answer takes milliseconds; a machine under load may take longer.
PROBE_SECONDS: Final = 2.0
# The answer to a ping is short.
MAX_PONG_BYTES: Final = 256
GOOD: Final = 200


async def is_healthy(host: str, port: int, path: str = "/health") -> bool:
    """Tell whether GET on the path answers 200 in time."""
    return await status_of(Address(host=host, port=port), path) == GOOD


async def is_healthy_at(socket: Path, path: str = "/health") -> bool:
    """Tell whether GET on a unix socket answers 200 in time."""
    return await status_of(Address(path=socket), path) == GOOD


async def answers_at(socket: Path, path: str = "/health") -> bool:
    """Tell whether GET on a unix socket gets any answer in time, good or bad."""
    return await status_of(Address(path=socket), path) is not None


async def answers_ping(socket: Path) -> bool:
    """Tell whether a server of Valkey's protocol serves; one that is loading does not."""
    with suppress(OSError, TimeoutError, ValueError):
        async with asyncio.timeout(PROBE_SECONDS):
            reader, writer = await asyncio.open_unix_connection(socket, limit=MAX_PONG_BYTES)
            try:
                writer.write(b"PING\r\n")
                return (await reader.readline()).startswith(b"+PONG")
            finally:
                writer.close()
    return False


async def status_of(address: Address, path: str) -> int | None:
    """Return the status that GET gets; None if there is no answer in time."""
    with suppress(NoResponse, TimeoutError):
        async with asyncio.timeout(PROBE_SECONDS):
            connection = await AsyncConnection.open(address)
            try:
                connection.begin("GET", path, headers={"Connection": "close"})
                return (await connection.head()).status
            finally:
                await connection.close()
    return None
