"""Provides the agent's access to the database: separate threads and connections by kind of work.

The only place where asyncio meets the ORM. A statement that waits for a lock delays only its own
lane, so that a proposal that waits for a row delays neither a fence nor the feed of changes. A
connection is closed when the database fails, and the next query opens a new one.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

from django.db import DatabaseError, InterfaceError, InternalError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from brokers.controlplane import database

# How long a statement of a lane waits for a lock. A fence is retried at once and must not delay the
# fences after it. The wait of a proposal ends before the patience of its caller, since its own
# error says more than that the database has not answered.
LIVENESS_LOCK_S: Final = 1.0
PROPOSAL_LOCK_S: Final = 2.5
# Reading needs no lock that is held for longer than a commit.
FEED_LOCK_S: Final = 3.0
# Calls of brokers that PostgreSQL works on at once: one that waits for a row leaves two. SQLite has
# one writer, and a second thread would only wait.
PROPOSAL_THREADS: Final = 3

T = TypeVar("T")


class Busy(ConnectionError):
    """A lock was not available in time: nothing was done, and the database is healthy."""


class Unanswered(Busy):
    """A query has not ended in time: its result is unknown, and so is what it waits for."""


class Lane:
    """Threads for one kind of work, each with its own connection. Belongs to one event loop."""

    def __init__(
        self, name: str, *, threads: int = 1, lock_timeout_s: float, is_urgent: bool = False
    ) -> None:
        self._lock_timeout_s = lock_timeout_s
        self._is_urgent = is_urgent
        self._generation = 0
        self._here = threading.local()
        self._connections: list[BaseDatabaseWrapper] = []
        self._threads = ThreadPoolExecutor(threads, name, initializer=self._begin_thread)

    async def run(
        self, question: Callable[..., T], *, patience_s: float | None = None, **arguments: object
    ) -> T:
        """Query in a thread; ConnectionError while the database is away, Busy if a lock is held.

        A query that has waited for `patience_s` is Busy too: it is cancelled if no thread has
        begun with it, and otherwise its result is discarded.
        """
        job = self._threads.submit(self._ask, self._generation, question, arguments)
        answer = asyncio.wrap_future(job)
        if patience_s is None:
            return await answer
        try:
            done, _ = await asyncio.wait({answer}, timeout=patience_s)
        finally:
            # Cancels queries that no thread has begun with, before the loop turns.
            job.cancel()
            answer.cancel()
        if not done:
            raise Unanswered(f"the database has not answered within {round(patience_s, 2):g} s")
        return answer.result()

    def reconnect(self) -> None:
        """Make every thread open a new connection: old ones may be dead or of a replaced file."""
        self._generation += 1

    async def close(self) -> None:
        """Wait for running queries, at most a statement's time limit, and close connections."""
        await asyncio.to_thread(self._close)

    def _begin_thread(self) -> None:
        connection = database.use_own_connection(
            lock_timeout_s=self._lock_timeout_s, is_urgent=self._is_urgent
        )
        # It is closed by another thread in the end.
        connection.inc_thread_sharing()
        self._connections.append(connection)
        self._here.place = None

    def _ask(self, generation: int, question: Callable[..., T], arguments: dict[str, Any]) -> T:
        """Run a query; translate database errors, and close the connection after a failure."""
        try:
            # Writes to an open file are lost after another file took its name.
            place = (generation, database.file_of(database.connection()))
            if self._here.place != place:
                self._here.place = place
                _hang_up(database.connection())
            return question(**arguments)
        # Internal is also what PostgreSQL calls a server that takes no writes, as after a failover.
        except (OperationalError, InterfaceError, InternalError) as error:
            if database.is_lock_timeout(error):
                raise Busy(database.blamed(str(error).strip(), database.connection())) from error
            _hang_up(database.connection())
            raise ConnectionError(str(error)) from error

    def _close(self) -> None:
        self._threads.shutdown()
        for connection in self._connections:
            _hang_up(connection)


class Lanes:
    """One lane for each kind of an agent's work."""

    def __init__(self) -> None:
        # Registrations, fences, and letting brokers in: small, urgent, one after the other.
        self.liveness = Lane("liveness", lock_timeout_s=LIVENESS_LOCK_S, is_urgent=True)
        self.feed = Lane("feed", lock_timeout_s=FEED_LOCK_S)
        self.proposals = Lane(
            "proposals",
            threads=PROPOSAL_THREADS if database.is_postgres() else 1,
            lock_timeout_s=PROPOSAL_LOCK_S,
        )

    def reconnect(self) -> None:
        for lane in (self.liveness, self.feed, self.proposals):
            lane.reconnect()

    async def close(self) -> None:
        for lane in (self.liveness, self.feed, self.proposals):
            await lane.close()


def _hang_up(connection: BaseDatabaseWrapper) -> None:
    with suppress(DatabaseError):
        connection.close()
