"""Cleaning many segments never keeps the event loop from its clients for long."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from brokers.clock import SystemClock
from brokers.replication.compactor import Compactor
from brokers.server.metrics import Metrics
from brokers.server.workers import clean
from brokers.storage.files import LocalFiles
from tests.brokers.replication.parts import image, rig, topic, until
from tests.builders.cleaning import keyed, latest, rows_of

pytestmark = [pytest.mark.slow, pytest.mark.alone, pytest.mark.timeout(300)]

SEGMENTS = 1_000
LONGEST_SECONDS = 0.010
SMALL = {"cleanup.policy": "compact", "internal.segment.bytes": "2000"}
# So that as many are merged as may be at once.
LARGE = {**SMALL, "internal.segment.bytes": "100000000"}


class Turns:
    """The CPU that single turns of a loop take, which no neighbour on the machine changes."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.count = 0
        self._loop = asyncio.get_running_loop()
        self._at = time.thread_time()
        self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        now = time.thread_time()
        self.longest = max(self.longest, now - self._at)
        self.count += 1
        self._at = time.thread_time()
        self._loop.call_soon(self._turn)


def test_no_turn_of_a_loop_that_swaps_a_thousand_segments_is_long(
    tmp_path: Path, report: Callable[[str], None], all_descriptors: int
) -> None:
    # The one flush of all segments holds their files open.
    if all_descriptors < 2 * SEGMENTS:
        pytest.skip(f"needs {2 * SEGMENTS} open files: ulimit -n {2 * SEGMENTS}, as root")

    async def story() -> None:
        clock, files = SystemClock(), LocalFiles()
        cluster = image(topic(), configs={"t": {**SMALL, "samsa.durability": "replicated"}})
        async with rig(tmp_path, cluster, files=files, clock=clock) as broker:
            partition = broker.leader()
            value, number = b"v" * 900, 0
            while len(partition.log.segments) <= SEGMENTS:
                row = (b"k%d" % (number % 100), value)
                partition.append(keyed(row, timestamp=clock.now_ms()), clock.now_ms())
                number += 1
            partition.ask_flush()
            await until(lambda: partition.log.flushed_offset == number)
            await broker.apply(image(topic(), version=2, configs={"t": LARGE}))
            before, counted = latest(rows_of(partition.log)), Metrics()
            compactor = Compactor(broker.replicas, clock=clock, run_worker=clean, counts=counted)

            began, turns = time.monotonic(), Turns()
            assert await compactor.clean_next()
            seconds = time.monotonic() - began

            assert latest(rows_of(partition.log)) == before
            assert len(partition.log.segments) < SEGMENTS / 10
            report(
                f"{SEGMENTS} segments became {len(partition.log.segments)} in {seconds:.1f} s and "
                f"{turns.count} turns, the longest of {turns.longest * 1000:.1f} ms CPU"
            )
            assert turns.longest < LONGEST_SECONDS

    asyncio.run(story())
