"""Runs the timers of one shard, which are set far more often than they fire.

Does not know their purpose. Every heartbeat of a member postpones its timeout, so resetting a timer
only notes the time; the existing deadline fires early, finds that, and is set for the rest.

A distant deadline is coarse: one of 45 s may be a second late. So it is set for a part of the time
that leaves more than that, and then for the rest, until the rest is short enough to be exact.
Only a timer that runs out takes these steps: three for a minute, four for half an hour.
"""

from collections.abc import Callable

from brokers.clock import Clock
from brokers.coordination.shard import SetTimer, Timer, TimerKey
from brokers.replication.deadlines import MAX_EXACT_MS, NOISE_MS, SLOT_SHARE, Deadlines


class _Entry:
    """One timer; `due_ms` is the slot of its deadline. Times are milliseconds with fractions."""

    __slots__ = ("_timers", "armed_ms", "due_ms", "key", "wanted_ms")

    def __init__(self, timers: "Timers", key: TimerKey, wanted_ms: float) -> None:
        self._timers = timers
        self.key = key
        self.wanted_ms = wanted_ms
        self.armed_ms = wanted_ms
        self.due_ms = 0.0

    def expire(self) -> None:
        self._timers.expired(self)


class Timers:
    """Belongs to the event loop. `fire` gets the key of a timer that is already removed."""

    __slots__ = ("_clock", "_deadlines", "_entries", "_fire")

    def __init__(
        self, deadlines: Deadlines, clock: Clock, fire: Callable[[TimerKey], None]
    ) -> None:
        self._deadlines = deadlines
        self._clock = clock
        self._fire = fire
        # One for each member and purpose, so the shard's own limits bound them.
        self._entries: dict[TimerKey, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: TimerKey) -> bool:
        return key in self._entries

    def take(self, timer: Timer) -> None:
        """Set or cancel a timer, as an outcome requests."""
        if isinstance(timer, SetTimer):
            self.set(timer.key, timer.after_ms, only_if_absent=timer.only_if_absent)
        else:
            self.cancel(timer.key)

    def set(self, key: TimerKey, after_ms: int, *, only_if_absent: bool = False) -> None:
        """Let the timer fire after this time from now, and a tenth of a millisecond later."""
        wanted_ms = self._now_ms() + max(after_ms, 0)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(self, key, wanted_ms)
        elif only_if_absent:
            return
        else:
            entry.wanted_ms = wanted_ms
            if wanted_ms >= entry.armed_ms:
                return
            self._deadlines.remove(entry)
            entry.armed_ms = wanted_ms
        self._arm(entry, max(after_ms, 0))

    def cancel(self, key: TimerKey) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._deadlines.remove(entry)

    def clear(self) -> None:
        for entry in self._entries.values():
            self._deadlines.remove(entry)
        self._entries.clear()

    def expired(self, entry: _Entry) -> None:
        """Handle an entry whose deadline is over; called by the entry."""
        left_ms = entry.wanted_ms - self._now_ms()
        if left_ms > NOISE_MS:
            entry.armed_ms = entry.wanted_ms
            self._arm(entry, left_ms)
            return
        del self._entries[entry.key]
        self._fire(entry.key)

    def _arm(self, entry: _Entry, after_ms: float) -> None:
        if after_ms <= MAX_EXACT_MS:
            self._deadlines.add_exact(entry, after_ms)
        else:
            # Its slot is no longer than the time left out, so it is never late.
            self._deadlines.add(entry, int(after_ms - after_ms // SLOT_SHARE - 1))

    def _now_ms(self) -> float:
        return self._clock.monotonic() * 1000
