"""Shares one slice of the event loop among all long work of a kind, one step each.

Knows nothing of the work. A change of the cluster, or the scan of all offsets, gives every shard of
a coordinator much to do at once, and a hundred clients may request a search of a second at the same
time; if each had a slice of its own, fifty of them would hold the loop for fifty slices.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from typing import Final, Generic, Protocol, TypeVar

from brokers.clock import Clock

T = TypeVar("T")

# The time of all work in one turn of the loop, plus the current step.
SLICE_SECONDS: Final = 0.002


class Turning(Protocol):
    """Work to do; the flag belongs to the turns."""

    has_turn_coming: bool

    def take_turn(self) -> bool:
        """Do one small step; return whether there are more."""


class Turns:
    """Belongs to the event loop. `event` is the name under which bugs in the work are reported."""

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
        """Schedule a turn, behind those that already wait."""
        if not who.has_turn_coming:
            who.has_turn_coming = True
            self._waiting.append(who)
            self._come()

    async def result_of(self, steps: Generator[None, None, T]) -> T:
        """Return or raise the result of the work; drop its steps when the caller is cancelled."""
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
    """Limits the running works of a kind, since each holds much memory meanwhile."""

    __slots__ = ("_inside", "_line", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._inside = 0
        self._line: dict[object, None] = {}  # the waiting ones, in order of arrival

    def through(self, steps: Generator[None, None, T]) -> Generator[None, None, T]:
        """Yield the same steps, after pauses in front of the first one while others run."""
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
    """Steps with an awaited result."""

    __slots__ = ("_found", "_steps", "has_turn_coming")

    def __init__(self, steps: Generator[None, None, T], found: "asyncio.Future[T]") -> None:
        self.has_turn_coming = False
        self._found = found
        self._steps = steps

    def take_turn(self) -> bool:
        if self._found.done():
            self._steps.close()  # the caller is gone
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
