"""Runs compaction in a broker: picks the next log to clean, and applies the result.

`brokers.storage.compaction` decides what is due, `run_worker` runs one process at a time, and an
`Exchange` moves the new files into the log. A result is valid only for the log that it was made of:
it is dropped once the topic is gone, led by another broker, cut, or no longer compacted.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Protocol, TypeAlias

from brokers.clock import Clock
from brokers.protocol.errors import KafkaError
from brokers.replication.exchange import Exchange, Outcome
from brokers.replication.partition import Partition
from brokers.replication.replicas import Replicas
from brokers.slices import Slices
from brokers.storage.clean_worker import decode_result, encode_job
from brokers.storage.cleaning import CleaningFailed, Result, drop_leftovers
from brokers.storage.compaction import Cleaning
from brokers.storage.errors import LogDirFailed, StorageCorrupt, StorageError

# Kafka's log.cleaner.backoff.ms: the pause between two checks while nothing is due.
BACKOFF_SECONDS: Final = 15.0
# Checking all logs takes some milliseconds.
LEAST_BACKOFF_SECONDS: Final = 0.1
# After so many failures a log is skipped until the next start: an operator has to look at it.
MAX_FAILURES: Final = 3
# A refused log rests for the pause between two checks, then for twice as long each time, up to
# this: each try reads all that is dirty, and room comes back within minutes where it does.
MAX_REST_SECONDS: Final = 600.0
# Enough for the longest rest after the shortest.
MAX_DOUBLINGS: Final = 16
# The delay until a worker is stopped whose log is gone.
LOOK_SECONDS: Final = 0.5

# Runs a job and returns its result, or raises WorkerFailed; once cancelled, no process is left
# running.
RunWorker: TypeAlias = Callable[[bytes], Awaitable[bytes]]


class WorkerFailed(StorageError):
    """The worker had no result; `is_refused` if the disk was full or descriptors were short."""

    def __init__(self, reason: str, *, is_refused: bool = False) -> None:
        super().__init__(f"the process gave no result: {reason}")
        self.is_refused = is_refused


class Counts(Protocol):
    """Metrics of cleaning."""

    cleaned_bytes: int
    cleaner_seconds: float
    uncleanable_logs: int


class Compactor:
    """Belongs to the event loop. `run` is a task of the daemon's."""

    def __init__(
        self,
        replicas: Replicas,
        *,
        clock: Clock,
        run_worker: RunWorker,
        counts: Counts,
        backoff_seconds: float = BACKOFF_SECONDS,
    ) -> None:
        self._replicas = replicas
        self._log_dir = replicas.log_dir
        self._clock = clock
        self._run_worker = run_worker
        self._counts = counts
        self.backoff_seconds = backoff_seconds
        self._failures: dict[Partition, int] = {}
        # Consecutive failed tries of a log, for any reason: other logs go first.
        self._in_vain: dict[Partition, int] = {}
        # Until when a log rests that was refused for want of room, by the monotonic clock.
        self._rests: dict[Partition, float] = {}
        # When the first tombstone may be removed that the last cleaning of a log has left.
        self._horizons: dict[Partition, int] = {}

    async def run(self) -> None:
        """Run until it is cancelled, or until the log dir has failed."""
        while True:
            await asyncio.sleep(max(self.backoff_seconds, LEAST_BACKOFF_SECONDS))
            try:
                while await self.clean_next():
                    pass
            except LogDirFailed as failure:
                self._replicas.report("log_dir.failed", failure)
                return

    async def clean_next(self) -> bool:
        """Clean the next log in order; False if none is due, or the one tried has failed."""
        found = await self._next()
        if found is None:
            return False
        partition, cleaning = found
        self._in_vain[partition] = self._in_vain.get(partition, 0) + 1
        try:
            result = await self._result(partition, cleaning)
            if result is None or not await self._exchange(partition, cleaning, result):
                self._drop_leftovers(partition)
                return False
        except LogDirFailed:
            raise
        except (KafkaError, StorageError) as error:
            self._failed(partition, error)
            self._drop_leftovers(partition)
            return False
        self._failures.pop(partition, None)
        self._in_vain.pop(partition, None)
        self._rests.pop(partition, None)
        self._horizons.pop(partition, None)
        if result.next_horizon_ms is not None:
            self._horizons[partition] = result.next_horizon_ms
        self._log_dir.note_cleaned((partition.topic, partition.index), result.end)
        return True

    async def _next(self) -> tuple[Partition, Cleaning] | None:
        """Return the dirtiest log that is due, those without failed tries first."""
        slices, now_ms = Slices(self._clock), self._clock.now_ms()
        found: tuple[Partition, Cleaning] | None = None
        if self._log_dir.is_full:
            return None  # A new file needs room before the old ones make any.
        rank, now = (0, 0.0), self._clock.monotonic()
        partitions = list(self._replicas.partitions())
        self._forget_all_but(partitions)
        for partition in partitions:
            is_resting = now < self._rests.get(partition, now)
            has_failed = self._failures.get(partition, 0) >= MAX_FAILURES
            if not is_resting and not has_failed and _is_cleaned(partition):
                while self._learns_age(partition):
                    await slices.breathe()
                cleaning = self._cleaning(partition, now_ms)
                if cleaning is not None:
                    here = -self._in_vain.get(partition, 0), cleaning.dirty_ratio
                    if found is None or here > rank:
                        found, rank = (partition, cleaning), here
            await slices.breathe()
        return found

    def _learns_age(self, partition: Partition) -> bool:
        """Read more of a log's age for the plan; False if done. The plan raises errors."""
        first_dirty = self._log_dir.first_dirty((partition.topic, partition.index))
        with suppress(KafkaError, StorageCorrupt):
            return partition.log.learn_age(first_dirty)
        return False

    def _cleaning(self, partition: Partition, now_ms: int) -> Cleaning | None:
        log = partition.log
        try:
            log.roll_overdue(now_ms)
            return log.cleaning(
                first_dirty=self._log_dir.first_dirty((partition.topic, partition.index)),
                high_watermark=partition.high_watermark,
                now_ms=now_ms,
                next_horizon_ms=self._horizons.get(partition),
            )
        except LogDirFailed:
            raise
        except (KafkaError, StorageError) as error:
            self._failed(partition, error)
            return None

    async def _result(self, partition: Partition, cleaning: Cleaning) -> Result | None:
        """Return the worker's result; None as soon as it would be void."""
        began = self._clock.monotonic()
        worker = asyncio.ensure_future(self._run_worker(encode_job(cleaning)))
        try:
            while not worker.done():
                if not self._counts_for(partition, cleaning):
                    return None
                await asyncio.wait((worker,), timeout=LOOK_SECONDS)
            result = decode_result(worker.result())
            return result if self._counts_for(partition, cleaning) else None
        except StorageError:
            if self._counts_for(partition, cleaning):
                raise
            return None  # Its files were removed during its run.
        finally:
            worker.cancel()
            with suppress(asyncio.CancelledError, StorageError):
                await worker
            self._counts.cleaner_seconds += self._clock.monotonic() - began

    async def _exchange(self, partition: Partition, cleaning: Cleaning, result: Result) -> bool:
        """Move the cleaned files into the log, oldest first; False if the log has changed."""
        loop = asyncio.get_running_loop()
        for group in result.groups:
            ended: asyncio.Future[Outcome] = loop.create_future()
            if not self._counts_for(partition, cleaning):
                return False
            self._replicas.flusher.ask(
                Exchange(
                    partition,
                    cleaning,
                    group,
                    flusher=self._replicas.flusher,
                    clock=self._clock,
                    ended=ended,
                )
            )
            outcome = await ended
            if isinstance(outcome, Exception):
                raise outcome
            if not outcome:
                return False
            self._counts.cleaned_bytes += group.dropped_bytes
        return True

    def _failed(self, partition: Partition, error: KafkaError | StorageError) -> None:
        """Count a failure; one for want of room is not the log's fault."""
        self._replicas.report("log.not_cleaned", error)
        if isinstance(error, KafkaError) or (isinstance(error, WorkerFailed) and error.is_refused):
            times = min(self._in_vain.get(partition, 1), MAX_DOUBLINGS)
            pause = max(self.backoff_seconds, LEAST_BACKOFF_SECONDS)
            rest = min(pause * 2 ** (times - 1), MAX_REST_SECONDS)
            self._rests[partition] = self._clock.monotonic() + rest
            return
        failures = self._failures[partition] = self._failures.get(partition, 0) + 1
        if failures == MAX_FAILURES:
            self._count_uncleanable()
            given_up = CleaningFailed(partition.log.folder, f"tried {failures} times: {error}")
            self._replicas.report("log.uncleanable", given_up)

    def _drop_leftovers(self, partition: Partition) -> None:
        """Unlink files that will not be used; they may be as large as the log."""
        if self._is_here(partition):
            with suppress(OSError):
                drop_leftovers(self._log_dir.handles.files, partition.log.folder)

    def _is_here(self, partition: Partition) -> bool:
        return self._log_dir.logs.get((partition.topic, partition.index)) is partition.log

    def _counts_for(self, partition: Partition, cleaning: Cleaning) -> bool:
        """Tell whether a result of this plan is still valid for the log."""
        is_ours = self._is_here(partition) and partition.is_leading and _is_cleaned(partition)
        return is_ours and partition.log.holds(cleaning)

    def _forget_all_but(self, partitions: list[Partition]) -> None:
        kept = (self._failures, self._in_vain, self._rests, self._horizons)
        known = {partition for notes in kept for partition in notes}
        for partition in known.difference(partitions) if known else ():
            for notes in kept:
                notes.pop(partition, None)
        self._count_uncleanable()

    def _count_uncleanable(self) -> None:
        self._counts.uncleanable_logs = sum(
            failures >= MAX_FAILURES for failures in self._failures.values()
        )


def _is_cleaned(partition: Partition) -> bool:
    """Tell whether its topic is only compacted: one that is also deleted is left to retention."""
    config = partition.settings.log
    return config.is_compacted and not config.is_deleted
