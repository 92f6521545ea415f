"""Recompresses produced batches: small ones at once, others in threads beside the event loop.

Knows no partitions: its callers append what it returns, and keep the order of their batches. Codecs
release the interpreter's lock while they work, so the loop serves others meanwhile.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from brokers.clock import Clock
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.recompression import recompressed
from brokers.protocol.records.validation import ProduceRules
from brokers.replication.threads import Threads

# The most that a batch unpacks to if it is recompressed at once: with zstd or lz4 that takes a
# tenth of a millisecond, about what a thread would take to begin. Producers' default batch size.
MAX_BYTES_AT_ONCE: Final = 16 * 1024
# The time of these in one turn of the loop. What comes later in the turn goes to a thread.
TURN_SECONDS: Final = 0.002
# Threads. Each unpacks one batch, which a few KiB of a client may make 64 MiB, and twice that for a
# moment; waiting batches are counted by their connections' requests.
MAX_PARALLEL: Final = 2


class Recompression:
    """One batch on its way through a thread. Belongs to the event loop, but for `run`."""

    __slots__ = (
        "_callback",
        "_error",
        "_is_done",
        "_is_dropped",
        "_packed",
        "_records",
        "_rules",
    )

    def __init__(self, records: memoryview, rules: ProduceRules) -> None:
        self._records = records
        self._rules = rules
        self._packed: memoryview | None = None
        self._error: BaseException | None = None
        self._is_done = False
        self._is_dropped = False
        self._callback: Callable[[], None] | None = None

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call back once, at once if it is done already."""
        if self._is_done:
            callback()
        else:
            self._callback = callback

    def drop(self) -> None:
        """Leave the work out if it has not begun: its client is gone, and sends it again."""
        self._is_dropped = True

    def result(self) -> memoryview:
        """Return the batch, or raise why it cannot be packed; only once it is done."""
        assert self._is_done, "the batch is not recompressed yet"
        if self._error is not None:
            raise self._error
        assert self._packed is not None
        return self._packed

    def run(self) -> None:
        """Do the work, in any thread."""
        if self._is_dropped:
            return
        try:
            self._packed = _recompressed(self._records, self._rules)
        except BaseException as error:  # noqa: BLE001 - raised again where the result is wanted
            self._error = error

    def finish(self) -> None:
        self._is_done = True
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()


class Recompressor:
    """Belongs to the event loop."""

    __slots__ = ("_clock", "_is_counting", "_loop", "_spent", "_threads")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._threads = Threads(
            loop, self._recompress, name="recompressor", max_threads=MAX_PARALLEL
        )
        self._spent = 0.0  # seconds of this turn
        self._is_counting = False  # a call of `_end_turn` is scheduled

    def at_once(self, records: memoryview, rules: ProduceRules) -> memoryview | None:
        """Return a small batch as its topic packs it; None if that takes too long for this turn."""
        packing = rules.packing
        assert packing is not None, "the topic keeps the codecs of producers"
        if len(records) > MAX_BYTES_AT_ONCE or not packing.is_fast or self._spent >= TURN_SECONDS:
            return None
        began = self._clock.monotonic()
        try:
            return _recompressed(records, rules, max_unpacked_bytes=MAX_BYTES_AT_ONCE)
        except KafkaError as error:
            if error.code is not ErrorCode.MESSAGE_TOO_LARGE:
                raise
            return None
        finally:
            self._spent += self._clock.monotonic() - began
            if not self._is_counting:
                self._is_counting = True
                self._loop.call_soon(self._end_turn)

    def begin(self, records: memoryview, rules: ProduceRules) -> Recompression:
        """Recompress a batch in a thread; its buffer must not change until it is done."""
        job = Recompression(records, rules)
        self._threads.put(job)
        return job

    def stop(self) -> None:
        """End the threads, after the batches that they have."""
        self._threads.stop()

    def _recompress(self, job: Recompression) -> None:
        """Run a job, in a thread."""
        job.run()
        with suppress(RuntimeError):  # the loop has ended, and all waits with it
            self._loop.call_soon_threadsafe(self._finish, job)

    def _finish(self, job: Recompression) -> None:
        self._threads.running -= 1
        job.finish()

    def _end_turn(self) -> None:
        self._is_counting = False
        self._spent = 0.0


def _recompressed(
    records: memoryview, rules: ProduceRules, *, max_unpacked_bytes: int | None = None
) -> memoryview:
    packing = rules.packing
    assert packing is not None, "the topic keeps the codecs of producers"
    most = rules.max_decompressed_bytes if max_unpacked_bytes is None else max_unpacked_bytes
    return recompressed(
        records, packing, max_unpacked_bytes=most, max_batch_bytes=rules.max_batch_bytes
    )
