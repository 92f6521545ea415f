"""Sends the answer of a fetch, and only then counts its records as read.

If another worker passed the call on, the body of that call ends when the client has the answer, and
its connection breaks if the client does not get it.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from gateway.rest.calls import Call, Gone
from gateway.rest.codes import ApiError

# How long a client may take over a full answer; until then nothing more is fetched for it.
TAKE_S: Final = 60.0
PIECE_BYTES: Final = 65_536


async def pieces_of(body: bytes) -> AsyncIterator[bytes]:
    for begin in range(0, len(body), PIECE_BYTES):
        yield body[begin : begin + PIECE_BYTES]


async def left_whole(
    call: Call, status: int, content_type: str, length: int, pieces: AsyncIterator[bytes]
) -> bool:
    """Write all pieces of an answer but its end; tell whether the client stayed connected."""
    leaving = asyncio.create_task(call.left())
    try:
        async with asyncio.timeout(TAKE_S):
            await call.start(status, content_type, [("Content-Length", str(length))])
            async for piece in pieces:
                await call.write(piece)
            # Run the loop once, so that a disconnect is noticed.
            await asyncio.sleep(0)
    except TimeoutError:
        return False
    else:
        return not leaving.done()
    finally:
        leaving.cancel()


async def confirmed(call: Call) -> bool:
    """Tell whether the client got the answer, as the worker that passed the call on reports."""
    try:
        async with asyncio.timeout(TAKE_S):
            await call.body(0)
    except (Gone, TimeoutError, ApiError):
        return False
    return True
