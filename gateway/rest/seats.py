"""Counts what each caller has open of a kind, over all workers that share a server.

A worker reports the seats of its callers, and learns how many they have with the other workers.
`taken` compares with the answer to the last report, so that no call waits; `reserve`, for what is
opened seldom and costs much, asks before it lets a caller in. While the server does not answer,
each worker counts alone. Belongs to one event loop.
"""

import asyncio
import itertools
import logging
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Final, Protocol

from gateway.access.callers import Caller
from gateway.rest.codes import ApiError, Code
from gateway.shared.store import Seated

log: Final = logging.getLogger(__name__)
REPORT_SECONDS: Final = 0.5
# A worker that was killed holds the seats of its callers this long; some reports may be lost.
TTL_SECONDS: Final = 3.0
# Rows of one report, of some hundred bytes each; callers beyond them are counted by their worker.
MAX_ROWS: Final = 1_000
# The Retry-After of a caller that has too much open: other programs of it may end theirs.
COMES_BACK_S: Final = 1
# A report is no request for a seat: the server takes it whatever the sum is.
ANY: Final = 2**31


class Shared(Protocol):
    """The server that workers share; None if it does not answer."""

    async def seat(
        self, rows: Sequence[Seated], *, worker: str, ttl_s: float
    ) -> Sequence[int] | None: ...


class Ledger:
    """The seats of all kinds in one worker, and their exchange with the other workers."""

    def __init__(self, worker: str, shared: Callable[[], Shared]) -> None:
        # Workers of several hosts have the same names.
        self._worker = f"{worker}-{secrets.token_hex(4)}"
        self._shared = shared
        self._kinds: list[Seats] = []
        # Answers to calls that run at once come in any order: the server keeps the latest count.
        self._orders = itertools.count(1)
        self._reporting: asyncio.Task[None] | None = None
        self._has_news = asyncio.Event()

    def add(self, kind: "Seats") -> None:
        self._kinds.append(kind)

    def begin(self) -> None:
        """Report from now on, until no caller has a seat."""
        if self._reporting is None:
            self._reporting = asyncio.create_task(self._report_often())

    def hurry(self) -> None:
        """Report at once."""
        self._has_news.set()

    async def ask(self, what: str, key: str, *, seats: int, most: int) -> int:
        """Report a caller's seats of a kind unless they are too many; return those elsewhere."""
        found = await self._told([self._row(what, key, seats, most)])
        return 0 if found is None else found[0]

    def drain(self) -> None:
        """Do nothing: open calls keep their seats."""

    async def close(self) -> None:
        if self._reporting is not None:
            self._reporting.cancel()
            await asyncio.gather(self._reporting, return_exceptions=True)

    async def _report_often(self) -> None:
        while True:
            try:
                async with asyncio.timeout(REPORT_SECONDS):
                    await self._has_news.wait()
            except TimeoutError:
                pass
            self._has_news.clear()
            counts = [(kind, *row) for kind in self._kinds for row in kind.changes()][:MAX_ROWS]
            if not counts:
                self._reporting = None
                return
            try:
                found = await self._told([self._row(k.what, key, n, ANY) for k, key, n in counts])
            except Exception:
                # The next round may succeed; until then, each worker counts alone.
                log.exception("seats.report_failed")
                found = None
            for number, (kind, key, _) in enumerate(counts):
                kind.hear(key, 0 if found is None else found[number])

    def _row(self, what: str, key: str, seats: int, most: int) -> Seated:
        return Seated(what=what, name=key, seats=seats, most=most, order=next(self._orders))

    async def _told(self, rows: Sequence[Seated]) -> Sequence[int] | None:
        try:
            shared = self._shared()
        except ApiError:
            # The agent has not written the cluster's id yet.
            return None
        return await shared.seat(rows, worker=self._worker, ttl_s=TTL_SECONDS)


class Seats:
    """The seats of one kind: of all callers in this worker, and of each over all workers."""

    def __init__(
        self,
        what: str,
        *,
        most: int,
        each: int,
        code: Code = Code.TOO_MANY,
        ledger: Ledger | None = None,
    ) -> None:
        self.what = what
        self.most = most
        self._each = each
        self._code = code
        self._ledger = ledger
        self._taken: Counter[str] = Counter()
        self._count = 0
        # The seats of callers with other workers.
        self._elsewhere: dict[str, int] = {}
        # Callers without a seat here, which the other workers do not know yet.
        self._gone: set[str] = set()
        if ledger is not None:
            ledger.add(self)

    @contextmanager
    def taken(self, caller: Caller) -> Iterator[None]:
        """Hold a seat during the block."""
        self._enter(caller.key, elsewhere=self._elsewhere.get(caller.key, 0))
        try:
            yield
        finally:
            self._leave(caller.key)

    @asynccontextmanager
    async def reserved(self, caller: Caller) -> AsyncIterator[None]:
        """Hold a seat during the block, as `reserve` takes it."""
        await self.reserve(caller)
        try:
            yield
        finally:
            self.release(caller.key)

    async def reserve(self, caller: Caller) -> None:
        """Take a seat until `release`, once the other workers have told their counts."""
        key = caller.key
        # First, so that two calls at once do not get the last seat.
        self._enter(key, elsewhere=0)
        if self._ledger is None:
            return
        own = self._taken[key]
        is_in = False
        try:
            elsewhere = await self._ledger.ask(self.what, key, seats=own, most=self._each)
            if elsewhere + own > self._each:
                raise self._full_of(key, elsewhere + own - 1)
            is_in = True
        finally:
            if not is_in:
                self._leave(key)

    def release(self, key: str) -> None:
        """Give a seat back that was reserved."""
        self._leave(key)
        if self._ledger is not None:
            self._ledger.hurry()

    def changes(self) -> list[tuple[str, int]]:
        """Return what to report: the seats of each caller, and callers that have none any more."""
        gone = [(key, 0) for key in self._gone if key not in self._taken]
        self._gone.clear()
        return [*gone, *self._taken.items()]

    def hear(self, key: str, elsewhere: int) -> None:
        """Take over how many seats a caller has with other workers."""
        if elsewhere and key in self._taken:
            self._elsewhere[key] = elsewhere
        else:
            self._elsewhere.pop(key, None)

    def _enter(self, key: str, *, elsewhere: int) -> None:
        if self._taken[key] + elsewhere >= self._each:
            raise self._full_of(key, self._taken[key] + elsewhere)
        if self._count >= self.most:
            raise self._full(f"this worker has {self.most} {self.what} open")
        self._taken[key] += 1
        self._count += 1
        if self._ledger is not None:
            self._ledger.begin()

    def _leave(self, key: str) -> None:
        self._taken[key] -= 1
        self._count -= 1
        if not self._taken[key]:
            del self._taken[key]
            self._elsewhere.pop(key, None)
            if self._ledger is not None:
                self._gone.add(key)

    def _full_of(self, key: str, seats: int) -> ApiError:
        return self._full(f"{key} has {seats} {self.what} open")

    def _full(self, who: str) -> ApiError:
        return ApiError(
            self._code,
            f"{who}, which is the maximum: end some, or try again",
            retry_after_s=COMES_BACK_S,
        )
