"""Brings logs to the disk: while one flush of a log runs, the next one gathers.

The only threads of a broker. Each stands in `FlushTicket.run` and touches nothing else; everything
around it happens on the event loop. A flush begins at the end of the loop's turn in which it was
asked for, so that all that a turn has appended goes with it, and an idle log waits for nothing.

Producers that wait for their answers come back together with what the flush before has confirmed.
Left alone they soon come as one crowd, and disk and loop take turns; or as a crowd and a few, with
the disk idle as long. So where one flush ends and few have come for the next, it waits for half of
all who take part, or a few turns of the loop; and where half of them are there it begins at once,
in the middle of a turn. Then one half is on its way to the disk while the loop serves the other.
Who comes later than `CROWD_SECONDS` after a flush is not a part of its crowd.
"""

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Final, Protocol

from brokers.clock import Clock
from brokers.protocol.errors import KafkaError
from brokers.storage.errors import LogDirFailed
from brokers.storage.fsync import FlushTicket

# A disk that can do more at once is faster than one broker fills it.
MAX_PARALLEL: Final = 8
# How many turns of the loop a flush waits for more to come with it: enough for clients that were
# just answered, if they have something to send at all.
EARLY_TURNS: Final = 2
# Clients that were answered and have more to send are back within this; a crowd that gathers later
# is another one, and goes to the disk in one piece.
CROWD_SECONDS: Final = 0.002
# After a flush that was refused for want of space or of descriptors.
RETRY_SECONDS: Final = 0.2
# The ticket has noted what went wrong and says so to its owner, also when it is a bug.
_WHATEVER: Final = suppress(BaseException)


class Flushable(Protocol):
    """A log with an owner. Both flags are the flusher's."""

    is_flush_asked: bool
    is_flushing: bool

    @property
    def is_flush_early(self) -> bool:
        """Whether less has come for the next flush than is likely to come at once."""

    def begin_flush(self) -> FlushTicket | None:
        """What to sync now; None when nothing waits for it."""

    def finish_flush(self, ticket: FlushTicket | None) -> None:
        """It is done, or there was nothing to do; raises what the ticket says."""


class Flusher:
    """Belongs to the event loop; `on_log_dir_failed` is told once, and nothing is flushed after."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        clock: Clock,
        on_log_dir_failed: Callable[[LogDirFailed], None],
        max_parallel: int = MAX_PARALLEL,
    ) -> None:
        self._loop = loop
        self.clock = clock
        self._on_log_dir_failed = on_log_dir_failed
        self._max_parallel = max_parallel
        self._asked: deque[Flushable] = deque()
        self._early: list[Flushable] = []  # asked as well, and waiting for more to come
        self._work: SimpleQueue[tuple[Flushable, FlushTicket] | None] = SimpleQueue()
        self._done: deque[tuple[Flushable, FlushTicket]] = deque()
        self._threads: list[threading.Thread] = []
        self._running = 0
        self._is_starting = False  # a turn of `_start` is coming
        # What `_collect` listens to, while there are threads that may write to it.
        self._wake = -1
        self._is_collecting = False  # a turn of `_collect` is coming
        self.around: Callable[[Callable[[], None]], None] = _alone
        self._is_stopped = True
        self._idle: asyncio.Future[None] | None = None

    @property
    def running(self) -> int:
        """Flushes that are under way."""
        return self._running

    def start(self) -> None:
        """Threads are started one by one, when so many flushes run at once."""
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        # A thread of the life before may have set it when all was collected already.
        self._is_collecting = False
        self._loop.add_reader(self._wake, self._collect)
        self._is_stopped = False

    async def stop(self) -> None:
        """Finishes what was asked for, and ends the threads."""
        while self._asked or self._early or self._running or self._is_starting:
            self._idle = self._loop.create_future()
            await self._idle
        self._is_stopped = True
        threads, self._threads = self._threads, []
        for _thread in threads:
            self._work.put(None)
        if self._wake >= 0:
            self._loop.remove_reader(self._wake)
            # All have done their work, and one may just be about to say so.
            for thread in threads:
                thread.join()
            os.close(self._wake)
            self._wake = -1

    def ask(self, log: Flushable) -> None:
        """Flushes a log soon. Asked while a flush of it runs, it is flushed once more."""
        if log.is_flush_asked or self._is_stopped:
            return
        log.is_flush_asked = True
        if log.is_flushing:
            return
        self._asked.append(log)
        if not self._is_starting:
            self._is_starting = True
            self._loop.call_soon(self._start)

    def begin(self, log: Flushable) -> None:
        """Begins a flush that was asked for, and is not under way, before the turn is over.

        For a log that has something to flush: the end of one that has not would be told of here,
        and not later.
        """
        for line in (self._early, self._asked):
            if self._has_room and log in line:
                line.remove(log)
                self._begin(log)
                return

    @property
    def _has_room(self) -> bool:
        return self._running < self._max_parallel and not self._is_stopped

    def _start(self) -> None:
        self._is_starting = False
        while self._asked and self._has_room:
            self._begin(self._asked.popleft())
        self._tell_idle()

    def _begin(self, log: Flushable) -> None:
        log.is_flush_asked = False
        try:
            ticket = log.begin_flush()
            if ticket is None:
                log.finish_flush(None)
        except LogDirFailed as failure:
            self._fail(failure)
        except KafkaError:
            self._retry(log)
        else:
            if ticket is not None:
                self._run(log, ticket)

    def _run(self, log: Flushable, ticket: FlushTicket) -> None:
        log.is_flushing = True
        self._running += 1
        self._work.put((log, ticket))
        self._start_thread()

    def _start_thread(self) -> None:
        """One more, where more flushes are under way than there are threads."""
        if self._running <= len(self._threads):
            return
        # Daemons, because an fsync that never returns must not keep the process.
        number = len(self._threads)
        thread = threading.Thread(target=self._flush, name=f"flusher-{number}", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            # The system has none to give; those that are there take the work meanwhile.
            self._loop.call_later(RETRY_SECONDS, self._start_thread)
        else:
            self._threads.append(thread)

    def _flush(self) -> None:
        """The threads."""
        while (item := self._work.get()) is not None:
            with _WHATEVER:
                item[1].run()
            self._done.append(item)
            # Set back before `_collect` looks, so that what is appended after its look wakes again.
            if not self._is_collecting:
                self._is_collecting = True
                os.eventfd_write(self._wake, 1)

    def _collect(self) -> None:
        os.eventfd_read(self._wake)
        self._is_collecting = False
        self.around(self._finish_and_start)

    def _finish_and_start(self) -> None:
        try:
            self._finish_all()
        finally:
            if self._done:
                # Whatever one log's waiters ran into, the others are told.
                self._is_collecting = True
                os.eventfd_write(self._wake, 1)
            self._start()

    def _finish_all(self) -> None:
        while self._done:
            log, ticket = self._done.popleft()
            self._running -= 1
            log.is_flushing = False
            was_asked = log.is_flush_asked
            try:
                log.finish_flush(ticket)
            except LogDirFailed as failure:
                self._fail(failure)
            except KafkaError:
                self._retry(log)
            finally:
                # Once the disk has failed nothing starts any more, and `stop` would wait for it.
                if was_asked and not self._is_stopped:
                    self._put_in_line(log)

    def _put_in_line(self, log: Flushable) -> None:
        if not log.is_flush_early:
            self._asked.append(log)
            return
        if not self._early:
            self._loop.call_soon(self._wait_for_more, EARLY_TURNS)
        self._early.append(log)

    def _wait_for_more(self, turns: int) -> None:
        """Counts turns down and starts those that have waited; others may have joined them."""
        if turns and self._early:
            self._loop.call_soon(self._wait_for_more, turns - 1)
            return
        self._asked += self._early
        self._early.clear()
        self._start()

    def _retry(self, log: Flushable) -> None:
        self._loop.call_later(RETRY_SECONDS, self.ask, log)

    def _fail(self, failure: LogDirFailed) -> None:
        was_stopped, self._is_stopped = self._is_stopped, True
        self._asked.clear()
        self._early.clear()
        if not was_stopped:
            self._on_log_dir_failed(failure)

    def _tell_idle(self) -> None:
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)


def _alone(call: Callable[[], None]) -> None:
    call()
