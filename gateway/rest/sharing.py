"""Divides each caller's rate among all workers, by demand that they exchange twice a second.

Reports go through the server that workers share, which may be down at any time: then each worker
counts alone, as a single worker does. No call waits for it.
"""

import asyncio
import json
import logging
import math
import secrets
from collections.abc import Callable
from typing import Final, Protocol

from gateway.rest.limits import Limits
from gateway.rest.shares import MOST, Named, Wants

log: Final = logging.getLogger(__name__)
CHANNEL: Final = "rates"
# A worker's data about the others is at most this old, and twice that for a new demand.
TELL_SECONDS: Final = 0.5
# Only the highest demands are reported: some tens of kilobytes. Few callers reach a rate of
# thousands per second at the same time.
MAX_ROWS: Final = 1_000
MAX_NEWS_BYTES: Final = 256 * 1024
# A name of a token or a user has at most 150 characters, after its kind.
MAX_KEY_CHARS: Final = 200
NAMES: Final = frozenset({"requests", "records", "bytes"})


class News(Protocol):
    """The messages between workers."""

    async def publish(self, channel: str, value: bytes) -> bool: ...

    def listen(self, channel: str, heard: Callable[[bytes], None]) -> None: ...


class Sharing:
    """The exchange of one worker. Belongs to one event loop, and ends with the worker."""

    def __init__(self, worker: str, limits: Limits, news: News) -> None:
        # Workers of several hosts have the same names.
        self._worker = f"{worker}-{secrets.token_hex(4)}"
        self._limits = limits
        self._news = news
        self._telling: asyncio.Task[None] | None = None

    def begin(self) -> None:
        if self._telling is None:
            self._news.listen(CHANNEL, self._hear)
            self._telling = asyncio.create_task(self._tell())

    def drain(self) -> None:
        """Do nothing: open calls are still limited."""

    async def close(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.gather(self._telling, return_exceptions=True)

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(TELL_SECONDS)
            try:
                wants = self._limits.divide(TELL_SECONDS)
                if wants:
                    await self._news.publish(CHANNEL, written(self._worker, wants))
            except Exception:
                # The next round may succeed; until then, each worker counts alone.
                log.exception("rates.telling_failed")

    def _hear(self, text: bytes) -> None:
        try:
            worker, wants = read(text)
        except (ValueError, RecursionError) as error:
            log.warning("rates.unreadable error=%s", error)
            return
        if worker != self._worker:
            self._limits.hear(worker, wants)


def written(worker: str, wants: Wants) -> bytes:
    most = sorted(wants.items(), key=lambda row: -row[1])[:MAX_ROWS]
    rows = [[key, name, round(part, 4)] for (key, name), part in most]
    return json.dumps({"worker": worker, "wants": rows}).encode()


def read(text: bytes) -> tuple[str, Wants]:
    """Parse a report of a worker. Raises ValueError for an invalid one."""
    if len(text) > MAX_NEWS_BYTES:
        raise ValueError(f"news have {len(text)} bytes; at most {MAX_NEWS_BYTES} fit")
    match json.loads(text):
        case {"worker": str(worker), "wants": list(rows)} if len(worker) <= MAX_KEY_CHARS:
            return worker, dict(wanted(row) for row in rows[:MAX_ROWS])
    raise ValueError("news are an object with the name of a worker and a list of wants")


def wanted(row: object) -> tuple[Named, float]:
    match row:
        case [str(key), str(name), int() | float() as part] if (
            name in NAMES and len(key) <= MAX_KEY_CHARS and math.isfinite(part)
        ):
            return (key, name), min(MOST, max(0.0, part))
    raise ValueError("a want has a caller, a name and a number")
