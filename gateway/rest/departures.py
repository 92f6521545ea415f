"""Lets members of groups leave whose worker was killed, on behalf of that worker.

Their partitions go to the other members within seconds, instead of after the 45 s of a session. A
worker is gone if nothing listens on its own socket: one that is only slow keeps its members.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from gateway.kafka import departure
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.roster import Roster, names_in
from gateway.rest.codes import ApiError

log: Final = logging.getLogger(__name__)
# How often a worker looks for others that have ended: a few system calls.
LOOK_S: Final = 2.0
CONNECT_S: Final = 1.0
# The processes of a home, and some that are not started any more.
MAX_PROCESSES: Final = 200
# The group may be asked again soon; after any other answer, it waits for the session.
PASSING: Final = frozenset(
    {
        "BROKER_NOT_AVAILABLE",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "NOT_COORDINATOR",
        "REQUEST_TIMED_OUT",
    }
)


class Departures:
    """Belongs to one event loop. `own` is the worker's name, whose earlier process has ended."""

    def __init__(
        self,
        folder: Path,
        own: str,
        *,
        connection: Callable[[], Connection],
        socket_of: Callable[[str], Path],
    ) -> None:
        self._folder = folder
        self._own = own
        self._connection = connection
        self._socket_of = socket_of
        self._looking: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start to look. Call it before this process has members."""
        before = Roster(self._folder / self._own).members()
        self._looking = asyncio.create_task(self._look(before))

    async def _look(self, before: list[tuple[str, str]]) -> None:
        while True:
            try:
                before = await self._leave(self._own, before)
                for name in names_in(self._folder)[:MAX_PROCESSES]:
                    if name != self._own:
                        # Read before the look at its socket: a new process has other members.
                        members = Roster(self._folder / name).members()
                        if members and await self._is_gone(name):
                            await self._leave(name, members)
            except Exception:
                # Without any further round, groups would wait for each member's session.
                log.exception("departures.look_failed")
            await asyncio.sleep(LOOK_S)

    async def _is_gone(self, name: str) -> bool:
        try:
            async with asyncio.timeout(CONNECT_S):
                _, writer = await asyncio.open_unix_connection(str(self._socket_of(name)))
        except (ConnectionRefusedError, FileNotFoundError):
            return True
        except (OSError, TimeoutError):
            # It may be busy.
            return False
        writer.close()
        return False

    async def _leave(self, name: str, members: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Let members of a process leave; return those that have to be tried again."""
        roster = Roster(self._folder / name)
        for place, (group, member) in enumerate(members):
            try:
                leave = partial(departure.leave, self._connection(), group, member)
                await asyncio.to_thread(leave)
            except (KafkaFailure, ApiError) as failed:
                if isinstance(failed, ApiError) or failed.name in PASSING:
                    return members[place:]
                log.warning("departures.refused worker=%s group=%s error=%s", name, group, failed)
            else:
                log.warning("departures.left worker=%s group=%s", name, group)
            roster.leave(member)
        return []

    # --- life --------------------------------------------------------------------------------

    def drain(self) -> None:
        """Do nothing: the next look may help a group, and `close` ends it."""

    async def close(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
