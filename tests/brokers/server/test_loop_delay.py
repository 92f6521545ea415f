"""What keeps the loop shows in its delay."""

import asyncio

import pytest

from brokers.server import loop_delay
from brokers.server.loop_delay import LoopDelay
from brokers.server.metrics import Histogram
from tests.fakes.clock import ManualClock
from tests.fakes.listener import until


def test_a_loop_that_was_kept_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_delay, "EVERY_SECONDS", 0.001)

    async def story() -> None:
        clock, histogram = ManualClock(), Histogram()
        delay = LoopDelay(histogram, clock)
        delay.start()

        clock.advance(2_001)
        await until(lambda: histogram.count)
        delay.stop()

        assert histogram.total == pytest.approx(2.0)

    asyncio.run(story())
