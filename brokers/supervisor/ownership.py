"""Locks a home for one owner. The kernel releases the lock when the owner ends for any reason."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from brokers.supervisor.errors import StartRefused
from brokers.supervisor.home import Home, flocked

# A process that only checks for an owner holds a shared lock for a moment; an owner keeps it.
LOCK_ATTEMPTS: Final = 6
LOCK_INTERVAL: Final = 0.05


@asynccontextmanager
async def owned(home: Home) -> AsyncIterator[None]:
    """Own a home; refuse one that another supervisor owns."""
    try:
        lock = os.open(home.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise home.unwritable(error) from error
    try:
        for _ in range(LOCK_ATTEMPTS):
            if flocked(lock, fcntl.LOCK_EX):
                break
            await asyncio.sleep(LOCK_INTERVAL)
        else:
            raise StartRefused(
                f"{home.folder} is running already (process {home.owner()}):"
                f" see it with `status`, stop it with `down`, or give another --home"
            )
        # In this order a full disk does not refuse it: the file keeps its block.
        os.ftruncate(lock, os.pwrite(lock, f"{os.getpid()}\n".encode(), 0))
        yield
    finally:
        os.close(lock)
