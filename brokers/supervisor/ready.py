"""Reads the pipe on which a process reports, in one line of JSON, that it serves and where.

A process that promises it in this line then beats: it writes one more line a second, for as long as
it works. The other end is `brokers.beats`.
"""

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from brokers.beats import BEATS

# A ready line has a few numbers; a longer one is something else.
MAX_LINE_BYTES: Final = 4096


class ReadyLine:
    """Reads one line, then beats. `said` stays pending if the pipe is closed without a line."""

    def __init__(self, pipe: int, on_beat: Callable[[], None] = lambda: None) -> None:
        self._loop = asyncio.get_running_loop()
        self.said: asyncio.Future[Mapping[str, Any]] = self._loop.create_future()
        self._pipe = pipe
        self._on_beat = on_beat
        self._read_so_far = b""
        os.set_blocking(pipe, False)
        self._loop.add_reader(pipe, self._read)

    def close(self) -> None:
        if self._pipe >= 0:
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe = -1

    def _read(self) -> None:
        try:
            block = os.read(self._pipe, MAX_LINE_BYTES)
        except BlockingIOError:
            return
        if self.said.done():
            self._take_beat(block)
            return
        self._read_so_far += block
        line, newline, _ = self._read_so_far.partition(b"\n")
        if newline:
            self.said.set_result(parse(line))
            if not self.said.result().get(BEATS):
                self.close()
        elif not block or len(self._read_so_far) > MAX_LINE_BYTES:
            self.close()

    def _take_beat(self, block: bytes) -> None:
        if block:
            self._on_beat()
        else:
            self.close()


def parse(line: bytes) -> Mapping[str, Any]:
    """Parse the ready line; a line that is not an object still means that the process serves."""
    with suppress(ValueError):
        said = json.loads(line)
        if isinstance(said, dict):
            return said
    return {}
