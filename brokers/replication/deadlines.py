"""Serves thousands of waits with one coarse timer of the event loop.

Knows nothing of the waiters. A deadline is rounded up to a slot, and slots grow with the time: 4 ms
for short ones, half a second for the usual 30 s of a producer. So there are never more than some
hundred slots, a wait costs two entries in a dict, and none fires early. A wait that must not be
half a second late is added for a part of its time, and again for the rest with `add_exact`.
"""

import asyncio
from heapq import heappop, heappush
from typing import Final, Protocol

from brokers.clock import Clock

# The finest slot. Below it a client could not tell a slot from the latency of the kernel.
MIN_SLOT_MS: Final = 4
# The time for expiring in one turn of the loop, plus the current wait: thousands may be due at
# once, and the end of each may read and answer.
SLICE_SECONDS: Final = 0.005
# A slot is at most this share of the time to wait.
SLOT_SHARE: Final = 32
# The longest exact wait: each may need a slot of its own, so there are never more of them.
MAX_EXACT_MS: Final = 256


class Expiring(Protocol):
    """A waiter; it stores `due_ms` for the deadlines and is called once its time is over."""

    due_ms: int

    def expire(self) -> None: ...


class Deadlines:
    """Belongs to the event loop."""

    __slots__ = ("_armed", "_armed_ms", "_clock", "_due", "_loop", "_slots")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._slots: dict[int, dict[Expiring, None]] = {}  # by their due times
        self._due: list[int] = []  # a heap of the same times
        self._armed: asyncio.TimerHandle | None = None
        self._armed_ms = 0

    def __len__(self) -> int:
        return sum(map(len, self._slots.values()))

    def add(self, waiter: Expiring, after_ms: int) -> None:
        """Expire `waiter` after this time, or a little later."""
        after_ms = max(after_ms, 0)
        slot_ms = max(MIN_SLOT_MS, 1 << (after_ms // SLOT_SHARE).bit_length() >> 1)
        now_ms = self._now_ms()
        self._put(waiter, (now_ms + after_ms | slot_ms - 1) + 1, now_ms)

    def add_exact(self, waiter: Expiring, after_ms: int) -> None:
        """Expire `waiter` after this time, which is short, and at most a millisecond later."""
        assert 0 <= after_ms <= MAX_EXACT_MS, f"an exact wait of {after_ms} ms"
        now_ms = self._now_ms()
        # Plus one, since this millisecond has begun already.
        self._put(waiter, now_ms + after_ms + 1, now_ms)

    def _put(self, waiter: Expiring, due_ms: int, now_ms: int) -> None:
        waiter.due_ms = due_ms
        slot = self._slots.get(due_ms)
        if slot is not None:
            slot[waiter] = None
            return
        self._slots[due_ms] = {waiter: None}
        heappush(self._due, due_ms)
        if self._armed is None or due_ms < self._armed_ms:
            self._arm(due_ms, now_ms)

    def remove(self, waiter: Expiring) -> None:
        """Remove a wait that has ended; repeated calls do nothing."""
        slot = self._slots.get(waiter.due_ms)
        if slot is not None:
            slot.pop(waiter, None)

    def expire_due(self) -> None:
        """End the waits whose time is over, and arm the timer for the next ones."""
        now_ms = self._now_ms()
        try:
            self._expire_until(now_ms)
        finally:
            # An error of one wait must not delay the others.
            self._armed = None
            if self._due:
                self._arm(self._due[0], now_ms)

    def _expire_until(self, now_ms: int) -> None:
        until = self._clock.monotonic() + SLICE_SECONDS
        while self._due and (self._due[0] <= now_ms or not self._slots[self._due[0]]):
            slot = self._slots[self._due[0]]
            # One by one, since the end of a wait may end another.
            while slot:
                waiter, _none = slot.popitem()
                waiter.expire()
                if slot and self._clock.monotonic() >= until:
                    return  # the rest follows in the next turn
            del self._slots[heappop(self._due)]

    def _now_ms(self) -> int:
        return int(self._clock.monotonic() * 1000)

    def _arm(self, due_ms: int, now_ms: int) -> None:
        if self._armed is not None:
            self._armed.cancel()
        self._armed_ms = due_ms
        self._armed = self._loop.call_later(max(0, due_ms - now_ms) / 1000, self.expire_due)
