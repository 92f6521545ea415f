"""Flushes logs to the disk: while one flush of a log runs, appends collect for the next one.

Its threads run `FlushTicket.run` and touch nothing else; everything around it happens on the event
loop. Besides these a broker has only the threads of `recompressor`. A flush begins at the end of
the loop's turn in which it was requested, so that it covers all appends of the turn, and an idle
log waits for nothing.

Producers that wait for their answers come back together once a flush has confirmed their records.
Without control they soon arrive as one crowd, so that the disk is idle while the loop works, and
the other way round. So if a flush ends and few producers have come for the next one, it waits for
half of all that take part, or a few turns of the loop; and once half of them are there it begins at
once, in the middle of a turn. Then one half is on its way to the disk while the loop serves the
other. Appends later than `CROWD_SECONDS` after a flush are not part of its crowd.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from brokers.clock import Clock
from brokers.protocol.errors import KafkaError
from brokers.replication.threads import Threads
from brokers.storage.errors import LogDirFailed
from brokers.storage.fsync import FlushTicket

# One broker does not saturate a disk that can do more at once.
MAX_PARALLEL: Final = 8
# Turns of the loop for which a flush waits for more appends: enough for clients that were just
# answered, if they have something to send at all.
EARLY_TURNS: Final = 2
# Clients that were answered and have more to send are back within this; later appends are another
# crowd, which goes to the disk in one piece.
CROWD_SECONDS: Final = 0.002
# After a flush that was refused for want of space or of descriptors.
RETRY_SECONDS: Final = 0.2
# The ticket has stored the error and raises it for its owner, even if it is a bug.
_WHATEVER: Final = suppress(BaseException)


class Flushable(Protocol):
    """A log with an owner. Both flags are the flusher's."""

    is_flush_asked: bool
    is_flushing: bool

    @property
    def is_flush_early(self) -> bool:
        """Whether fewer appends have come for the next flush than are likely to come at once."""

    def begin_flush(self) -> FlushTicket | None:
        """Return a ticket of what to sync now; None if there is nothing."""

    def finish_flush(self, ticket: FlushTicket | None) -> None:
        """End a flush, or an empty one; raises the ticket's error."""


class Flusher:
    """Belongs to the event loop; calls `on_log_dir_failed` once, and flushes nothing after."""

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
        self._early: list[Flushable] = []  # requested as well, and waiting for more appends
        self._threads = Threads(loop, self._flush, name="flusher", max_threads=max_parallel)
        self._done: deque[tuple[Flushable, FlushTicket]] = deque()
        self._is_starting = False  # a call of `_start` is scheduled
        # The event of `_collect`, while there are threads that may write to it.
        self._wake = -1
        self._is_collecting = False  # a call of `_collect` is scheduled
        self.around: Callable[[Callable[[], None]], None] = _alone
        self._is_stopped = True
        self._idle: asyncio.Future[None] | None = None

    @property
    def running(self) -> int:
        """The number of running flushes."""
        return self._threads.running

    def start(self) -> None:
        """Start the flusher; its threads start one by one, when so many flushes run at once."""
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        # A thread of an earlier run may have set it when all was collected already.
        self._is_collecting = False
        self._loop.add_reader(self._wake, self._collect)
        self._is_stopped = False

    async def stop(self) -> None:
        """Finish the requested flushes, and end the threads."""
        while self._asked or self._early or self.running or self._is_starting:
            self._idle = self._loop.create_future()
            await self._idle
        self._is_stopped = True
        threads = self._threads.stop()
        if self._wake >= 0:
            self._loop.remove_reader(self._wake)
            # All have done their work, but one may not have reported it yet.
            for thread in threads:
                thread.join()
            os.close(self._wake)
            self._wake = -1

    def ask(self, log: Flushable) -> None:
        """Flush a log soon. A request during its flush causes another one."""
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
        """Begin a requested flush that is not running, before the turn is over.

        For a log that has something to flush: the end of an empty flush would be reported within
        this call, and not later.
        """
        for line in (self._early, self._asked):
            if self._has_room and log in line:
                line.remove(log)
                self._begin(log)
                return

    @property
    def _has_room(self) -> bool:
        return self._threads.running < self._max_parallel and not self._is_stopped

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
        self._threads.put((log, ticket))

    def _flush(self, item: tuple[Flushable, FlushTicket]) -> None:
        """Flush, in a thread."""
        with _WHATEVER:
            item[1].run()
        self._done.append(item)
        # Reset before `_collect` looks, so that a later append to the queue wakes it again.
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
                # An error of one log's waiters must not affect the others.
                self._is_collecting = True
                os.eventfd_write(self._wake, 1)
            self._start()

    def _finish_all(self) -> None:
        while self._done:
            log, ticket = self._done.popleft()
            self._threads.running -= 1
            log.is_flushing = False
            was_asked = log.is_flush_asked
            try:
                log.finish_flush(ticket)
            except LogDirFailed as failure:
                self._fail(failure)
            except KafkaError:
                self._retry(log)
            finally:
                # After a failure of the disk nothing starts any more, and `stop` would wait for it.
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
        """Count turns down and start the logs that have waited; others may have joined them."""
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
