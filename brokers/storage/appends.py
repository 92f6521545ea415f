"""Appends to a log: checks and places the batches of producers, writes those of leaders verbatim.

Has no readers and no clock. A batch is one write from the caller's buffer. State changes only after
that write: first the end of the log, then what is derived from the batch. A failure before the
write leaves the log as it was; a failure after it must not take the batch back.
"""

from struct import Struct
from typing import ClassVar, Final

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import CONTROL_FLAG, Batch, TimestampType
from brokers.protocol.records.control import read_end_txn
from brokers.protocol.records.validation import (
    Origin,
    ProduceRules,
    check_produced,
    check_replicated,
)
from brokers.storage import room_ahead
from brokers.storage.dense_tail import DenseTail
from brokers.storage.log_folder import LogFolder
from brokers.storage.rolling import CLOSED, bounds, must_roll
from brokers.storage.segment import ENTRY, MAX_RELATIVE_OFFSET, MAX_WAITING, Segment

NO_LOG_APPEND_TIME: Final = -1
# Plain names, because appends call them. The first is `Batch.patch` without its frame: base offset,
# length and leader epoch, which lie in front of what the CRC covers.
_place: Final = Struct(">qii").pack_into
_pack_entry: Final = ENTRY.pack
# The step in which waiting index entries are reported; the unreported part is 2 KiB per log.
_HELD_STEP: Final = 64


class Appended:
    """The position of an appended batch. A plain class, because one is made for each batch."""

    __slots__ = ("base_offset", "last_offset", "log_append_time_ms")

    # Whether the batch was in the log already and was not appended again.
    is_duplicate: ClassVar[bool] = False

    def __init__(self, base_offset: int, last_offset: int, log_append_time_ms: int) -> None:
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms  # -1 when the topic keeps producers' times


class AppendedBefore(Appended):
    """The position of a batch that a producer sent a second time."""

    __slots__ = ()

    is_duplicate: ClassVar[bool] = True


class Appends:
    """The growing end of one log. Not thread-safe; belongs to its log."""

    __slots__ = (
        "_active",
        "_active_since_ms",
        "_bases",
        "_epochs",
        "_folder",
        "_index_room",
        "_interval",
        "_is_stamped",
        "_leader_epoch",
        "_notes",
        "_positions",
        "_pwrite",
        "_roll_bytes",
        "_roll_offset",
        "_roll_timestamp",
        "_rules",
        "_waiting_limit",
        "end_offset",
        "is_closed",
        "tail",
    )

    def __init__(self, folder: LogFolder, end_offset: int) -> None:
        self.end_offset = end_offset
        self.tail = DenseTail(folder.handles.tails)
        self._bases, self._positions = self.tail.bases, self.tail.positions
        self.is_closed = False
        self._folder = folder
        self._epochs = folder.epochs
        self._notes = folder.notes
        self._pwrite = folder.handles.files.pwrite
        self._active = folder.segments.active
        self._active_since_ms = 0  # when this run first appended to it
        self._leader_epoch = self._epochs.latest  # the newest that was assigned from here
        self._waiting_limit = self._index_room = 0
        self.reconfigure()

    def reconfigure(self) -> None:
        """Apply the folder's configuration from the next append on."""
        config = self._folder.config
        self._rules = config.rules
        self._interval = config.index_interval_bytes
        self._is_stamped = config.rules.timestamp_type is TimestampType.LOG_APPEND_TIME
        self.refuse()

    def refuse(self) -> None:
        """Send the next append to `_make_room`, which finds the bounds or raises the reason."""
        self._roll_bytes, self._roll_timestamp, self._roll_offset = CLOSED

    def append(
        self,
        records: memoryview,
        leader_epoch: int,
        now_ms: int,
        inspected: ProduceRules | None = None,
        *,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> Appended:
        """Append one batch of a producer or coordinator, as the partition's leader.

        Patches the batch's position into the caller's buffer. Raises KafkaError if it is refused,
        Unready if it needs work first, see `check_produced`. The hottest path of the broker.
        """
        batch = check_produced(records, self._rules, now_ms, origin, inspected)
        producer_id = batch.producer_id
        if producer_id >= 0:
            earlier = self._check_producer(batch, origin, transaction_version)
            if earlier is not None:
                return earlier
        if self._is_stamped:
            batch.stamp_log_append_time(now_ms)
        segment = self._active
        position = segment.size
        size = len(records)
        offset = self.end_offset
        next_offset = offset + batch.record_count
        timestamp = batch.max_timestamp
        if (
            position + size > self._roll_bytes
            or timestamp > self._roll_timestamp
            or next_offset > self._roll_offset
        ):
            segment = self._make_room(size, timestamp, next_offset, now_ms, offset)
            position = segment.size
        file = segment.file
        if file.fd < 0:
            self._folder.open(file)
        if leader_epoch != self._leader_epoch:
            self._begin_epoch(leader_epoch, offset)
        _place(records, 0, offset, batch.length, leader_epoch)
        try:
            written = self._pwrite(file.fd, records, position)
        except OSError as error:
            raise self._folder.cut_back(segment, error) from error
        if written != size:
            self._write_rest(segment, records, written)
        file.is_dirty = True
        segment.size = position + size
        self.end_offset = next_offset
        self._bases.append(offset)
        self._positions.append(segment.start + position)
        if len(self._bases) >= self.tail.limit:
            self.tail.grown()
        if timestamp > segment.max_timestamp:
            segment.max_timestamp = timestamp
            segment.max_timestamp_offset = next_offset - 1
        unindexed = segment.bytes_since_index
        if unindexed > self._interval:
            unindexed = 0
            segment.waiting += _pack_entry(
                next_offset - 1, position, segment.max_timestamp, segment.max_timestamp_offset
            )
            if len(segment.waiting) >= self._waiting_limit:
                self._hold_entries(segment)
        segment.bytes_since_index = unindexed + size
        if producer_id >= 0 and self._notes.note(segment, batch, offset, now_ms):
            self._folder.index_aborts()
        return Appended(offset, next_offset - 1, now_ms if self._is_stamped else NO_LOG_APPEND_TIME)

    def append_replicated(self, records: memoryview, *, now_ms: int) -> Appended:
        """Append whole batches of the leader verbatim; they already have their offsets."""
        batches = check_replicated(records, expected_offset=self.end_offset)
        for batch in batches:
            if batch.is_control:
                read_end_txn(batch)  # Raises now, before it is in the log.
        if batches and 0 <= batches[0].leader_epoch < self._leader_epoch:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"offset {batches[0].base_offset} has leader epoch {batches[0].leader_epoch}, "
                f"and the log is at {self._leader_epoch} already",
            )
        first_offset = batches[0].base_offset if batches else self.end_offset
        start = 0
        while batches:
            # As many as fit into the active segment go with one write; usually that is all.
            room = self._roll_bytes - self._active.size
            count, size = 1, batches[0].size
            while (
                count < len(batches)
                and size + batches[count].size <= room
                and batches[count].next_offset <= self._roll_offset
            ):
                size += batches[count].size
                count += 1
            self._append_together(batches[:count], records[start : start + size], now_ms)
            del batches[:count]
            start += size
        return Appended(first_offset, self.end_offset - 1, NO_LOG_APPEND_TIME)

    def roll(self, now_ms: int, offset: int | None = None) -> Segment:
        """Begin a new segment at the end, or at a later `offset`."""
        offset = self.end_offset if offset is None else offset
        self._active = self._folder.roll(offset)
        if offset != self.end_offset:
            # The skipped offsets hold no records, but a new leader must not assign them.
            self.end_offset = offset
            self.tail.restart()
        self._folder.handles.waiting.forget(self)
        self._active_since_ms = now_ms
        self.refuse()
        return self._active

    def go_on_at(self, offset: int) -> None:
        """Continue a log that was cut and now ends at `offset`."""
        self.end_offset = offset
        self._folder.handles.waiting.forget(self)
        self._active = self._folder.segments.active
        self._active_since_ms = 0
        self._leader_epoch = self._epochs.latest
        self.tail.restart()
        self.refuse()

    def write_indexes(self) -> None:
        """Write waiting index entries, for a log that appends rarely."""
        if self._active.waiting:
            self._write_indexes(self._active)

    def unload(self) -> None:
        """Write waiting index entries: the memory is needed elsewhere."""
        self.write_indexes()

    def close(self) -> None:
        """Refuse all further appends."""
        self.is_closed = True
        self._folder.handles.waiting.forget(self)
        self.tail.restart()
        self.refuse()

    def _check_producer(
        self, batch: Batch, origin: Origin, transaction_version: int
    ) -> Appended | None:
        if batch.attributes & CONTROL_FLAG:
            marker = read_end_txn(batch)
            if marker is not None:
                self._notes.states.check_marker(batch, marker, transaction_version)
            return None
        earlier = self._notes.states.check(batch, origin)
        if earlier is None:
            return None
        timestamp = earlier.timestamp if self._is_stamped else NO_LOG_APPEND_TIME
        return AppendedBefore(earlier.base_offset, earlier.last_offset, timestamp)

    def _append_together(self, batches: list[Batch], records: memoryview, now_ms: int) -> None:
        size, last = len(records), batches[-1]
        timestamp = max(batch.max_timestamp for batch in batches)
        segment = self._active
        if (
            segment.size + size > self._roll_bytes
            or timestamp > self._roll_timestamp
            or last.next_offset > self._roll_offset
        ):
            segment = self._make_room(
                size, timestamp, last.next_offset, now_ms, batches[0].base_offset
            )
        if segment.file.fd < 0:
            self._folder.open(segment.file)
        try:
            written = self._pwrite(segment.file.fd, records, segment.size)
        except OSError as error:
            raise self._folder.cut_back(segment, error) from error
        if written != size:
            self._write_rest(segment, records, written)
        segment.file.is_dirty = True
        for batch in batches:
            self._note_replicated(segment, batch, now_ms)

    def _note_replicated(self, segment: Segment, batch: Batch, now_ms: int) -> None:
        tail, position = self.tail, segment.size
        if batch.base_offset != self.end_offset:
            tail.restart()  # It has no gaps, and compaction on the leader left one here.
        tail.bases.append(batch.base_offset)
        tail.positions.append(segment.start + position)
        if len(tail.bases) >= tail.limit:
            tail.grown()
        segment.size = position + batch.size
        self.end_offset = batch.next_offset
        segment.note(position, batch.size, batch.last_offset, batch.max_timestamp, self._interval)
        if len(segment.waiting) >= self._waiting_limit:
            self._hold_entries(segment)
        if batch.leader_epoch > self._leader_epoch:
            self._begin_epoch(batch.leader_epoch, batch.base_offset)
        if batch.producer_id >= 0 and self._notes.note(segment, batch, batch.base_offset, now_ms):
            self._folder.index_aborts()

    def _make_room(
        self, size: int, timestamp: int, next_offset: int, now_ms: int, offset: int
    ) -> Segment:
        """Return the segment for an append and its new bounds; roll if Kafka's rules require it."""
        folder, config = self._folder, self._folder.config
        assert not self.is_closed, f"{folder.path} is closed"
        folder.refuse_broken()
        if size > config.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{size} bytes do not fit into a segment of {config.segment_bytes}",
            )
        folder.require_room()
        self._active_since_ms = self._active_since_ms or now_ms
        with folder.on_disk("append"):
            segment = self._active
            if must_roll(
                segment,
                config,
                folder=folder.path,
                size=size,
                timestamp=timestamp,
                next_offset=next_offset,
                waited_ms=now_ms - self._active_since_ms,
            ):
                is_far = next_offset - 1 - self.end_offset > MAX_RELATIVE_OFFSET
                segment = self.roll(now_ms, offset if is_far else self.end_offset)
            if segment.size == 0:
                segment.first_timestamp = timestamp
            folder.take_room(segment, segment.size + size)
            self._set_bounds(segment)
        return segment

    def _set_bounds(self, segment: Segment) -> None:
        limit, self._roll_timestamp, self._roll_offset = bounds(
            segment, self._folder.config, self._folder.path
        )
        # The append that exceeds the reserved room has to come back here, too.
        self._roll_bytes = min(limit, room_ahead.bound(segment.file))
        # Include the entries that wait already, as `_hold_entries` does.
        waiting = len(segment.waiting) // ENTRY.size
        self._index_room = segment.index_room(self._folder.config) + waiting
        self._waiting_limit = ENTRY.size * max(1, min(_HELD_STEP, self._index_room))

    def _write_rest(self, segment: Segment, records: memoryview, written: int) -> None:
        """Continue a short write, which happens when the disk is about to be full."""
        fd, position = segment.file.fd, segment.size
        try:
            while written < len(records):
                written += self._pwrite(fd, records[written:], position + written)
        except OSError as error:
            raise self._folder.cut_back(segment, error) from error

    def _hold_entries(self, segment: Segment) -> None:
        """Keep index entries waiting while memory and the indexes have room for them."""
        held = len(segment.waiting)
        limit = ENTRY.size * min(MAX_WAITING, self._index_room)
        if held >= limit:
            self._write_indexes(segment)
            return
        self._waiting_limit = min(limit, held + ENTRY.size * _HELD_STEP)
        self._folder.handles.waiting.hold(self, held)

    def _write_indexes(self, segment: Segment) -> None:
        self._folder.handles.waiting.forget(self)
        self._folder.write_indexes(segment)
        if self._folder.handles.failure is None:
            self._set_bounds(segment)

    def _begin_epoch(self, epoch: int, offset: int) -> None:
        """Record the start of an epoch, whether or not its first batch can be written."""
        if epoch < self._epochs.latest:
            raise KafkaError(
                ErrorCode.FENCED_LEADER_EPOCH,
                f"leader epoch {epoch} is over, the log is at {self._epochs.latest} already",
            )
        self._epochs.assign(epoch, offset)
        self._leader_epoch = epoch
