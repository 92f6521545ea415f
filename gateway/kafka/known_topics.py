"""Looks up topics before records are sent to them, and caches what exists, for an event loop.

A lookup by a producer could create the topic; one by an admin client does not.
"""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure, failure
from gateway.kafka.values import Topic

# How long a lookup of a topic may take while callers wait for it.
LOOKUP_S: Final = 5.0
# Concurrent lookups, one for each topic; one thread takes milliseconds for each.
MAX_LOOKUPS: Final = 200
# A topic is looked up again after this, so that writes to a deleted topic end soon.
KNOWN_S: Final = 30.0
# Partitions are seldom added: a number beyond the last is looked up once in this time.
LOOK_AGAIN_S: Final = 1.0
# Topics that are cached; a name and two numbers each.
MAX_KNOWN: Final = 20_000

NO_TOPIC: Final = "UNKNOWN_TOPIC_OR_PARTITION"


@dataclass(slots=True, kw_only=True)
class _Known:
    """An existing topic, as of its last lookup."""

    partitions: int
    at: float


class KnownTopics:
    """The topics of one event loop."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._known: dict[str, _Known] = {}
        self._lookups: dict[str, asyncio.Task[_Known]] = {}
        # Not thread-safe, so it is created in the thread of lookups.
        self._admin: Admin | None = None
        self._asker = ThreadPoolExecutor(1, thread_name_prefix="topic-lookup")

    def is_known(self, topic: str, partition: int | None = None) -> bool:
        """Return whether a topic can be sent to without `require`, which may wait."""
        known = self._known.get(topic)
        return (
            known is not None
            and time.monotonic() - known.at < KNOWN_S
            and (partition is None or partition < known.partitions)
        )

    async def require(self, topic: str, partition: int | None = None) -> int:
        """Return the number of a topic's partitions. Raises KafkaFailure if it does not exist."""
        if not self.is_known(topic, partition):
            await self._look_up(topic)
        count = self._known[topic].partitions
        if partition is not None and partition >= count:
            raise failure(
                NO_TOPIC, f"topic {topic}, partition {partition}", f"{topic!r} has {count} of them"
            )
        return count

    def forget(self, topic: str) -> None:
        """Look a topic up before the next record, since a broker does not know it."""
        self._known.pop(topic, None)

    def close(self) -> None:
        self._asker.shutdown(wait=False, cancel_futures=True)

    async def _look_up(self, topic: str) -> None:
        known = self._known.get(topic)
        if known is not None and time.monotonic() - known.at < LOOK_AGAIN_S:
            return
        lookup = self._lookups.get(topic)
        if lookup is None:
            if len(self._lookups) >= MAX_LOOKUPS:
                raise failure(
                    "REQUEST_TIMED_OUT", f"topic {topic}", "too many topics are asked for at once"
                )
            lookup = self._lookups[topic] = self._loop.create_task(self._ask(topic))
            lookup.add_done_callback(lambda over: self._end_lookup(topic, over))
        try:
            # A caller that leaves must not cancel the lookup for the others.
            found = await asyncio.shield(lookup)
        except KafkaFailure as failed:
            if failed.name == NO_TOPIC or known is None:
                self._known.pop(topic, None)
                raise
            # The topic still exists while the cluster is briefly silent; the record waits for it.
            known.at = time.monotonic()
            return
        if len(self._known) >= MAX_KNOWN:
            self._known.pop(next(iter(self._known)))
        self._known[topic] = found

    def _end_lookup(self, topic: str, over: asyncio.Task[_Known]) -> None:
        self._lookups.pop(topic, None)
        if not over.cancelled():
            # All callers may have left, so retrieve the exception here.
            over.exception()

    async def _ask(self, topic: str) -> _Known:
        found = await self._loop.run_in_executor(self._asker, self._find, topic)
        if found is None:
            raise failure(NO_TOPIC, f"topic {topic}")
        return _Known(partitions=len(found.partitions), at=time.monotonic())

    def _find(self, topic: str) -> Topic | None:
        """Ask the cluster; in the lookup thread."""
        if self._admin is None:
            self._admin = Admin(replace(self._connection, timeout_s=LOOKUP_S))
        return self._admin.find([topic]).get(topic)
