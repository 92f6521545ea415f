"""Long work lets others run."""

import asyncio

from brokers.slices import Slices
from tests.fakes.clock import ManualClock


def test_a_slice_ends_after_a_millisecond_and_not_before() -> None:
    async def run() -> None:
        clock, turns = ManualClock(), 0
        slices = Slices(clock)

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.ensure_future(others())
        await asyncio.sleep(0)
        before = turns
        await slices.breathe()
        assert turns == before
        clock.advance(1)
        await slices.breathe()
        assert turns == before + 1
        await slices.breathe()
        assert turns == before + 1
        task.cancel()

    asyncio.run(run())
