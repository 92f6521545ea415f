"""Shares one slice of the event loop among all long work of a kind, one step each.

Knows nothing of the work. A change of the cluster, or the look through all offsets, gives every
shard of a coordinator much to do at once, and a hundred clients may ask for a search of a second at
the same time; if each had a slice of its own, fifty of them would hold the loop for fifty slices.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from typing import Final, Generic, Protocol, TypeVar

from brokers.clock import Clock

T = TypeVar("T")

# What all together may take of one turn of the loop, and the one step that is under way.
SLICE_SECONDS: Final = 0.002


class Turning(Protocol):
    """Whoever has something to do; the flag belongs to the turns."""

    has_turn_coming: bool

    def take_turn(self) -> bool:
        """One small step; whether there are more to take."""


class Turns:
    """Belongs to the event loop. `event` is what a bug of whoever has a turn is reported as."""

    __slots__ = ("_clock", "_event", "_is_coming", "_loop", "_on_trouble", "_waiting")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        on_trouble: Callable[[str, Exception], None],
        *,
        event: str,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._on_trouble = on_trouble
        self._event = event
        self._waiting: deque[Turning] = deque()  # each of them once
        self._is_coming = False

    def __len__(self) -> int:
        return len(self._waiting)

    def come(self, who: Turning) -> None:
        """Gives somebody a turn soon, behind those who wait for theirs."""
        if not who.has_turn_coming:
            who.has_turn_coming = True
            self._waiting.append(who)
            self._come()

    async def result_of(self, steps: Generator[None, None, T]) -> T:
        """What the work returns or raises. Its steps are dropped when the caller is cancelled."""
        found: asyncio.Future[T] = self._loop.create_future()
        self.come(_Work(steps, found))
        return await found

    def _come(self) -> None:
        if not self._is_coming:
            self._is_coming = True
            self._loop.call_soon(self._go_round)

    def _go_round(self) -> None:
        self._is_coming = False
        began = self._clock.monotonic()
        while self._waiting:
            who = self._waiting.popleft()
            who.has_turn_coming = False
            try:
                has_more = who.take_turn()
            except Exception as error:  # noqa: BLE001 - a bug in one must not stop the others
                self._on_trouble(self._event, error)
                has_more = False
            if has_more and not who.has_turn_coming:
                who.has_turn_coming = True
                self._waiting.append(who)
            if self._clock.monotonic() - began >= SLICE_SECONDS:
                break
        if self._waiting:
            self._come()


class Gate:
    """Lets few works of a kind be under way at a time, since each holds much memory meanwhile."""

    __slots__ = ("_inside", "_line", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._inside = 0
        self._line: dict[object, None] = {}  # who waits, in the order of coming

    def through(self, steps: Generator[None, None, T]) -> Generator[None, None, T]:
        """The same steps, with pauses in front of the first one while others are inside."""
        me = object()
        self._line[me] = None
        try:
            while self._inside >= self._most or next(iter(self._line)) is not me:
                yield
        finally:
            del self._line[me]
        self._inside += 1
        try:
            return (yield from steps)
        finally:
            self._inside -= 1


class _Work(Generic[T]):
    """Steps whose result somebody awaits."""

    __slots__ = ("_found", "_steps", "has_turn_coming")

    def __init__(self, steps: Generator[None, None, T], found: "asyncio.Future[T]") -> None:
        self.has_turn_coming = False
        self._found = found
        self._steps = steps

    def take_turn(self) -> bool:
        if self._found.done():
            self._steps.close()  # nobody waits any more
            return False
        try:
            next(self._steps)
        except StopIteration as end:
            self._found.set_result(end.value)
        except Exception as error:  # noqa: BLE001 - it belongs to whoever waits
            self._found.set_exception(error)
        else:
            return True
        return False
