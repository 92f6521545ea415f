"""Tells the supervisor of a home, once a second, that the process that it started still works.

The first line on the pipe says that the process serves, and that beats follow. A beat is one more
line: it needs no socket that strangers could fill, and no disk that could be full or hang. The
other end is `brokers.supervisor.ready`.
"""

import asyncio
import json
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

EVERY_SECONDS: Final = 1.0
BEAT: Final = b"\n"
# The key of the first line that promises beats.
BEATS: Final = "beats"


def say_ready(pipe: int, said: Mapping[str, Any]) -> None:
    """Write the first line to the process that started this one, if it waits for it."""
    if pipe < 0:
        return
    # A supervisor that is stopped must not block the loop once its pipe is full.
    os.set_blocking(pipe, False)
    # A reader that has gone is no reason to stop.
    with suppress(OSError):
        os.write(pipe, f"{json.dumps({**said, BEATS: True})}\n".encode())


async def keep_beating(pipe: int) -> None:
    """Beat until cancelled, which proves that the event loop turns."""
    while pipe >= 0:
        _beat(pipe)
        await asyncio.sleep(EVERY_SECONDS)


def beat_beside(pipe: int) -> None:
    """Beat in a thread for as long as the process lives, for a process without an event loop."""
    if pipe >= 0:
        threading.Thread(target=_beat_on, args=(pipe,), name="beats", daemon=True).start()


def _beat_on(pipe: int) -> None:
    never = threading.Event()
    while not never.wait(EVERY_SECONDS):
        _beat(pipe)


def _beat(pipe: int) -> None:
    # A full pipe has unread beats, and a closed one no reader.
    with suppress(OSError):
        os.write(pipe, BEAT)
