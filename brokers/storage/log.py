"""The log of one partition: appends batches in the order of their offsets, and finds them again.

Has no cluster state, no high watermark and no clock: leadership, the readers' limit and the time
come as arguments. Bytes are stored as they were received and are never joined, copied or unpacked
on the way; an append is one write from the caller's buffer.

Three offsets delimit it: `start_offset`, below which nothing is served; `end_offset`, which the
next record gets; and between them `flushed_offset`, up to which the disk has confirmed. Only the
methods that say so wait for the disk: a flush is `begin_flush`, `ticket.run` in any thread, and
`finish_flush`, and a log has one ticket at a time.
"""

from collections.abc import Generator

from brokers.protocol.errors import KafkaError
from brokers.storage import reads, retention, time_search
from brokers.storage.appends import Appended, Appends
from brokers.storage.cleaning import Cleaned
from brokers.storage.compaction import Cleaning, Extent, cleanable, learn_age, must_close
from brokers.storage.epochs import EpochCache
from brokers.storage.errors import (
    LogDirFailed,
    OffsetOutOfRange,
    OutOfSpace,
    write_failed,
)
from brokers.storage.fsync import FlushTicket
from brokers.storage.handles import Handles
from brokers.storage.log_config import LogConfig
from brokers.storage.log_folder import LogFolder
from brokers.storage.producer_state import ProducerStates
from brokers.storage.reads import FoundRecord, LogSlice
from brokers.storage.recovery import Damage, Recovered, recover
from brokers.storage.segments import Segments
from brokers.storage.time_search import Search
from brokers.storage.txn_index import AbortedTxn

__all__ = ["Appended", "Damage", "LogSlice", "PartitionLog"]


class PartitionLog:
    """Not thread-safe: one thread owns it, and only `FlushTicket.run` may be called in another.

    `append` and `append_replicated` are those of `Appends`.
    """

    __slots__ = (
        "_appends",
        "_folder",
        "append",
        "append_replicated",
        "epochs",
        "handles",
        "producers",
        "segments",
        "start_offset",
    )

    def __init__(self, folder: str, config: LogConfig, handles: Handles, found: Recovered) -> None:
        self.handles = handles
        self.segments: Segments = found.segments
        self.epochs: EpochCache = found.epochs
        self.producers: ProducerStates = found.producers.states
        self.start_offset = found.start_offset
        self._folder = LogFolder(folder, config, handles, found)
        self._appends = Appends(self._folder, found.end_offset)
        # Bound here, since a method that only forwards would add a twentieth to each append.
        self.append = self._appends.append
        self.append_replicated = self._appends.append_replicated
        handles.owners.add(self)

    @classmethod
    def open(
        cls,
        folder: str,
        config: LogConfig,
        *,
        handles: Handles,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        is_clean: bool = False,
    ) -> "PartitionLog":
        """Open or create the log in `folder`, after recovery unless it was closed cleanly.

        `recovery_point` and `log_start_offset` come from the log dir's checkpoints. On return, all
        that the log holds is on the disk; see `damage` for what recovery could not include.
        """
        try:
            found = recover(
                folder,
                config,
                handles,
                recovery_point=recovery_point,
                log_start_offset=log_start_offset,
                is_clean=is_clean,
            )
        except OSError as error:
            failure = write_failed(folder, "recovery", error)
            if isinstance(failure, LogDirFailed):
                raise handles.fail(failure) from error
            raise failure from error
        return cls(folder, config, handles, found)

    @property
    def folder(self) -> str:
        return self._folder.path

    @property
    def config(self) -> LogConfig:
        return self._folder.config

    @property
    def damage(self) -> Damage | None:
        """The damage that recovery left in place; while there is any, the log refuses appends."""
        return self._folder.damage

    @property
    def set_aside(self) -> list[str]:
        """Files with sound batches that were moved out of the log, for an operator to inspect."""
        return self._folder.set_aside

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""
        return self._appends.end_offset

    @property
    def flushed_offset(self) -> int:
        """The offset below which everything is on the disk."""
        return self._folder.flushes.flushed_offset

    @property
    def recovery_point(self) -> int:
        """The start of a recovery after a crash; for the checkpoint of the log dir."""
        damage = self._folder.damage
        if damage is not None:
            # Behind the damage, so that the next start can tell that it had been synced.
            return damage.offset + damage.is_flushed
        return self._folder.flushes.flushed_offset

    @property
    def size_bytes(self) -> int:
        """The bytes of all segments, without deleted ones."""
        active = self.segments.active
        return active.start + active.size - self.segments[0].start

    @property
    def is_flushing(self) -> bool:
        """Whether a ticket is running."""
        return self._folder.flushes.ticket is not None

    @property
    def has_rolled(self) -> bool:
        """Whether a complete segment waits for a flush; `rolled_only` is enough for it."""
        return self._folder.flushes.has_rolled

    def reconfigure(self, config: LogConfig) -> None:
        """Apply another configuration; existing segments keep their format."""
        self._folder.config = config
        self._appends.reconfigure()

    def refuse_appends(self) -> None:
        """Check the disk before the next append: it has failed, here or elsewhere, or is full."""
        self._appends.refuse()

    def read(
        self,
        offset: int,
        *,
        max_bytes: int,
        max_offset: int | None = None,
        min_one_batch: bool = True,
        skips_empty: bool = False,
    ) -> LogSlice:
        """Plan a read of whole batches from the one that holds `offset`, all below `max_offset`.

        At most `max_bytes`, but at least one batch unless `min_one_batch` is off; nothing if the
        reader has reached `max_offset`. With `skips_empty` it begins with a batch that has records,
        if there is one. The caller releases the slice.
        """
        appends = self._appends
        end_offset = appends.end_offset
        if max_offset is None or max_offset > end_offset:
            max_offset = end_offset
        if not self.start_offset <= offset < max_offset:
            if self.start_offset <= offset <= end_offset:
                return reads.nothing(offset)
            raise OffsetOutOfRange(offset, self.start_offset, end_offset)
        bases = appends.tail.bases
        if bases and offset >= bases[0]:
            bound = max_offset if max_offset < end_offset else None
            try:
                return reads.read_dense(
                    self.segments, appends.tail, offset, max_bytes, bound, min_one_batch
                )
            except OSError as error:
                raise self._folder.refused("read", error) from error
        with self._folder.on_disk("read"):
            return reads.read_sparse(
                self.segments,
                offset,
                max_bytes=max_bytes,
                max_offset=max_offset,
                end_offset=end_offset,
                min_one_batch=min_one_batch,
                skips_empty=skips_empty,
                config=self._folder.config,
            )

    def search_timestamp(self, timestamp: int) -> Search:
        """Find the first record that is not older than `timestamp`; None when all are older.

        In steps of a few milliseconds at most; the log must not be closed between two of them.
        """
        while True:
            with self._folder.on_disk("read"):
                found = yield from time_search.find_timestamp(
                    self.segments, timestamp, self.start_offset, self.config
                )
            # The log's start may have moved past it between the steps.
            if found is None or found.offset >= self.start_offset:
                return found

    def search_max_timestamp(self) -> Search:
        """Do the same for the first record with the greatest timestamp; None when none has any."""
        with self._folder.on_disk("read"):
            return (yield from time_search.find_max_timestamp(self.segments, self.config))

    def first_record(self, offset: int, *, max_offset: int) -> FoundRecord | None:
        """Return the first record at or behind `offset` and below `max_offset`, None without one.

        Opens a bounded number of records only; see `reads.first_from`.
        """
        if offset >= min(max_offset, self.end_offset):
            return None
        with self._folder.on_disk("read"):
            return reads.first_from(
                self.segments, max(offset, self.start_offset), max_offset, self.config
            )

    def aborted_transactions(self, first: int, upper: int) -> list[AbortedTxn]:
        """Return the aborted transactions for a reader of `first` up to below `upper`."""
        with self._folder.on_disk("read"):
            return reads.aborted_between(self.segments, first, upper)

    def begin_flush(self, *, rolled_only: bool = False) -> FlushTicket | None:
        """Return a ticket of what to sync; None if all is synced.

        `rolled_only` leaves out the active segment, for a log whose durability comes from its
        replicas.
        """
        return self._folder.begin_flush(self.end_offset, rolled_only=rolled_only)

    def finish_flush(self, ticket: FlushTicket) -> int:
        """Take the ticket back and return the flushed offset; LogDirFailed if it had failed."""
        return self._folder.finish_flush(ticket)

    def write_indexes(self) -> None:
        """Write waiting index entries, for a log that appends rarely."""
        self._appends.write_indexes()

    def flush(self) -> int:
        """Do all three steps at once, for callers that may wait for the disk."""
        ticket = self.begin_flush()
        if ticket is not None:
            self._run(ticket)
        return self.flushed_offset

    def advance_log_start(self, offset: int) -> bool:
        """Move the log's start up to `offset`; return True if it has moved.

        The owner makes it durable in the log dir's checkpoint before `delete_old_segments`: after a
        crash in between, a deletion that only half happened must not look like a hole.
        """
        if offset > self.end_offset:
            raise OffsetOutOfRange(offset, self.start_offset, self.end_offset)
        if offset <= self.start_offset:
            return False
        self.start_offset = offset
        self.epochs.truncate_from_start(offset)
        return True

    def inspect_ages(self, now_ms: int) -> Generator[None, None, None]:
        """Read, in steps, the records on whose age `expire` will depend; see `retention`.

        The log must not be closed between two steps.
        """
        with self._folder.on_disk("read"):
            yield from retention.inspect_ages(self.segments, self.config, now_ms)

    def expire(self, now_ms: int, *, high_watermark: int | None = None) -> bool:
        """Move the log's start behind the expired segments; return True if it has moved."""
        with self._folder.on_disk("read"):
            count = retention.expired_segments(
                self.segments,
                self.config,
                now_ms=now_ms,
                bound=self.end_offset if high_watermark is None else high_watermark,
                end_offset=self.end_offset,
            )
        if count == 0:
            return False
        if count == len(self.segments):
            try:
                self._appends.roll(now_ms)
            except OutOfSpace:
                # The others can be deleted without a new file, and make room for it.
                count -= 1
                if count == 0:
                    raise
        return self.advance_log_start(self.segments[count].base_offset)

    def expire_producers(self, now_ms: int) -> int:
        """Forget producers that have been silent for too long; return how many."""
        return self.producers.expire(now_ms, self.config.producer_expiration_ms)

    def delete_old_segments(self, now_ms: int) -> int:
        """Rename the segments below the log's start, to be unlinked later; return how many."""
        below = self._folder.flushes.deletable_below(self.start_offset)
        count = retention.segments_below(self.segments, below)
        with self._folder.on_disk("delete"):
            self._folder.take_oldest(count, now_ms + self.config.file_delete_delay_ms)
        return count

    def delete_pending(self, now_ms: int) -> int:
        """Unlink deleted files that are due and unread; return how many segments still wait."""
        with self._folder.on_disk("delete"):
            return self._folder.finish_deletions(now_ms)

    def cleaning(
        self,
        *,
        first_dirty: int,
        high_watermark: int,
        now_ms: int,
        next_horizon_ms: int | None = None,
    ) -> Cleaning | None:
        """Return the segments to clean now, or None; see `compaction.cleanable`."""
        folder = self._folder
        if self.damage is not None or self._appends.is_closed or folder.swaps.ticket is not None:
            return None
        with folder.on_disk("clean"):
            folder.swaps.settle()
            extent = Extent(
                folder=folder.path,
                start_offset=self.start_offset,
                end_offset=self.end_offset,
                first_dirty=first_dirty,
                bound=min(high_watermark, self.flushed_offset),
                cuts=folder.swaps.cuts,
            )
            return cleanable(
                self.segments,
                self.config,
                extent,
                now_ms=now_ms,
                next_horizon_ms=next_horizon_ms,
            )

    def learn_age(self, first_dirty: int) -> bool:
        """Read some of the input of `cleaning`; to be called until it returns False."""
        if self.damage is not None or self._appends.is_closed:
            return False
        with self._folder.on_disk("read"):
            return learn_age(self.segments, self.config, first_dirty)

    def roll_overdue(self, now_ms: int) -> bool:
        """Close the active segment if max.compaction.lag.ms requires it to be cleaned by now."""
        if self.damage is not None or self._appends.is_closed:
            return False
        with self._folder.on_disk("read"):
            is_overdue = must_close(self.segments.active, self.config, now_ms)
        if is_overdue:
            self._appends.roll(now_ms)
        return is_overdue

    def holds(self, cleaning: Cleaning) -> bool:
        """Tell whether the segments to clean are still here: none was cut or deleted."""
        oldest = cleaning.segments[0].base_offset
        return self._folder.swaps.cuts == cleaning.cuts and self.segments[0].base_offset <= oldest

    def begin_swap(self, cleaning: Cleaning, group: Cleaned) -> FlushTicket | None:
        """Start the first of three steps that replace old segments by one cleaned file.

        The ticket runs in any thread and goes to `exchange_cleaned`, whose ticket goes to
        `finish_swap`. None from one of them: the log has changed, and the result is void, as it is
        after an error. Groups come oldest first.
        """
        if self.damage is not None or self._appends.is_closed:
            return None
        self._folder.refuse_failed()
        with self._folder.on_disk("clean"):
            return self._folder.swaps.begin(cleaning, group)

    def exchange_cleaned(self, ticket: FlushTicket, now_ms: int) -> FlushTicket | None:
        """Read from the new file from here on; readers keep the old ones that they hold."""
        swaps = self._folder.swaps
        with self._folder.on_disk("clean"):
            end = swaps.exchange(ticket, now_ms + self.config.file_delete_delay_ms)
            if end is None:
                return None
            # The positions of recent batches were counted through the old files.
            self._appends.tail.drop_below(end)
            return swaps.sync()

    def finish_swap(self, ticket: FlushTicket) -> None:
        """Give the new files their names; if that is refused, the next cleaning does."""
        with self._folder.on_disk("clean"):
            self._folder.swaps.finish(ticket)

    def truncate_to(self, offset: int) -> bool:
        """Cut the log so that it ends at `offset`; False if it ends there or before already.

        A batch that spans the offset is removed whole, and the log ends in front of it. The cut is
        durable on return, and so is its order: no later segment outlives the end of an earlier one.
        Before the call, the owner saves `offset` as the recovery point in the log dir's checkpoint
        if it is lower than the one there.

        LogBusy while a reader or a flush holds the file that would be cut; that, OutOfSpace and
        TooManyOpenFiles leave the log as it was.
        """
        self._folder.refuse_broken()
        if offset >= self.end_offset:
            return False
        if offset < self.segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        with self._folder.on_disk("truncate"):
            end_offset = self._folder.cut_to(offset)
        self._end_at(end_offset)
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Empty the log, so that the next record gets `offset`; durable on return.

        Before the call, the owner saves 0 as the recovery point in the log dir's checkpoint.
        Readers and a flush keep the old files as long as they hold them. OutOfSpace and
        TooManyOpenFiles leave the log as it was.
        """
        self._folder.refuse_broken()
        with self._folder.on_disk("truncate"):
            self._folder.start_afresh(offset)
        self.start_offset = offset
        self._end_at(offset)

    def drop_damage(self) -> None:
        """Move the damaged end to files that end in `.damaged`, and accept appends again.

        For an operator who has decided to continue without it, or a replica that can fetch it from
        a leader.
        """
        assert self.damage is not None, f"{self.folder} is not damaged"
        # If refused for want of space it can be retried: all bytes still exist, some in new files.
        with self._folder.on_disk("truncate"):
            self._folder.drop_damage(self.end_offset)

    def begin_close(self) -> FlushTicket | None:
        """Write the files that speed up the next start; return a ticket to run before `close`.

        None when there is nothing to sync. Only for logs without further appends; without it
        `close` does the same, and waits for the disk.
        """
        if self.is_flushing or self.handles.failure is not None or self.damage is not None:
            return None
        try:
            self._folder.prepare_close(self.end_offset)
        except OSError as error:
            raise self._folder.refused("close", error) from error
        return self.begin_flush()

    def close(self) -> None:
        """Flush everything, write a snapshot of the producers, and close the files.

        Raises OutOfSpace, TooManyOpenFiles or LogDirFailed if any of it failed; then the log dir is
        not clean. LogBusy, and nothing is closed, while a flush is running. A reader keeps the
        descriptor that it holds.
        """
        self._folder.refuse_in_use()
        try:
            self._flush_last()
        finally:
            self._forget()
            self._folder.release()
        self._folder.refuse_failed()

    def refuse_in_use(self) -> None:
        """Raise LogBusy while a flush or the swap of a cleaning is running."""
        self._folder.refuse_in_use()

    def abandon(self) -> None:
        """Close the files without a flush: the log is about to be removed.

        LogBusy, and nothing is closed, while a flush is running. A reader keeps the descriptor that
        it holds.
        """
        self._folder.refuse_in_use()
        self._forget()
        self._folder.release()

    def delete(self) -> None:
        """Remove the log and its folder; LogBusy while a flush is running."""
        self._folder.refuse_in_use()
        self._forget()
        self._folder.delete()

    def _run(self, ticket: FlushTicket) -> None:
        try:
            ticket.run()
        finally:
            self.finish_flush(ticket)

    def _flush_last(self) -> None:
        try:
            ticket = self.begin_close()
        except KafkaError:
            # Write the records to the disk even if there is no room for the rest, which can be
            # derived from them.
            self.flush()
            raise
        if ticket is not None:
            self._run(ticket)

    def _end_at(self, offset: int) -> None:
        self._appends.go_on_at(offset)
        self.start_offset = min(self.start_offset, offset)

    def _forget(self) -> None:
        self.handles.owners.discard(self)
        self._appends.close()
