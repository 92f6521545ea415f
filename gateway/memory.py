"""Returns memory that calls have freed to the system.

The C library keeps freed blocks that lie between others: after a wave of large frames or bodies,
that is a third of the process, for as long as it runs.
"""

import asyncio
import ctypes
import gc
from collections.abc import Callable
from typing import Final

# So often is little work, a millisecond or some, and soon enough after a wave of calls.
TRIM_SECONDS: Final = 20.0


def settle() -> None:
    """Leave out of garbage collection what was loaded, so that cycles of calls are found soon."""
    gc.collect()
    gc.freeze()


async def trim_often() -> None:
    """Return freed memory until the task is cancelled; nothing to do for other C libraries."""
    trim = _trim()
    while trim is not None:
        await asyncio.sleep(TRIM_SECONDS)
        await asyncio.to_thread(trim, 0)


def _trim() -> Callable[[int], int] | None:
    found: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return found
