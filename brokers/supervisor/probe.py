"""Asks a process over HTTP whether it serves."""

import asyncio
from contextlib import suppress
from typing import Final

# A healthy answer takes milliseconds; a machine under load is given the benefit of the doubt.
PROBE_SECONDS: Final = 2.0
# The status line is all that counts.
MAX_STATUS_BYTES: Final = 256
GOOD: Final = b"200"


async def is_healthy(host: str, port: int, path: str = "/health") -> bool:
    """Tell whether GET on the path answers 200 in time."""
    with suppress(OSError, TimeoutError, ValueError):
        async with asyncio.timeout(PROBE_SECONDS):
            return await status_of(host, port, path) == GOOD
    return False


async def status_of(host: str, port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection(host, port, limit=MAX_STATUS_BYTES)
    try:
        name = f"[{host}]" if ":" in host else host
        head = f"GET {path} HTTP/1.1\r\nHost: {name}:{port}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode("ascii"))
        words = (await reader.readline()).split()
        return words[1] if len(words) > 1 else b""
    finally:
        writer.close()
