"""Connects the browser's reads with a cluster: sources of pages, and the engine of all tails.

Uncommitted records are read too: a person who looks for a record wants to see it.
"""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from console.messages.places import Places
from gateway.kafka.connection import Connection
from gateway.kafka.readers.admission import Admission
from gateway.kafka.readers.engine import Readers
from gateway.kafka.readers.ranges import KafkaSource
from gateway.kafka.readers.values import Limits

# A person waits for the answer.
TIMEOUT_S: Final = 10.0
PROPERTIES: Final = {"isolation.level": "read_uncommitted"}
MB: Final = 1024 * 1024
# As many partitions as all streams of a web process can have, in a fraction of its memory.
LIMITS: Final = Limits(
    windows_bytes=64 * MB,
    min_window_bytes=4 * 1024,
    buffers_bytes=64 * MB,
    max_places=24_000,
    max_cursors=24_000,
)


def connection_of(places: Places) -> Connection:
    return Connection(
        bootstrap=places.bootstrap,
        timeout_s=TIMEOUT_S,
        client_id="samsa-console",
        properties=PROPERTIES,
    )


def source_of(admission: Admission, places: Places) -> KafkaSource:
    return KafkaSource(admission, connection_of(places), places.topic)


class Engines:
    """Lends the engine of a cluster to its tails, from the first one to the last."""

    def __init__(self) -> None:
        # By bootstrap addresses: after brokers have moved, new tails need the new ones.
        self._engines: dict[str, Readers] = {}
        self._tails: Counter[str] = Counter()

    @asynccontextmanager
    async def of(self, places: Places) -> AsyncIterator[Readers]:
        """Lend an engine during the block, on the event loop."""
        key = places.bootstrap
        if key not in self._engines:
            self._engines[key] = Readers(connection_of(places), LIMITS)
        self._tails[key] += 1
        try:
            yield self._engines[key]
        finally:
            self._tails[key] -= 1
            if not self._tails[key]:
                del self._tails[key]
                await self._engines.pop(key).close()
