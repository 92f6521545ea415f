"""One timer for all waits: nothing early, nothing much too late, and few slots."""

import asyncio

import pytest

from brokers.clock import SystemClock
from brokers.replication.deadlines import MAX_EXACT_MS, MIN_SLOT_MS, Deadlines
from tests.fakes.clock import ManualClock


class Wait:
    def __init__(self) -> None:
        self.due_ms = 0.0
        self.ended = 0

    def expire(self) -> None:
        self.ended += 1


class Noting(Wait):
    """Notes when it ends, and tells when all three have."""

    def __init__(self, after_ms: int, order: list[int], done: asyncio.Future[None]) -> None:
        super().__init__()
        self._after_ms, self._order, self._done = after_ms, order, done

    def expire(self) -> None:
        self._order.append(self._after_ms)
        if len(self._order) == 3:
            self._done.set_result(None)


@pytest.mark.parametrize("after_ms", [0, 1, 3, 100, 500, 30_000, 2**31 - 1])
@pytest.mark.parametrize("start_ms", [0, 1, 4_095, 123_457])
def test_a_wait_ends_never_early_and_at_most_a_slot_late(after_ms: int, start_ms: int) -> None:
    async def run() -> None:
        clock, wait = ManualClock(), Wait()
        clock.advance(start_ms)
        deadlines = Deadlines(asyncio.get_running_loop(), clock)
        deadlines.add(wait, after_ms)
        if after_ms:
            clock.advance(after_ms - 1)
            deadlines.expire_due()
            assert wait.ended == 0
        clock.advance(1 + max(MIN_SLOT_MS, after_ms // 32))
        deadlines.expire_due()
        assert wait.ended == 1
        assert len(deadlines) == 0

    asyncio.run(run())


@pytest.mark.parametrize("after_ms", [0, 1, 100, MAX_EXACT_MS])
@pytest.mark.parametrize("start_ms", [0, 1, 4_095, 123_457])
def test_an_exact_wait_ends_at_its_time(after_ms: int, start_ms: int) -> None:
    async def run() -> None:
        clock, wait = ManualClock(), Wait()
        clock.advance(start_ms)
        deadlines = Deadlines(asyncio.get_running_loop(), clock)
        deadlines.add_exact(wait, after_ms)
        if after_ms:
            clock.advance(after_ms - 1)
            deadlines.expire_due()
            assert wait.ended == 0
        clock.advance(after_ms > 0)
        deadlines.expire_due()
        assert wait.ended == 1

    asyncio.run(run())


def test_a_long_wait_is_never_exact() -> None:
    async def run() -> None:
        deadlines = Deadlines(asyncio.get_running_loop(), ManualClock())
        with pytest.raises(AssertionError, match="an exact wait of 257 ms"):
            deadlines.add_exact(Wait(), MAX_EXACT_MS + 1)

    asyncio.run(run())


def test_who_was_taken_out_does_not_end() -> None:
    async def run() -> None:
        clock, kept, gone = ManualClock(), Wait(), Wait()
        deadlines = Deadlines(asyncio.get_running_loop(), clock)
        for wait in (kept, gone):
            deadlines.add(wait, 100)
        deadlines.remove(gone)
        deadlines.remove(gone)
        clock.advance(200)
        deadlines.expire_due()
        assert (kept.ended, gone.ended) == (1, 0)

    asyncio.run(run())


def test_the_end_of_one_wait_may_take_out_another() -> None:
    async def run() -> None:
        clock = ManualClock()
        deadlines = Deadlines(asyncio.get_running_loop(), clock)
        waits = [Wait(), Wait()]

        def end_both() -> None:
            for wait in waits:
                wait.ended += 1
                deadlines.remove(wait)

        for wait in waits:
            wait.expire = end_both  # type: ignore[method-assign]
            deadlines.add(wait, 10)
        clock.advance(50)
        deadlines.expire_due()
        assert [wait.ended for wait in waits] == [1, 1]

    asyncio.run(run())


def test_the_loop_ends_waits_by_itself_the_nearest_first() -> None:
    async def run() -> None:
        order: list[int] = []
        done = asyncio.get_running_loop().create_future()
        deadlines = Deadlines(asyncio.get_running_loop(), SystemClock())
        for after_ms in (40, 10, 20):
            wait = Noting(after_ms, order, done)
            deadlines.add(wait, after_ms)
        async with asyncio.timeout(10):
            await done
        assert order == [10, 20, 40]

    asyncio.run(run())


def test_many_waits_of_the_usual_length_take_few_slots() -> None:
    async def run() -> None:
        clock = ManualClock()
        deadlines = Deadlines(asyncio.get_running_loop(), clock)
        for _ in range(30_000):
            wait = Wait()
            deadlines.add(wait, 30_000)
            deadlines.remove(wait)
            clock.advance(1)
        assert len(deadlines._slots) <= 70  # noqa: SLF001 - what it costs is the point

    asyncio.run(run())


def test_waits_that_are_due_together_end_over_several_turns() -> None:
    async def run() -> None:
        clock, ended = ManualClock(), list[int]()

        class Costly(Wait):
            def expire(self) -> None:
                clock.advance(1)
                ended.append(1)

        deadlines = Deadlines(asyncio.get_running_loop(), clock)
        for _ in range(40):
            deadlines.add(Costly(), 100)
        clock.advance(200)

        deadlines.expire_due()

        assert len(ended) <= 6
        async with asyncio.timeout(10):
            while len(deadlines):
                before = len(ended)
                await asyncio.sleep(0)
                assert len(ended) - before <= 6
        assert len(ended) == 40

    asyncio.run(run())
