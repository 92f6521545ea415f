"""A partition that this broker leads: one log, its high watermark, and the requests that wait.

Knows no requests, and no other replicas yet. Two offsets matter: the end of the log, and the high
watermark, below which everything may be read and acknowledged. With durability `synced`, the high
watermark is what the disk has confirmed: nothing unflushed is readable and nothing unflushed is
acknowledged. With `replicated`, it is the end of the log at once, as in Kafka with one replica. It
never goes back while the partition is led.

Waits are kept in the order of their offsets, so that a moved watermark visits only those that it
ends.
"""

from collections import deque
from collections.abc import Callable, Generator
from typing import Final

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import HEADER_SIZE, Batch
from brokers.protocol.records.validation import Origin, ProduceRules
from brokers.replication.flusher import CROWD_SECONDS, Flusher
from brokers.replication.log_settings import NEVER, TopicSettings
from brokers.replication.waits import AppendWaiter, WaitRoom, Watcher
from brokers.storage.errors import LogDirFailed, StorageCorrupt, StorageError
from brokers.storage.fsync import FlushTicket
from brokers.storage.holes import RecordsDamaged
from brokers.storage.log import Appended, LogSlice, PartitionLog
from brokers.storage.reads import FoundRecord
from brokers.storage.time_search import Search
from brokers.storage.txn_index import AbortedTxn

NO_EPOCH: Final = -1


class Partition:
    """Belongs to the event loop. Attributes are for reading; methods change them."""

    __slots__ = (
        "_begin_at",
        "_counts_messages",
        "_crowd_until",
        "_flusher",
        "_flushing",
        "_gathered",
        "_log_append",
        "_on_log_dir_failed",
        "_room",
        "_waits",
        "_wants_all_flushed",
        "appended_bytes",
        "flushing_bytes",
        "high_watermark",
        "index",
        "is_flush_asked",
        "is_flushing",
        "is_leading",
        "is_synced",
        "leader_epoch",
        "log",
        "sent_bytes",
        "settings",
        "topic",
        "topic_id",
        "visible_bytes",
        "watchers",
    )

    def __init__(
        self,
        *,
        topic: str,
        topic_id: bytes,
        index: int,
        log: PartitionLog,
        settings: TopicSettings,
        flusher: Flusher,
        room: WaitRoom,
        on_log_dir_failed: Callable[[LogDirFailed], None],
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.log = log
        self.settings = settings
        self.is_synced = settings.is_synced
        self._counts_messages = settings.flush_messages < NEVER
        self.is_leading = False
        self.leader_epoch = NO_EPOCH
        # All records of a log are on the disk when it is opened.
        self.high_watermark = log.flushed_offset
        # Bytes since the start of this run; waits for data use their differences.
        self.appended_bytes = self.flushing_bytes = self.visible_bytes = 0
        self.sent_bytes = 0  # of records, since the start of this run; counted by the senders
        # The waits for data. Each of them is counted in the room.
        self.watchers: dict[Watcher, None] = {}
        self.is_flush_asked = False
        self.is_flushing = False
        self._wants_all_flushed = False
        # Batches of producers since the last flush began, those of that flush, half of all whose
        # producers take part, as known at the end of that flush, and the time until which that is
        # valid.
        self._gathered = self._flushing = self._begin_at = 0
        self._crowd_until = 0.0
        self._waits: deque[tuple[int, AppendWaiter, int]] = deque()
        self._flusher = flusher
        self._room = room
        self._on_log_dir_failed = on_log_dir_failed
        self._log_append = log.append

    def __repr__(self) -> str:
        return f"Partition({self.topic}-{self.index}, {self.log.end_offset} records)"

    @property
    def last_stable_offset(self) -> int:
        """The limit for readers of committed data; without transactions, the high watermark."""
        return self.high_watermark

    @property
    def log_start_offset(self) -> int:
        return self.log.start_offset

    @property
    def waiting(self) -> int:
        """Appends that wait for the high watermark."""
        return len(self._waits)

    # -- leadership ------------------------------------------------------------------------------

    def lead(self, leader_epoch: int) -> None:
        """Lead from now on, under this epoch; repeated calls change nothing."""
        if self.is_leading and leader_epoch == self.leader_epoch:
            return
        self.is_leading = True
        self.leader_epoch = leader_epoch
        if self.is_synced and self.high_watermark < self.log.end_offset:
            # Also if a flush ended while it was not led: then there is nothing left to sync, and
            # the flusher only calls back.
            self._flusher.ask(self)
        self._tell_watchers()

    def resign(self) -> None:
        """Stop leading: waiting clients get an error and look for the new leader."""
        self.is_leading = False
        self._lose_waits(self._not_leading())
        self._tell_watchers()

    def reconfigure(self, settings: TopicSettings) -> None:
        """Apply another configuration of the topic."""
        if settings is self.settings:
            return
        self.settings = settings
        self._counts_messages = settings.flush_messages < NEVER
        if settings.log != self.log.config:
            self.log.reconfigure(settings.log)
        was_synced, self.is_synced = self.is_synced, settings.is_synced
        if was_synced and not self.is_synced:
            self._advance(self.log.end_offset, self.appended_bytes)
        elif not was_synced and self.is_synced:
            # Records that were readable stay so; the watermark stays until the disk catches up.
            self._flusher.ask(self)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Refuse a client with another leader epoch than the present one (KIP-320)."""
        if current_leader_epoch in (self.leader_epoch, NO_EPOCH):
            return
        if current_leader_epoch < self.leader_epoch:
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"leader epoch {current_leader_epoch} is over, it is {self.leader_epoch} now",
            )
        raise KafkaError(
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            f"leader epoch {current_leader_epoch} is not known here, {self.leader_epoch} is",
        )

    # -- records in ------------------------------------------------------------------------------

    def append(
        self, records: memoryview, now_ms: int, inspected: ProduceRules | None = None
    ) -> Appended:
        """Append the one batch of a producer; KafkaError has the reason if it is refused.

        Unready: it must be inspected or recompressed by the log's rules first; see there. The
        buffer is patched and belongs to the log from here on: a refused one must not be sent on.
        """
        if not self.is_leading:
            raise self._not_leading()
        try:
            appended = self._log_append(records, self.leader_epoch, now_ms, inspected)
        except StorageError as error:
            raise self.refused(error) from error
        self.appended_bytes += len(records)
        if self.is_synced:
            self._gathered += 1
            if not self.is_flush_asked:
                self._gather_anew()
            elif self._gathered == self._begin_at and not (
                # An empty flush would end at once, before `wait_for`.
                self.is_flushing or appended.is_duplicate
            ):
                self._flusher.begin(self)
            return appended
        # `_advance` inlined for the usual case, without waits or watchers.
        next_offset = appended.last_offset + 1
        if self.watchers or self._waits:
            self._advance(next_offset, self.appended_bytes)
        elif next_offset > self.high_watermark:
            self.high_watermark = next_offset
            self.visible_bytes = self.appended_bytes
        if self._counts_messages:
            self._count_messages()
        return appended

    def wait_for(self, offset: int, waiter: AppendWaiter, slot: int) -> None:
        """Notify `waiter` once the high watermark is at `offset`, which it is not yet.

        A lower offset than that of an earlier wait, as of a repeated batch, waits for that one: a
        bit longer than necessary, and in order.
        """
        assert offset > self.high_watermark, f"{offset} is reached, {self.high_watermark}"
        self._room.appends += 1
        self._waits.append((offset, waiter, slot))

    def append_as_coordinator(
        self, records: memoryview, now_ms: int, *, leader_epoch: int
    ) -> Appended:
        """Append a batch of this broker's own, if the leadership it was made under still holds.

        Separate from `append`, so that producers do not pay for it. The caller waits for the high
        watermark, as a producer does.
        """
        if not self.is_leading:
            raise self._not_leading()
        if leader_epoch != self.leader_epoch:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"{self.topic}-{self.index} is led under epoch {self.leader_epoch}, and the "
                f"records were made under {leader_epoch}",
            )
        try:
            appended = self._log_append(records, leader_epoch, now_ms, origin=Origin.COORDINATOR)
        except StorageError as error:
            raise self.refused(error) from error
        self.appended_bytes += len(records)
        if self.is_synced:
            self._flusher.ask(self)
            return appended
        self._advance(appended.last_offset + 1, self.appended_bytes)
        if self._counts_messages:
            self._count_messages()
        return appended

    # -- records out -----------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, *, min_one_batch: bool) -> LogSlice:
        """Plan a read of whole batches below the high watermark; the caller releases it.

        Skips leading batches without records, as compaction leaves them, unless there is nothing
        else: kafkajs repeats the same fetch after an answer of such batches alone. Other clients,
        and Samsa's, learn from one where to go on.
        """
        try:
            return self.log.read(
                offset,
                max_bytes=max_bytes,
                max_offset=self.high_watermark,
                min_one_batch=min_one_batch,
                skips_empty=True,
            )
        except StorageError as error:
            raise self.refused(error) from error

    def batch_at(self, piece: LogSlice, position: int) -> tuple[int, int]:
        """Return attributes and size of the batch at a position of a piece."""
        at, path, handles = piece.position + position, piece.file.path, self.log.handles
        try:
            header = handles.files.pread(piece.fd, HEADER_SIZE, at)
        except OSError as error:
            raise self.refused(handles.fail(LogDirFailed(path, "read", error))) from error
        if len(header) < HEADER_SIZE:
            raise self.refused(StorageCorrupt(path, at, "the file ends inside of a batch"))
        batch = Batch(memoryview(header))
        return batch.attributes, batch.size

    def content(self, piece: LogSlice) -> bytes:
        """Return the batches of a piece, for readers in the broker; the caller releases it."""
        handles = self.log.handles
        try:
            return piece.read(handles.files)
        except OSError as error:
            failure = handles.fail(LogDirFailed(piece.file.path, "read", error))
            raise self.refused(failure) from error

    def is_all_read_by(self, piece: LogSlice) -> bool:
        """Tell whether nothing more is readable behind a piece that was just planned."""
        if self.high_watermark < self.log.end_offset:
            return True  # more is being flushed, and will wake the reader
        active = self.log.segments.active
        return piece.file is active.file and piece.position + piece.length == active.size

    def aborted_transactions(self, first: int, upper: int) -> list[AbortedTxn]:
        """Return the aborted transactions for a reader of `first` up to below `upper`."""
        try:
            return self.log.aborted_transactions(first, upper)
        except StorageError as error:
            raise self.refused(error) from error

    def search_timestamp(self, timestamp: int) -> Search:
        """Find, in steps, the first readable record that is not older; None without one."""
        return self._searching(self.log.search_timestamp(timestamp))

    def search_max_timestamp(self) -> Search:
        """Find, in steps, the first record with the greatest timestamp, if it is readable."""
        return self._searching(self.log.search_max_timestamp())

    def _searching(self, steps: Search) -> Search:
        # A log that is no longer led may be closed, and its files deleted.
        try:
            while self.is_leading:
                try:
                    next(steps)
                except StopIteration as end:
                    found: FoundRecord | None = end.value
                    is_visible = found is not None and found.offset < self.high_watermark
                    return found if is_visible else None
                except StorageError as error:
                    raise self.refused(error) from error
                yield
        finally:
            steps.close()
        raise self._not_leading()

    def timestamp_at(self, offset: int) -> int | None:
        """Return the time of the first record at or behind `offset`; None without one.

        Takes a few milliseconds at most: for a too large batch it is the batch's own time.
        """
        try:
            found = self.log.first_record(offset, max_offset=self.high_watermark)
        except StorageError as error:
            raise self.refused(error) from error
        return None if found is None else found.timestamp

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """Return the greatest epoch of the log up to `epoch` and its end; (-1, -1) if unknown."""
        if epoch == self.leader_epoch:
            # Also before its first batch, when the log does not have it yet.
            return epoch, self.log.end_offset
        latest = self.log.epochs.latest
        if 0 <= epoch < self.leader_epoch and latest <= epoch:
            # In a log that was never written, all earlier epochs end with the present one.
            return (epoch if latest == NO_EPOCH else latest), self.log.end_offset
        return self.log.epochs.end_offset_for(epoch, self.log.end_offset)

    def delete_before(self, offset: int) -> int:
        """Delete records below `offset`, or the watermark for -1; return the log's new start.

        It is durable once the log dir's log starts are written.
        """
        target = self.high_watermark if offset == -1 else offset
        if not 0 <= target <= self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"records can be deleted up to the high watermark, {self.high_watermark}, "
                f"not {offset}",
            )
        if self.log.advance_log_start(target):
            self._tell_watchers()
        return self.log.start_offset

    # -- the disk --------------------------------------------------------------------------------

    def ask_flush(self) -> None:
        """Flush all of the log soon, whatever its durability."""
        self._wants_all_flushed = True
        self._flusher.ask(self)

    def ask_rolled_flush(self) -> None:
        """Flush the complete segments soon, which is enough for a log that is not synced."""
        self._flusher.ask(self)

    def begin_flush(self) -> FlushTicket | None:
        """For the flusher. A log that is not led may be closed by now, and is skipped."""
        if not self.is_leading:
            return None
        is_all = self.is_synced or self._wants_all_flushed
        self._wants_all_flushed = False
        self._flushing, self._gathered = self._gathered, 0
        self.flushing_bytes = self.appended_bytes
        return self.log.begin_flush(rolled_only=not is_all)

    @property
    def is_flush_early(self) -> bool:
        """For the flusher. True if half of the producers have not sent yet."""
        return self._gathered < self._begin_at

    def finish_flush(self, ticket: FlushTicket | None) -> None:
        """For the flusher."""
        self._begin_at = (self._flushing + self._gathered + 1) // 2
        self._crowd_until = self._flusher.clock.monotonic() + CROWD_SECONDS
        if ticket is not None:
            self.log.finish_flush(ticket)
        if self.is_synced and self.is_leading:
            self._advance(self.log.flushed_offset, self.flushing_bytes)

    def refused(self, error: StorageError) -> KafkaError:
        """Return the client's error for an error of the disk; report a failed log dir."""
        if isinstance(error, LogDirFailed):
            self._on_log_dir_failed(error)
        if isinstance(error, RecordsDamaged):
            # Clients report this one to their application, which may seek past it; they would retry
            # a storage error without end.
            return KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"the records of {self.topic}-{self.index} {error.hole.offsets} are damaged on the "
                f"disk, those behind are readable",
            )
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"the log of {self.topic}-{self.index} cannot be used: "
            + (
                f"it is damaged at byte {error.position} of a file"
                if isinstance(error, StorageCorrupt)
                else "its disk has failed"
            ),
        )

    def inspect_ages(self, now_ms: int) -> Generator[None, None, None]:
        """Read, in steps, the records on whose age `expire` will depend."""
        steps = self.log.inspect_ages(now_ms)
        # A log that is no longer led may be closed, and its files deleted.
        while self._may_expire():
            try:
                next(steps)
            except StopIteration:
                return
            yield

    def expire(self, now_ms: int) -> None:
        """Move the log's start past expired segments, never above the high watermark."""
        if self._may_expire() and self.log.expire(now_ms, high_watermark=self.high_watermark):
            self._tell_watchers()

    def _may_expire(self) -> bool:
        return self.is_leading and self.log.damage is None

    def _gather_anew(self) -> None:
        """Request the flush for the first append since the last flush began."""
        if not self.is_flushing and self._flusher.clock.monotonic() > self._crowd_until:
            self._begin_at = 0
        self._flusher.ask(self)

    def _count_messages(self) -> None:
        """Request the flush that flush.messages demands."""
        if self.log.end_offset - self.log.flushed_offset >= self.settings.flush_messages:
            self.ask_flush()

    def _advance(self, offset: int, visible_bytes: int) -> None:
        """Move the high watermark up and notify the waits that it has passed."""
        grown = visible_bytes - self.visible_bytes
        self.visible_bytes = visible_bytes
        self.high_watermark = offset = max(offset, self.high_watermark)
        waits = self._waits
        while waits and waits[0][0] <= offset:
            _offset, waiter, slot = waits.popleft()
            self._room.appends -= 1
            waiter.reached(slot)
        if self.watchers and grown > 0:
            for watcher in list(self.watchers):
                watcher.grew(grown)

    def _lose_waits(self, error: KafkaError) -> None:
        waits, self._waits = self._waits, deque()
        self._room.appends -= len(waits)
        for _offset, waiter, slot in waits:
            waiter.lost(slot, error)

    def _tell_watchers(self) -> None:
        for watcher in list(self.watchers):
            watcher.changed()

    def _not_leading(self) -> KafkaError:
        return KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"this broker does not lead {self.topic}-{self.index}",
        )
