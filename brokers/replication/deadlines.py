"""Serves thousands of waits with one coarse timer of the event loop.

Knows nothing of the waiters. A deadline is rounded up to a slot, and slots grow with the time: 4 ms
for short ones, half a second for the usual 30 s of a producer. So there are never more than some
hundred slots, a wait costs two entries in a dict, and none fires early. A wait that must not be
half a second late is added for a part of its time, and again for the rest with `add_exact`.

The kernel's waits have whole milliseconds. So the loop wakes up to one before an exact wait ends,
and turns without waiting until then: these are rare, and other events are served in every turn.
"""

import asyncio
import math
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
# The longest exact wait, and the slots of a millisecond: so there are never more than ten times as
# many slots.
MAX_EXACT_MS: Final = 256
EXACT_SLOTS: Final = 10
# What fractions lose in arithmetic.
NOISE_MS: Final = 1e-6
# By this the loop wakes before an exact wait ends: one step of the kernel.
_WAKE_EARLY_MS: Final = 1.0


class Expiring(Protocol):
    """A waiter; it stores `due_ms` for the deadlines and is called once its time is over."""

    due_ms: float

    def expire(self) -> None: ...


class Deadlines:
    """Belongs to the event loop."""

    __slots__ = ("_armed", "_armed_ms", "_clock", "_due", "_exact", "_loop", "_slots")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._slots: dict[float, dict[Expiring, None]] = {}  # by their due times
        self._due: list[float] = []  # a heap of the same times
        self._exact: set[float] = set()  # those of exact waits
        self._armed: asyncio.TimerHandle | None = None
        self._armed_ms = 0.0

    def __len__(self) -> int:
        return sum(map(len, self._slots.values()))

    def add(self, waiter: Expiring, after_ms: int) -> None:
        """Expire `waiter` after this time, or a little later."""
        after_ms = max(after_ms, 0)
        slot_ms = max(MIN_SLOT_MS, 1 << (after_ms // SLOT_SHARE).bit_length() >> 1)
        now_ms = self._now_ms()
        self._put(waiter, (int(now_ms) + after_ms | slot_ms - 1) + 1, now_ms)

    def add_exact(self, waiter: Expiring, after_ms: float) -> None:
        """Expire `waiter` after this time, which is short, and a tenth of a millisecond later."""
        assert 0 <= after_ms <= MAX_EXACT_MS, f"an exact wait of {after_ms} ms"
        now_ms = self._now_ms()
        due_ms = math.ceil((now_ms + after_ms - NOISE_MS) * EXACT_SLOTS) / EXACT_SLOTS
        self._exact.add(due_ms)
        self._put(waiter, due_ms, now_ms)

    def _put(self, waiter: Expiring, due_ms: float, now_ms: float) -> None:
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

    def _expire_until(self, now_ms: float) -> None:
        until = self._clock.monotonic() + SLICE_SECONDS
        while self._due and (self._due[0] <= now_ms + NOISE_MS or not self._slots[self._due[0]]):
            slot = self._slots[self._due[0]]
            # One by one, since the end of a wait may end another.
            while slot:
                waiter, _none = slot.popitem()
                waiter.expire()
                if slot and self._clock.monotonic() >= until:
                    return  # the rest follows in the next turn
            due_ms = heappop(self._due)
            self._exact.discard(due_ms)
            del self._slots[due_ms]

    def _now_ms(self) -> float:
        return self._clock.monotonic() * 1000

    def _arm(self, due_ms: float, now_ms: float) -> None:
        if self._armed is not None:
            self._armed.cancel()
        self._armed_ms = due_ms
        wait_ms = due_ms - now_ms - (_WAKE_EARLY_MS if due_ms in self._exact else 0.0)
        self._armed = self._loop.call_later(max(0.0, wait_ms) / 1000, self.expire_due)
