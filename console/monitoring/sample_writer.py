"""Writes full blocks of samples to the collector's file, and reads series that are partly there.

The only user of the file. Without it, all but history is served: blocks wait in memory, the oldest
are lost once there are too many, and each failure is logged.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Final, Protocol, TypeVar

from console.monitoring.rings import KINDS, Finished, FullBlock, Name, Ring
from console.monitoring.samples import FINE_S, Samples, SamplesFailed, Series, nothing_known

T = TypeVar("T")

PRUNE_SECONDS: Final = 3600.0
# Series written at a time, some 20 ms of work; a full block of 50,000 then takes 100 s.
PORTION: Final = 500
PORTION_SECONDS: Final = 1.0
# Sets of blocks that wait for the file; if the disk is too slow, the oldest are lost.
MAX_WAITING: Final = 2 * len(KINDS)


class Log(Protocol):
    def info(self, event: str, /, **keys: object) -> None: ...

    def limited(self, event: str, /, **keys: object) -> None: ...


class SampleWriter:
    """Belongs to the event loop; `write` and `prune` run until they are cancelled."""

    def __init__(
        self, samples: Samples, rings: Mapping[str, Ring], *, now_ms: Callable[[], int], log: Log
    ) -> None:
        self._samples = samples
        self._rings = rings
        self._now_ms = now_ms
        self._log = log
        # Held while a thread uses the file.
        self._file = asyncio.Lock()
        self._waiting: deque[FullBlock] = deque(maxlen=MAX_WAITING)
        # The rest of the block that is being written.
        self._writing: Iterator[Finished] | None = None

    async def open(self) -> None:
        try:
            await run_to_end(self._samples.open)
        except SamplesFailed as error:
            self._log.limited("samples.not_opened", reason=str(error))
        self._log_set_aside()

    def put(self, blocks: Iterable[FullBlock]) -> None:
        """Write blocks soon."""
        for block in blocks:
            if len(self._waiting) == MAX_WAITING:
                self._log.limited("samples.lost", reason="the disk is slower than the samples")
            self._waiting.append(block)

    async def write(self) -> None:
        """Write full blocks, a portion at a time."""
        while True:
            await asyncio.sleep(PORTION_SECONDS)
            if self._waiting:
                block = self._waiting[0]
                self._writing = block.series()
                # Between two portions, readers can use the file and other tasks can run.
                while block in self._waiting and await self._write_portion():  # noqa: ASYNC110 - nothing tells when
                    await asyncio.sleep(PORTION_SECONDS)
                # A newer block may have evicted it meanwhile.
                if self._waiting and self._waiting[0] is block:
                    self._waiting.popleft()
                self._writing = None

    async def prune(self) -> None:
        """Delete old samples from time to time."""
        while True:
            try:
                async with self._file:
                    await run_to_end(lambda: self._samples.prune(self._now_ms() // 1000))
            except SamplesFailed as error:
                self._log.limited("samples.not_pruned", reason=str(error))
            await asyncio.sleep(PRUNE_SECONDS)

    async def read(self, kind: str, name: Name, metric: str, *, start_s: int, end_s: int) -> Series:
        """Return the samples of the file, followed by those that are only in memory yet."""
        try:
            async with self._file:
                found = await run_to_end(
                    lambda: self._samples.read(kind, name, metric, start_s=start_s, end_s=end_s)
                )
        except SamplesFailed as error:
            self._log.limited("samples.not_read", reason=str(error))
            found = nothing_known(start_s, end_s)
        place = KINDS[kind].metrics.index(metric)
        samples = list(found.samples)
        ring = self._rings[kind]
        pieces = [(ring.block_s, ring.recent(name, place))]
        pieces += [
            (block.start_s, block.samples(name)[place])
            for block in self._waiting
            if block.kind.name == kind and name in block.slots
        ]
        for begin_s, values in pieces:
            for number, value in enumerate(values):
                at = (begin_s + number * FINE_S - found.start_s) // found.step_s
                # At minute resolution, the last sample stands for its minute until it is written.
                if value == value and 0 <= at < len(samples):  # noqa: PLR0124 - NaN is not itself
                    samples[at] = value
        return Series(start_s=found.start_s, step_s=found.step_s, samples=samples)

    def close(self, last: Iterable[FullBlock]) -> None:
        """Write what waits and the last blocks, and close the file."""
        try:
            whole = list(self._waiting)
            if self._writing is not None:
                self._samples.add(self._writing)
                del whole[:1]
            for block in [*whole, *last]:
                self._samples.add(block.series())
        except SamplesFailed as error:
            self._log.limited("samples.not_written", reason=str(error))
        self._samples.close()

    async def _write_portion(self) -> bool:
        """Write a portion; return whether there may be more: a refused one is written again."""
        assert self._writing is not None, "no block is being written"
        portion: list[Finished] = []
        try:
            # A stop while another task uses the file leaves the portion in the block.
            async with self._file:
                portion = list(islice(self._writing, PORTION))
                await run_to_end(lambda: self._samples.add(portion))
        except SamplesFailed as error:
            self._log.limited("samples.not_written", reason=str(error))
            self._writing = chain(portion, self._writing)
            return True
        self._log_set_aside()
        return len(portion) == PORTION

    def _log_set_aside(self) -> None:
        reason, self._samples.set_aside = self._samples.set_aside, ""
        if reason:
            self._log.info("samples.set_aside", reason=reason)


async def run_to_end(work: Callable[[], T]) -> T:
    """Run blocking work in a thread, and wait for its end even if cancelled.

    A thread cannot be cancelled, and what it uses must stay valid until it ends.
    """
    doing = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait({doing})
        if not doing.cancelled():
            doing.exception()  # Taken, since no caller is left to hear of it.
        raise
