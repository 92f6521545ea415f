"""Asks a process over HTTP whether it serves."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

# A healthy answer takes milliseconds; a machine under load may take longer.
PROBE_SECONDS: Final = 2.0
# Only the status line is needed.
MAX_STATUS_BYTES: Final = 256
GOOD: Final = b"200"
Opening = Coroutine[Any, Any, tuple[asyncio.StreamReader, asyncio.StreamWriter]]


async def is_healthy(host: str, port: int, path: str = "/health") -> bool:
    """Tell whether GET on the path answers 200 in time."""
    name = f"[{host}]" if ":" in host else host
    opening = asyncio.open_connection(host, port, limit=MAX_STATUS_BYTES)
    return await is_good(opening, f"{name}:{port}", path)


async def is_healthy_at(socket: Path, path: str = "/health") -> bool:
    """Tell whether GET on a unix socket answers 200 in time."""
    opening = asyncio.open_unix_connection(socket, limit=MAX_STATUS_BYTES)
    return await is_good(opening, "localhost", path)


async def answers_at(socket: Path, path: str = "/health") -> bool:
    """Tell whether GET on a unix socket gets any answer in time, good or bad."""
    with suppress(OSError, TimeoutError, ValueError):
        async with asyncio.timeout(PROBE_SECONDS):
            opening = asyncio.open_unix_connection(socket, limit=MAX_STATUS_BYTES)
            return bool(await status_of(opening, "localhost", path))
    return False


async def answers_ping(socket: Path) -> bool:
    """Tell whether a server of Valkey's protocol serves; one that is loading does not."""
    with suppress(OSError, TimeoutError, ValueError):
        async with asyncio.timeout(PROBE_SECONDS):
            reader, writer = await asyncio.open_unix_connection(socket, limit=MAX_STATUS_BYTES)
            try:
                writer.write(b"PING\r\n")
                return (await reader.readline()).startswith(b"+PONG")
            finally:
                writer.close()
    return False


async def is_good(opening: Opening, host: str, path: str) -> bool:
    with suppress(OSError, TimeoutError, ValueError):
        async with asyncio.timeout(PROBE_SECONDS):
            return await status_of(opening, host, path) == GOOD
    return False


async def status_of(opening: Opening, host: str, path: str) -> bytes:
    reader, writer = await opening
    try:
        head = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode("ascii"))
        words = (await reader.readline()).split()
        return words[1] if len(words) > 1 else b""
    finally:
        writer.close()
