"""Polls for all streams together: metadata versions, the collector's tables, ended sessions.

Polls run while a stream is open. One thread queries the database, so that any number of tabs costs
three small queries a second and one per session a minute, and holds one connection. The tables are
this process's mirror, which answers at once; they have a thread of their own, since pages must
learn that they are stale even while the database hangs.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from channels.layers import get_channel_layer
from django.db import Error, close_old_connections

from brokers.controlplane import selectors
from console.events import visitors
from console.events.hub import Hub, Owner
from console.events.tables import Ticks, health
from console.monitoring.selectors import Snapshot
from gateway.shared import hints
from gateway.shared.layer import SharedChannelLayer

T = TypeVar("T")

log: Final = logging.getLogger(__name__)
# A change of the cluster is noticed within this, at the cost of a query a second.
VERSIONS_SECONDS: Final = 1.0
# The mirror reads the collector as often. Pages learn of its silence 5 s after its end at most: its
# tables count as stale after 4.
TABLES_SECONDS: Final = 1.0
# A stream ends within a second of its session, wherever that ended: by sign-out, by expiry, or by a
# change of the user's rights or password. One small query for all streams.
SESSIONS_SECONDS: Final = 0.5
# Sessions that a command changed beside the services of access, such as a new password by Django's
# own, are noticed within this; it loads each session.
WHOLE_SESSIONS_SECONDS: Final = 60.0
# The value of a cluster whose database does not answer.
AWAY: Final = json.dumps({"is_away": True})


class Watch:
    def __init__(
        self,
        hub: Hub,
        *,
        versions_s: float = VERSIONS_SECONDS,
        tables_s: float = TABLES_SECONDS,
        sessions_s: float = SESSIONS_SECONDS,
        whole_sessions_s: float = WHOLE_SESSIONS_SECONDS,
    ) -> None:
        self._hub = hub
        self._versions_s = versions_s
        self._tables_s = tables_s
        self._sessions_s = sessions_s
        self._whole_sessions_s = whole_sessions_s
        # The mirror of this process, once it exists.
        self.snapshots: Callable[[], Snapshot] | None = None
        self._ticks = Ticks()
        # A single thread, so that a hanging database blocks no more than that.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="events")
        self._tables_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tables")
        self._tasks: tuple[asyncio.Task[None], ...] = ()

    async def owner_of(self, cookies: dict[str, str]) -> Owner | None:
        return await self._ask(lambda: visitors.owner_of(cookies))

    def begin(self) -> None:
        """Poll while a stream is open. Called for each one that opens."""
        if any(not task.done() for task in self._tasks):
            return
        loop = asyncio.get_running_loop()
        layer = get_channel_layer()
        follow = [self._follow(layer)] if isinstance(layer, SharedChannelLayer) else []
        looks = (
            (self.look_at_versions, 0, self._versions_s),
            (self.look_at_tables, 0, self._tables_s),
            (self.look_for_ended_sessions, self._sessions_s, self._sessions_s),
            (self.look_at_sessions, self._whole_sessions_s, self._whole_sessions_s),
        )
        polls = [
            self._repeat(look, first_s=first_s, each_s=each_s) for look, first_s, each_s in looks
        ]
        self._tasks = tuple(loop.create_task(each) for each in (*polls, *follow))

    def end(self) -> None:
        """Stop polling once the last stream is closed."""
        if not self._hub.open_streams:
            for task in self._tasks:
                task.cancel()
            self._tasks = ()

    async def _repeat(
        self, look: Callable[[], Awaitable[None]], *, first_s: float, each_s: float
    ) -> None:
        await asyncio.sleep(first_s)
        while True:
            await self._try(look)
            await asyncio.sleep(each_s)

    async def _follow(self, layer: SharedChannelLayer) -> None:
        """Look for ended sessions at once, after each hint that there may be some."""
        async for _ in hints.hints_of(layer, hints.ACCESS):
            await self._try(self.look_for_ended_sessions)

    async def _try(self, look: Callable[[], Awaitable[None]]) -> None:
        try:
            await look()
        except Exception:
            # One poll that fails must not end later ones, on which every open tab relies.
            log.exception("events.look_failed")

    async def look_at_versions(self) -> None:
        """Publish changes of clusters that have subscribers."""
        wanted = {topic for topic in self._hub.topics if topic.startswith("cluster:")}
        if not wanted:
            return
        try:
            values = await self._ask(_cluster_values)
        except Error:
            # Pages report that: they show the last data, and its age.
            values = dict.fromkeys(wanted, AWAY)
        for topic in wanted & values.keys():
            self._hub.publish(topic, values[topic])

    async def look_at_tables(self) -> None:
        """Publish that the collector's tables changed, or that they are stale."""
        wanted = {topic for topic in self._hub.topics if topic.startswith(("live:", "health:"))}
        if not wanted or self.snapshots is None:
            return
        look = partial(_table_values, self._ticks, self.snapshots, wanted)
        values = await asyncio.get_running_loop().run_in_executor(self._tables_thread, look)
        for topic, value in values.items():
            self._hub.publish(topic, value)

    async def look_for_ended_sessions(self) -> None:
        """End the streams of sessions that are gone or expired, or whose user is disabled."""
        keys = self._hub.session_keys
        if not keys:
            return
        # While the database does not answer, streams go on as below.
        with suppress(Error):
            for key in keys - await self._ask(lambda: visitors.lasting(keys)):
                self._hub.end_session(key)

    async def look_at_sessions(self) -> None:
        """End the streams of sessions that are not valid any more."""
        for key in self._hub.session_keys:
            try:
                is_valid = await self._ask(partial(visitors.is_valid, key))
            except Error as error:
                # An unknown state is no reason to end a session that was valid a minute ago; pages
                # cannot be read meanwhile either.
                log.warning("events.sessions_unchecked reason=%s", type(error).__name__)
                return
            if not is_valid:
                self._hub.end_session(key)

    async def _ask(self, question: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, question)


def _table_values(
    ticks: Ticks, snapshots: Callable[[], Snapshot], wanted: set[str]
) -> dict[str, str]:
    """Return each wanted topic's value for the present tables."""
    snapshot = snapshots()
    told = {}
    for topic in wanted:
        kind, _, cluster_id = topic.partition(":")
        if kind == "live":
            told[topic] = ticks.live(snapshot, cluster_id, now_s=time.time())
        else:
            told[topic] = health(snapshot, cluster_id)
    return told


def _cluster_values() -> dict[str, str]:
    """Return each cluster topic's value; any difference makes pages refresh."""
    try:
        is_agent_gone = selectors.is_agent_gone()
        said = selectors.agent_condition()
        can_change = not selectors.agent_trouble()
        return {
            f"cluster:{cluster_id}": json.dumps(
                {
                    "version": version,
                    "is_agent_gone": is_agent_gone,
                    "is_regressed": said is not None and said.is_regressed,
                    "can_change": can_change,
                }
            )
            for cluster_id, version in selectors.versions().items()
        }
    finally:
        close_old_connections()
