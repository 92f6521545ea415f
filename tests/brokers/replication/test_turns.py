"""All long work together has one slice of a turn of the loop, whatever there is to do."""

import asyncio
from collections.abc import Awaitable, Callable, Generator

import pytest

from brokers.replication.turns import Gate, Turns
from tests.fakes.clock import ManualClock

SHARDS, STEPS = 50, 20
# A step takes a millisecond here, and a slice is two; one more for how seconds are rounded.
STEP_MS, STEPS_OF_A_SLICE = 1, 3


class Busy:
    """Somebody with much to do."""

    def __init__(self, clock: ManualClock, steps: int, done: list["Busy"]) -> None:
        self.has_turn_coming = False
        self.clock = clock
        self.left = steps
        self.done = done

    def take_turn(self) -> bool:
        self.clock.advance(STEP_MS)
        self.left -= 1
        self.done.append(self)
        return self.left > 0


async def over(turns: Turns) -> None:
    """Until nobody waits for a turn; each look is a turn of the loop."""
    for _ in range(SHARDS * STEPS):
        if not len(turns):
            return
        await asyncio.sleep(0)


def in_turns(test: Callable[[Turns, ManualClock, list[Exception]], Awaitable[None]]) -> None:
    async def run() -> None:
        clock, told = ManualClock(), list[Exception]()
        loop = asyncio.get_running_loop()
        turns = Turns(loop, clock, lambda _event, error: told.append(error), event="failed")
        await test(turns, clock, told)

    asyncio.run(run())


def test_fifty_shards_share_the_slice_of_a_turn() -> None:
    async def test(turns: Turns, clock: ManualClock, _told: list[Exception]) -> None:
        done: list[Busy] = []
        for _ in range(SHARDS):
            turns.come(Busy(clock, STEPS, done))
        while len(turns):
            before = len(done)
            await asyncio.sleep(0)
            assert len(done) - before <= STEPS_OF_A_SLICE

        assert len(done) == SHARDS * STEPS

    in_turns(test)


def test_nobody_has_a_second_turn_before_all_had_their_first() -> None:
    async def test(turns: Turns, clock: ManualClock, _told: list[Exception]) -> None:
        done: list[Busy] = []
        for _ in range(SHARDS):
            turns.come(Busy(clock, STEPS, done))
        await over(turns)

        assert len(set(done[:SHARDS])) == SHARDS

    in_turns(test)


def test_who_comes_twice_has_one_turn() -> None:
    async def test(turns: Turns, clock: ManualClock, _told: list[Exception]) -> None:
        done: list[Busy] = []
        busy = Busy(clock, 1, done)
        turns.come(busy)
        turns.come(busy)
        await over(turns)

        assert done == [busy]

    in_turns(test)


def test_a_bug_of_one_is_reported_and_stops_nobody() -> None:
    async def test(turns: Turns, clock: ManualClock, told: list[Exception]) -> None:
        done: list[Busy] = []
        broken, sound = Busy(clock, 1, done), Busy(clock, 2, done)
        broken.done = None  # type: ignore[assignment]
        turns.come(broken)
        turns.come(sound)
        await over(turns)

        assert [type(error) for error in told] == [AttributeError]
        assert done == [sound, sound]

    in_turns(test)


def test_the_result_of_steps_is_awaited_and_so_is_what_they_raise() -> None:
    def steps(clock: ManualClock, *, fails: bool) -> Generator[None, None, str]:
        for _ in range(2 * STEPS_OF_A_SLICE):
            clock.advance(STEP_MS)
            yield
        if fails:
            raise ValueError("found nothing")
        return "found"

    async def test(turns: Turns, clock: ManualClock, told: list[Exception]) -> None:
        assert await turns.result_of(steps(clock, fails=False)) == "found"
        with pytest.raises(ValueError, match="found nothing"):
            await turns.result_of(steps(clock, fails=True))
        assert told == []

    in_turns(test)


def test_steps_that_nobody_waits_for_any_more_are_dropped() -> None:
    ended: list[str] = []

    def steps(clock: ManualClock) -> Generator[None, None, None]:
        try:
            while True:
                clock.advance(STEP_MS)
                yield
        finally:
            ended.append("closed")

    async def test(turns: Turns, clock: ManualClock, told: list[Exception]) -> None:
        waiting = asyncio.create_task(turns.result_of(steps(clock)))
        for _ in range(3):
            await asyncio.sleep(0)
        waiting.cancel()
        await over(turns)

        assert (ended, told) == (["closed"], [])

    in_turns(test)


def test_a_gate_lets_few_through_at_a_time_and_in_the_order_of_coming() -> None:
    inside: list[int] = []
    begun: list[int] = []

    def work(number: int) -> Generator[None, None, int]:
        begun.append(number)
        inside.append(number)
        assert len(inside) <= 2
        try:
            for _ in range(3):
                yield
        finally:
            inside.remove(number)
        return number

    gate, results = Gate(2), list[int]()
    works = {number: gate.through(work(number)) for number in range(6)}
    for steps in works.values():
        next(steps)
    works.pop(0).close()  # one that is inside
    works.pop(3).close()  # one that waits
    while works:
        for number, steps in reversed(list(works.items())):
            try:
                next(steps)
            except StopIteration as end:
                results.append(end.value)
                del works[number]

    assert sorted(results) == [1, 2, 4, 5]
    assert begun == [0, 1, 2, 4, 5]
