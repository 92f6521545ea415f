"""Signals that another connection may have changed the database.

The signal is a hint that may come late, twice, or for nothing: the reader queries the database for
changes. SQLite counts the commits of other connections, so one connection is kept for the counter
and never writes; PostgreSQL sends notifications, and is also polled at intervals, because a
notification may be lost with its connection.
"""

import asyncio
from contextlib import suppress
from typing import Final, Protocol

from django.db import DatabaseError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from brokers.controlplane import database

# 20 times a second at 3 µs each: a change is seen after 25 ms on average, at almost no cost.
SQLITE_POLL_S: Final = 0.05
# In case a notification is lost; they usually arrive within a millisecond or two.
POSTGRES_POLL_S: Final = 0.5
# The counter is read in the loop, which a lock on the whole file must not stop.
LOCK_S: Final = 0.05


class Feed(Protocol):
    """The commit signal of one reader. Opened again after the database was away."""

    # How long to go without asking `has_news`.
    poll_s: float

    def open(self) -> None:
        """Connect; runs in the thread of the store, since it may wait for a server."""
        ...

    def attach(self, woken: asyncio.Event) -> None:
        """Begin to set the event when a change is signalled; runs in the loop."""
        ...

    def has_news(self) -> bool:
        """Tell whether to query now; False: there is no change that this feed would notice."""
        ...

    def detach(self) -> None:
        """Stop listening; runs in the loop, before `close`."""
        ...

    def close(self) -> None:
        """Close the connection; runs in the thread of the store."""
        ...


class SqliteFeed:
    """See the module."""

    poll_s = SQLITE_POLL_S

    def __init__(self) -> None:
        self._wrapper: BaseDatabaseWrapper | None = None
        self._seen = -1
        # The id of the open file: another one may have replaced it.
        self._file: tuple[int, int] | None = None

    def open(self) -> None:
        self.close()
        # SQLite would create an empty database if there is none.
        self._file = database.file_of(database.connection())
        self._wrapper = _connected()

    def attach(self, woken: asyncio.Event) -> None:
        """Do nothing: the counter is polled."""

    def has_news(self) -> bool:
        assert self._wrapper is not None, "the feed is open"
        if database.file_of(self._wrapper) != self._file:
            raise OperationalError("another database was put in the place of this one")
        # Past Django's cursor, which refuses to work in a loop: this waits for nothing.
        with self._wrapper.wrap_database_errors:
            (version,) = self._wrapper.connection.execute("PRAGMA data_version").fetchone()
        before, self._seen = self._seen, int(version)
        return self._seen != before

    def detach(self) -> None:
        """Do nothing: nothing was attached."""

    def close(self) -> None:
        wrapper, self._wrapper = self._wrapper, None
        if wrapper is not None:
            wrapper.close()


class PostgresFeed:
    """See the module."""

    poll_s = POSTGRES_POLL_S

    def __init__(self) -> None:
        self._wrapper: BaseDatabaseWrapper | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._fd = -1

    def open(self) -> None:
        self.close()
        self._wrapper = wrapper = _connected()
        with wrapper.cursor() as cursor:
            cursor.execute(f"LISTEN {database.CHANNEL}")

    def attach(self, woken: asyncio.Event) -> None:
        assert self._wrapper is not None, "the feed is open"
        self._loop = asyncio.get_running_loop()
        self._fd = self._wrapper.connection.fileno()
        self._loop.add_reader(self._fd, self._hear, woken)

    def has_news(self) -> bool:
        """Return True always: notifications while there was no listener are lost."""
        return True

    def detach(self) -> None:
        if self._loop is not None and self._fd >= 0:
            self._loop.remove_reader(self._fd)
            self._fd = -1

    def close(self) -> None:
        wrapper, self._wrapper = self._wrapper, None
        if wrapper is not None:
            with suppress(DatabaseError):
                wrapper.close()

    def _hear(self, woken: asyncio.Event) -> None:
        assert self._wrapper is not None, "only an open feed hears"
        try:
            for _ in self._wrapper.connection.notifies(timeout=0):
                woken.set()
        # The driver's own errors are not Django's here, and all mean one thing: the connection is
        # gone. The next look at the database fails too, and opens a new one.
        except Exception:  # noqa: BLE001
            self.detach()
            woken.set()


def make_feed() -> Feed:
    """Return the feed for the database that is configured."""
    return PostgresFeed() if database.is_postgres() else SqliteFeed()


def _connected() -> BaseDatabaseWrapper:
    """Return a separate connection, which other threads may use too."""
    wrapper = database.own_connection(lock_timeout_s=LOCK_S)
    wrapper.inc_thread_sharing()
    wrapper.ensure_connection()
    return wrapper
