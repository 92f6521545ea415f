"""A partition that this broker leads: one log, how far readers may see, and who waits for it.

Knows no requests, and no other replicas yet. Two offsets matter: the end of the log, and the high
watermark, below which everything may be read and acknowledged. Where durability is `synced`, the
high watermark is what the disk has confirmed: nothing unflushed is readable and nothing unflushed
is acknowledged. Where it is `replicated`, it is the end of the log at once, as in Kafka with one
replica. It never goes back while the partition is led.

Those who wait stand in the order of their offsets, so that a watermark that moves looks at no more
than those it serves.
"""

from collections import deque
from collections.abc import Callable
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
    """Belongs to the event loop. Attributes are there to be read; methods change them."""

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
        # All that a log holds when it is opened is on the disk.
        self.high_watermark = log.flushed_offset
        # Bytes since the start of this run; waits for data go by their differences.
        self.appended_bytes = self.flushing_bytes = self.visible_bytes = 0
        self.sent_bytes = 0  # of records, since the start of this run; counted by who answers
        # Those who wait for data. Whoever enters it is counted in the room.
        self.watchers: dict[Watcher, None] = {}
        self.is_flush_asked = False
        self.is_flushing = False
        self._wants_all_flushed = False
        # Batches of producers since the last flush began, those of that flush, and how many are
        # half of all whose producers take part, as far as the end of that flush has told, and for
        # how long that is worth something.
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
        """Where readers of committed data must stop; without transactions, at the watermark."""
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
        """Leads from now on, under this epoch; said again, it changes nothing."""
        if self.is_leading and leader_epoch == self.leader_epoch:
            return
        self.is_leading = True
        self.leader_epoch = leader_epoch
        if self.is_synced and self.high_watermark < self.log.end_offset:
            # Also where a flush ended while it was not led: then there is nothing left to sync, and
            # the flusher only comes back to say so.
            self._flusher.ask(self)
        self._tell_watchers()

    def resign(self) -> None:
        """Leads no more: whoever waits is sent away and finds out where to go."""
        self.is_leading = False
        self._lose_waits(self._not_leading())
        self._tell_watchers()

    def reconfigure(self, settings: TopicSettings) -> None:
        """Takes over another configuration of its topic."""
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
            # What readers have seen stays readable; the watermark waits there for the disk.
            self._flusher.ask(self)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Refuses a client that speaks of another leadership than the present one (KIP-320)."""
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
        """Appends the one batch of a producer; KafkaError says why it was refused.

        NeedsInspection: its records must be `inspected` by the log's rules first; see there.
        The buffer is patched on the way and belongs to the log for good: what was refused must not
        be sent on from it.
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
                # One that begins without anything to flush would end here, before `wait_for`.
                self.is_flushing or appended.is_duplicate
            ):
                self._flusher.begin(self)
            return appended
        # What `_advance` does, without its calls for the usual case: nobody waits or watches.
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
        """Tells `waiter` once the high watermark is at `offset`, which it is not yet.

        An offset lower than that of an earlier wait, as a repeated batch has it, waits for that
        one: a bit longer than it must, and in order.
        """
        assert offset > self.high_watermark, f"{offset} is reached, {self.high_watermark}"
        self._room.appends += 1
        self._waits.append((offset, waiter, slot))

    def append_as_coordinator(
        self, records: memoryview, now_ms: int, *, leader_epoch: int
    ) -> Appended:
        """Appends a batch of this broker's own, made under a leadership that must still be on.

        Not a way through `append`, whose every call a producer pays for. The caller waits for the
        high watermark, as a producer does.
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
        """Plans a read of whole batches below the high watermark; the caller releases it.

        Not to begin with a batch without records, as compaction leaves them, unless nothing else is
        there: kafkajs asks for ever for what comes behind an answer of such batches alone. Other
        clients, and ours, take from one where to go on.
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
        """The attributes and the size of the batch at a position in a piece that was read."""
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
        """The batches of a piece, for readers inside of the broker; the caller releases it."""
        handles = self.log.handles
        try:
            return piece.read(handles.files)
        except OSError as error:
            failure = handles.fail(LogDirFailed(piece.file.path, "read", error))
            raise self.refused(failure) from error

    def is_all_read_by(self, piece: LogSlice) -> bool:
        """Whether nothing more may be read behind a piece that was just planned."""
        if self.high_watermark < self.log.end_offset:
            return True  # more is on its way to the disk, and will be told
        active = self.log.segments.active
        return piece.file is active.file and piece.position + piece.length == active.size

    def aborted_transactions(self, first: int, upper: int) -> list[AbortedTxn]:
        """The aborted transactions that a reader of `first` up to below `upper` must skip."""
        try:
            return self.log.aborted_transactions(first, upper)
        except StorageError as error:
            raise self.refused(error) from error

    def search_timestamp(self, timestamp: int) -> Search:
        """Finds, in steps, the first record that is not older and may be read; None without one."""
        return self._searching(self.log.search_timestamp(timestamp))

    def search_max_timestamp(self) -> Search:
        """Finds, in steps, the first record with the greatest timestamp, if it may be read."""
        return self._searching(self.log.search_max_timestamp())

    def _searching(self, steps: Search) -> Search:
        # A log that is not led any more may be closed, and its files be gone.
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
        """When the first record at or behind `offset` was written; None where nothing is behind.

        A few milliseconds at most: of a batch too large for that it is the batch's own time.
        """
        try:
            found = self.log.first_record(offset, max_offset=self.high_watermark)
        except StorageError as error:
            raise self.refused(error) from error
        return None if found is None else found.timestamp

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The greatest epoch of the log up to `epoch` and where it ends; (-1, -1) if not known."""
        if epoch == self.leader_epoch:
            # Also before its first batch, when the log has not heard of it.
            return epoch, self.log.end_offset
        latest = self.log.epochs.latest
        if 0 <= epoch < self.leader_epoch and latest <= epoch:
            # Of a log that was never written the present leadership is the end of all before it.
            return (epoch if latest == NO_EPOCH else latest), self.log.end_offset
        return self.log.epochs.end_offset_for(epoch, self.log.end_offset)

    def delete_before(self, offset: int) -> int:
        """Serves nothing below `offset` any more, or below the watermark for -1; the new start.

        It lasts once the log dir's log starts are written.
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
        """Flushes all of the log soon, whatever its durability."""
        self._wants_all_flushed = True
        self._flusher.ask(self)

    def ask_rolled_flush(self) -> None:
        """Flushes the complete segments soon: all that a log without sync of its own needs."""
        self._flusher.ask(self)

    def begin_flush(self) -> FlushTicket | None:
        """For the flusher. A log that is not led may be closed by now, and is left alone."""
        if not self.is_leading:
            return None
        is_all = self.is_synced or self._wants_all_flushed
        self._wants_all_flushed = False
        self._flushing, self._gathered = self._gathered, 0
        self.flushing_bytes = self.appended_bytes
        return self.log.begin_flush(rolled_only=not is_all)

    @property
    def is_flush_early(self) -> bool:
        """For the flusher. Half of those who take part are not here yet."""
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
        """What a client is told of an error of the disk; the end of the log dir is reported."""
        if isinstance(error, LogDirFailed):
            self._on_log_dir_failed(error)
        if isinstance(error, RecordsDamaged):
            # Clients take this one to their application, which may seek past it; they would repeat
            # a storage error for ever.
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

    def expire(self, now_ms: int) -> None:
        """Moves the log's start behind what retention takes; never above the high watermark."""
        is_usable = self.is_leading and self.log.damage is None
        if is_usable and self.log.expire(now_ms, high_watermark=self.high_watermark):
            self._tell_watchers()

    def _gather_anew(self) -> None:
        """Asks for the flush of what is the first to be appended since the last one began."""
        if not self.is_flushing and self._flusher.clock.monotonic() > self._crowd_until:
            self._begin_at = 0
        self._flusher.ask(self)

    def _count_messages(self) -> None:
        """Asks for the flush that flush.messages demands."""
        if self.log.end_offset - self.log.flushed_offset >= self.settings.flush_messages:
            self.ask_flush()

    def _advance(self, offset: int, visible_bytes: int) -> None:
        """Moves the high watermark up and lets go whom it has passed."""
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
