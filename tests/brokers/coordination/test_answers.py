"""Answers leave in order, and those of all shards by one slice of a turn."""

import asyncio

from brokers.coordination.answers import Answers
from brokers.coordination.shard import Answer
from tests.fakes.clock import ManualClock
from tests.fakes.toy_shard import Number

# To answer takes a millisecond here, and a slice is two; one more for how seconds are rounded.
ANSWER_MS, ANSWERS_OF_A_SLICE = 1, 3
SHARDS, WAITING = 8, 10


def test_rounds_of_many_shards_in_one_turn_are_answered_by_one_slice() -> None:
    async def run() -> None:
        clock, given = ManualClock(), list[int]()
        loop = asyncio.get_running_loop()
        answers = Answers(loop, clock, lambda _event, _error: None)

        def done(answer: Answer) -> None:
            assert isinstance(answer, Number)
            given.append(answer.value)
            clock.advance(ANSWER_MS)

        for shard in range(SHARDS):
            for number in range(WAITING):
                answers.add(done, Number(value=shard * WAITING + number))
            answers.deliver()
        assert 0 < len(given) <= ANSWERS_OF_A_SLICE

        while len(answers):
            before = len(given)
            await asyncio.sleep(0)
            assert len(given) - before <= ANSWERS_OF_A_SLICE
        assert given == list(range(SHARDS * WAITING))

    asyncio.run(run())


def test_a_new_turn_has_a_slice_of_its_own() -> None:
    async def run() -> None:
        clock, given = ManualClock(), list[Answer]()
        answers = Answers(asyncio.get_running_loop(), clock, lambda _event, _error: None)
        for _ in range(3 * ANSWERS_OF_A_SLICE):
            answers.add(given.append, Number(value=1))
            clock.advance(ANSWER_MS)
            answers.deliver()
            await asyncio.sleep(0)

        assert len(given) == 3 * ANSWERS_OF_A_SLICE

    asyncio.run(run())
