"""Runs the background chores of a broker's logs: retention, deletions, checkpoints, flushes.

One endless loop over chores, each with its own interval and each in slices. Nothing here is urgent:
a chore that a full disk refuses is reported and retried the next time, and only a failed disk ends
the loop.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from brokers.clock import Clock
from brokers.protocol.errors import KafkaError
from brokers.replication.log_settings import NEVER
from brokers.replication.partition import Partition
from brokers.replication.replicas import Replicas
from brokers.slices import Slices
from brokers.storage.errors import (
    DiskNearlyFull,
    LogDirFailed,
    OutOfSpace,
    StorageError,
    TooManyOpenFiles,
)

# A time that makes every deleted file due, used when its space is needed now.
_ALL_DUE: Final = 2**63 - 1
# Removed partitions whose files one round unlinks, so that a topic of thousands is gone in a minute
# and other chores still run.
MAX_PURGED: Final = 100
# Of one round of retention, to read records whose headers may have a wrong time: a thirtieth of the
# time to the next, and a second at least. The rest of them is read, and its segments are deleted,
# in later rounds.
INSPECTION_SHARE: Final = 1 / 30
LEAST_INSPECTION_SECONDS: Final = 1.0
# Kafka's log.initial.task.delay.ms: a chore with a longer interval begins so soon after the start,
# or a broker that is restarted often would never do it.
FIRST_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """Seconds between two rounds of each chore."""

    # How often the loop checks whether one is due.
    tick: float = 0.5
    # The room on the disk; it is also measured wherever a log grows fast.
    room: float = 1.0
    # Partitions to be removed while a flush of them runs, which ends with its sync.
    postponed: float = 0.5
    # Logs that a full disk refused at the start: each try may read as much as a recovery does.
    refused: float = 30.0
    # Wrong indexes, and reports of damage: readers wait for the first.
    rebuild: float = 0.5
    # Logs that are not synced: flushes for flush.ms, and of complete segments.
    flush: float = 1.0
    # Folders of deleted partitions, some at a time.
    purge: float = 0.5
    unlink: float = 10.0
    # log.retention.check.interval.ms.
    retention: float = 300.0
    checkpoint: float = 60.0
    producers: float = 600.0


class Housekeeping:
    """See the module. `run` is a task of the daemon's."""

    def __init__(
        self, replicas: Replicas, *, clock: Clock, intervals: Intervals | None = None
    ) -> None:
        self._replicas = replicas
        self._log_dir = replicas.log_dir
        self._clock = clock
        self._checkpointed_bytes = -1
        self._unflushed_since: dict[Partition, tuple[int, int]] = {}
        every = intervals or Intervals()
        self._tick = every.tick
        self._inspection_seconds = max(every.retention * INSPECTION_SHARE, LEAST_INSPECTION_SECONDS)
        self._chores: tuple[tuple[str, float, Callable[[], Awaitable[None]]], ...] = (
            ("room", every.room, self.measure_room),
            ("postponed", every.postponed, self.try_postponed),
            ("refused", every.refused, self.open_refused),
            ("rebuild", every.rebuild, self.rebuild_indexes),
            ("flush", every.flush, self.ask_flushes),
            ("purge", every.purge, self.purge),
            ("unlink", every.unlink, self.unlink_deleted),
            ("retention", every.retention, self.apply_retention),
            ("checkpoint", every.checkpoint, self.write_checkpoints),
            ("producers", every.producers, self.expire_producers),
        )

    async def run(self) -> None:
        """Run until it is cancelled, or until the log dir has failed."""
        began = self._clock.monotonic()
        due = {name: began + min(interval, FIRST_SECONDS) for name, interval, _ in self._chores}
        while True:
            await asyncio.sleep(self._tick)
            for name, interval, chore in self._chores:
                if self._clock.monotonic() < due[name]:
                    continue
                if not await self._done(name, chore):
                    return
                due[name] = self._clock.monotonic() + interval

    async def measure_room(self) -> None:
        """Measure the room on the disk, by which appends are refused or taken again."""
        was_full = self._log_dir.is_full
        self._log_dir.measure()
        room = self._log_dir.handles.room
        if room is not None and self._log_dir.is_full and not was_full:
            error = DiskNearlyFull(room.free_bytes, room.records_floor)
            self._replicas.report("disk.full", error)
            # Room may be due already, and the next round of retention is minutes away.
            await self.apply_retention()

    async def try_postponed(self) -> None:
        """Retry to make and remove partitions."""
        self._replicas.try_postponed()

    async def open_refused(self) -> None:
        """Open logs that a full disk had refused, until one is refused again."""
        slices = Slices(self._clock)
        while self._replicas.open_refused():
            await slices.breathe()

    async def rebuild_indexes(self) -> None:
        """Rebuild wrong indexes, and report damage that readers have met."""
        slices = Slices(self._clock)
        # Appends report a full disk; here it only means another try.
        with suppress(OutOfSpace, TooManyOpenFiles):
            while self._log_dir.rebuild_indexes():
                await slices.breathe()
        for damage in self._log_dir.handles.take_damage():
            self._replicas.report("log.damaged", damage)

    async def purge(self) -> None:
        """Unlink the files of removed partitions."""
        slices = Slices(self._clock)
        for _ in range(MAX_PURGED):
            if self._log_dir.purge() == 0:
                return
            await slices.breathe()

    async def ask_flushes(self) -> None:
        """Request the flushes that no append requests."""
        slices, now_ms = Slices(self._clock), self._clock.now_ms()
        is_crowded = self._log_dir.handles.is_over_budget
        for partition in list(self._replicas.partitions()):
            if partition.is_synced:
                continue
            if is_crowded or self._is_flush_due(partition, now_ms):
                partition.ask_flush()
            elif partition.log.has_rolled:
                partition.ask_rolled_flush()
            await slices.breathe()

    async def unlink_deleted(self) -> None:
        """Unlink segments that were deleted some time ago, on a full disk all of them."""
        slices = Slices(self._clock)
        now_ms = _ALL_DUE if self._log_dir.is_full else self._clock.now_ms()
        for log in list(self._log_dir.logs.values()):
            log.delete_pending(now_ms)
            await slices.breathe()

    async def apply_retention(self) -> None:
        """Delete old segments: all logs decide, the new starts are saved, then files are renamed.

        A crash in between must not look like a hole, so the order holds for all logs together.
        """
        slices, now_ms = Slices(self._clock), self._clock.now_ms()
        partitions, first_error = list(self._replicas.partitions()), None
        seconds_left = self._inspection_seconds
        for partition in partitions:
            try:
                seconds_left -= await self._inspect_ages(partition, now_ms, seconds_left, slices)
                partition.expire(now_ms)
            except (KafkaError, StorageError) as error:
                first_error = first_error or error
            await slices.breathe()
        await self._save_log_starts()
        for partition in partitions:
            try:
                if partition.is_leading:
                    partition.log.delete_old_segments(now_ms)
            except (KafkaError, StorageError) as error:
                first_error = first_error or error
            await slices.breathe()
        if first_error is not None:
            raise first_error

    async def write_checkpoints(self) -> None:
        """Save the recovery points, unless there were no appends since."""
        total = sum(partition.appended_bytes for partition in self._replicas.partitions())
        if total == self._checkpointed_bytes:
            # An idle log can still be cleaned.
            self._log_dir.write_cleaned()
            return
        self._log_dir.write_checkpoints()
        await asyncio.sleep(0)
        self._log_dir.write_high_watermarks(self._replicas.high_watermarks())
        self._checkpointed_bytes = total

    async def expire_producers(self) -> None:
        """Forget idempotent producers that have been silent for long."""
        self._log_dir.save_producer_ids()
        slices, now_ms = Slices(self._clock), self._clock.now_ms()
        for log in list(self._log_dir.logs.values()):
            log.expire_producers(now_ms)
            await slices.breathe()

    async def _inspect_ages(
        self, partition: Partition, now_ms: int, seconds: float, slices: Slices
    ) -> float:
        """Read records for up to `seconds` of work; return how much it took."""
        clock, spent = self._clock.monotonic, 0.0
        steps = partition.inspect_ages(now_ms)
        while spent < seconds:
            began = clock()
            is_over = next(steps, steps) is steps
            spent += clock() - began
            if is_over:
                break
            await slices.breathe()
        return spent

    async def _save_log_starts(self) -> None:
        """Save the log starts; on a full disk, unlink deleted files first."""
        try:
            self._log_dir.write_log_starts()
        except OutOfSpace:
            for log in list(self._log_dir.logs.values()):
                log.delete_pending(_ALL_DUE)
            self._log_dir.write_log_starts()

    async def _done(self, name: str, chore: Callable[[], Awaitable[None]]) -> bool:
        """Run one chore; False once the log dir has failed."""
        try:
            await chore()
        except LogDirFailed as failure:
            self._replicas.report("log_dir.failed", failure)
            return False
        except (KafkaError, StorageError) as error:
            self._replicas.report(f"housekeeping.{name}_failed", error)
        return True

    def _is_flush_due(self, partition: Partition, now_ms: int) -> bool:
        """Tell whether flush.ms have passed since this log was first seen with unflushed data."""
        log, flush_ms = partition.log, partition.settings.flush_ms
        if flush_ms >= NEVER or log.flushed_offset >= log.end_offset:
            self._unflushed_since.pop(partition, None)
            return False
        flushed, since = self._unflushed_since.get(partition, (-1, now_ms))
        if flushed != log.flushed_offset:
            since = now_ms
        self._unflushed_since[partition] = (log.flushed_offset, since)
        return now_ms - since >= flush_ms
