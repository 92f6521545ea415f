"""Timers that are put off for next to nothing, and fire once, never early."""

import asyncio
import math
from collections.abc import Callable
from typing import cast

import pytest

from brokers.clock import Clock
from brokers.coordination.shard import CancelTimer, SetTimer, TimerKey
from brokers.coordination.timers import Timers
from brokers.replication.deadlines import Deadlines
from tests.fakes.clock import ManualClock

# What a turn of the loop takes.
TURN_SECONDS = 20e-6
KEY = TimerKey("session", "group", "member")


class Watch:
    """Timers with a clock of their own, and what fired at which millisecond."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.deadlines = Deadlines(asyncio.get_running_loop(), self.clock)
        self.fired: list[tuple[TimerKey, int]] = []
        self.timers = Timers(self.deadlines, self.clock, self._fire)

    def pass_time(self, milliseconds: int) -> None:
        for _ in range(milliseconds):
            self.clock.advance(1)
            self.deadlines.expire_due()

    def _fire(self, key: TimerKey) -> None:
        assert key not in self.timers
        self.fired.append((key, round(self.clock.monotonic() * 1000)))


class LoopTime:
    """A clock, and the part of an event loop that deadlines use, in a time that jumps to its calls.

    As with epoll, a wait takes whole milliseconds; a turn without a wait takes some microseconds.
    """

    def __init__(self, start_ms: float) -> None:
        self.now = start_ms / 1000
        self._handles: list[tuple[float, Callable[[], None]]] = []
        self.wakeups = 0

    def monotonic(self) -> float:
        return self.now

    def call_later(self, delay: float, call: Callable[[], None]) -> "Handle":
        handle = (self.now + delay, call)
        self._handles.append(handle)
        return Handle(self._handles, handle)

    def run_until_idle(self) -> None:
        while self._handles:
            at, call = handle = min(self._handles, key=lambda handle: handle[0])
            wait = at - self.now
            self.now += math.ceil(wait * 1000) / 1000 if wait > 0 else TURN_SECONDS
            self._handles.remove(handle)
            self.wakeups += wait > 0
            call()


class Handle:
    def __init__(
        self,
        handles: list[tuple[float, Callable[[], None]]],
        handle: tuple[float, Callable[[], None]],
    ) -> None:
        self._handles, self._handle = handles, handle

    def cancel(self) -> None:
        self._handles.remove(self._handle)


def on_watch(check: Callable[[Watch], None]) -> None:
    async def run() -> None:
        check(Watch())

    asyncio.run(run())


@pytest.mark.parametrize("after_ms", [0, 1, 255, 256, 257, 1_000, 6_000])
def test_a_timer_fires_once_and_at_its_time(after_ms: int) -> None:
    def check(watch: Watch) -> None:
        watch.clock.advance(3)
        watch.timers.set(KEY, after_ms)
        watch.pass_time(after_ms + 300)
        ((key, at),) = watch.fired
        assert key == KEY
        assert at == 3 + max(after_ms, 1), "the watch looks once a millisecond"

    on_watch(check)


@pytest.mark.parametrize("start_ms", [0.0, 0.3, 4_095.95, 123_457.6])
@pytest.mark.parametrize("after_ms", [100, 6_000, 10_000, 45_000, 300_000, 1_800_000])
def test_a_session_ends_at_its_time_after_a_few_waits(after_ms: int, start_ms: float) -> None:
    loop, late_ms = LoopTime(start_ms), list[float]()
    clock = cast("Clock", loop)
    deadlines = Deadlines(cast("asyncio.AbstractEventLoop", loop), clock)
    end = loop.now + after_ms / 1000
    timers = Timers(deadlines, clock, lambda _key: late_ms.append((loop.now - end) * 1000))

    timers.set(KEY, after_ms)
    loop.run_until_idle()

    # Kafka's are up to 0.4 ms late.
    assert -0.001 <= late_ms[0] <= 0.2
    assert len(late_ms) == 1
    assert loop.wakeups <= 6
    assert len(deadlines) == len(timers) == 0


def test_postponed_timer_keeps_its_place_until_it_is_due() -> None:
    def check(watch: Watch) -> None:
        watch.timers.set(KEY, 1_000)
        for _ in range(10):
            watch.pass_time(700)
            watch.timers.set(KEY, 1_000)
            assert len(watch.deadlines) == 1
        assert watch.fired == []
        watch.pass_time(1_100)
        assert [key for key, _at in watch.fired] == [KEY]
        assert 8_000 <= watch.fired[0][1] <= 8_100

    on_watch(check)


def test_a_timer_can_be_brought_forward() -> None:
    def check(watch: Watch) -> None:
        watch.timers.set(KEY, 60_000)
        watch.timers.set(KEY, 100)
        watch.pass_time(110)
        assert len(watch.fired) == 1
        assert len(watch.deadlines) == 0

    on_watch(check)


def test_only_if_absent_keeps_a_running_timer() -> None:
    def check(watch: Watch) -> None:
        watch.timers.take(SetTimer(KEY, 200))
        watch.timers.take(SetTimer(KEY, 50, only_if_absent=True))
        watch.pass_time(150)
        assert watch.fired == []
        watch.pass_time(150)
        watch.timers.take(SetTimer(KEY, 50, only_if_absent=True))
        watch.pass_time(100)
        assert len(watch.fired) == 2

    on_watch(check)


def test_cancelled_or_cleared_timer_does_not_fire() -> None:
    def check(watch: Watch) -> None:
        other = TimerKey("join", "group")
        watch.timers.set(KEY, 100)
        watch.timers.set(other, 100)
        watch.timers.take(CancelTimer(KEY))
        watch.timers.take(CancelTimer(KEY))
        assert len(watch.timers) == 1
        watch.timers.clear()
        watch.pass_time(500)
        assert watch.fired == []
        assert len(watch.deadlines) == 0

    on_watch(check)


def test_a_timer_may_be_set_again_when_it_fires() -> None:
    def check(watch: Watch) -> None:
        fired: list[TimerKey] = []

        def fire(key: TimerKey) -> None:
            fired.append(key)
            if len(fired) < 3:
                again.set(key, 0)

        again = Timers(watch.deadlines, watch.clock, fire)
        again.set(KEY, 10)
        watch.pass_time(100)
        assert len(fired) == 3

    on_watch(check)
