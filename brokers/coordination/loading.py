"""Replays a partition's log into a shard that this broker takes over, up to the log's end then.

Knows no runtime. Gaps in the offsets come from compaction. An unreadable record is skipped and
reported; a damaged file makes the whole shard fail, since it is unknown what is missing. Records of
a transaction count once its marker says that it was committed.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from brokers.coordination.shard import Record, Shard
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records import reader
from brokers.protocol.records.batch import Batch, batches
from brokers.protocol.records.control import read_end_txn
from brokers.replication.partition import Partition
from brokers.replication.waits import WaitRoom
from brokers.slices import Slices

# About 1,500 records, read at once: a tenth of a millisecond from the page cache.
LOAD_BYTES: Final = 256 * 1024
# Records of one batch after which other tasks get their turn.
LOAD_STEP: Final = 64
# The limit for open transactions, whose markers are not read yet. Only offsets of producers are
# written transactionally into these topics, so this is a thousand times the usual amount.
MAX_HELD_BYTES: Final = 64 * 1024 * 1024

# Called with each record that could not be read.
Unreadable = Callable[[KafkaError], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The totals of one load."""

    records: int = 0
    bytes: int = 0
    seconds: float = 0.0


class _Arrival:
    """Waits until there may be something new to read."""

    def __init__(self, future: "asyncio.Future[None]") -> None:
        self.future = future

    def grew(self, size: int) -> None:
        assert size > 0, f"{size} more bytes were loaded"
        self._end()

    def changed(self) -> None:
        self._end()

    def expire(self) -> None:
        self._end()

    def _end(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class Loading:
    """One load; `run` is called once."""

    def __init__(
        self,
        partition: Partition,
        shard: Shard[Any],
        *,
        room: WaitRoom,
        slices: Slices,
        on_unreadable: Unreadable,
    ) -> None:
        self._partition = partition
        self._shard = shard
        self._room = room
        self._slices = slices
        self._on_unreadable = on_unreadable
        self._held: dict[int, list[tuple[Record, int]]] = {}  # by producer id
        self._held_bytes = 0
        self._records = self._bytes = 0

    async def run(self, until: int) -> Loaded:
        """Replay all records below `until`, the log's end; KafkaError if that is impossible."""
        partition = self._partition
        position = partition.log_start_offset
        while position < until:
            data = self._read(position)
            if not data:
                if partition.high_watermark >= until:
                    break  # Compaction took the last offsets.
                await self._wait()
                continue
            for batch in batches(memoryview(data)):
                batch.check_crc()
                await self._replay_batch(batch, position)
                position = max(position, batch.next_offset)
                await self._slices.breathe()
        return Loaded(records=self._records, bytes=self._bytes)

    def _read(self, position: int) -> bytes:
        piece = self._partition.read(position, LOAD_BYTES, min_one_batch=True)
        try:
            data = self._partition.content(piece)
        finally:
            piece.release()
        self._bytes += len(data)
        return data

    async def _wait(self) -> None:
        """Wait until the disk has confirmed more of the log."""
        partition = self._partition
        if not partition.is_leading:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"{partition.topic}-{partition.index} is no longer led here",
            )
        if not self._room.admit_fetch((partition,)):
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"{self._room.fetches} readers wait for data already",
            )
        arrival = _Arrival(asyncio.get_running_loop().create_future())
        partition.watchers[arrival] = None
        try:
            await arrival.future
        finally:
            partition.watchers.pop(arrival, None)
            self._room.dismiss_fetch((partition,))

    async def _replay_batch(self, batch: Batch, position: int) -> None:
        try:
            if batch.is_control:
                await self._end_transaction(batch)
                return
            limit = self._partition.settings.log.rules.max_decompressed_bytes
            for number, found in enumerate(reader.records(batch, max_bytes=limit)):
                if found.offset >= position:
                    self._take(batch, found)
                if number % LOAD_STEP == LOAD_STEP - 1:
                    await self._slices.breathe()
        except KafkaError as error:
            if error.code not in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE):
                raise
            self._report(batch.base_offset, error)

    def _take(self, batch: Batch, found: reader.Record) -> None:
        self._records += 1
        if found.key is None:
            error = KafkaError(ErrorCode.CORRUPT_MESSAGE, "the record has no key")
            self._report(found.offset, error)
            return
        record = Record(found.key, found.value)
        if not batch.is_transactional:
            self._replay(record, found.timestamp, found.offset)
            return
        self._held_bytes += len(record.key) + len(record.value or b"")
        if self._held_bytes > MAX_HELD_BYTES:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"open transactions before offset {found.offset} hold more than "
                f"{MAX_HELD_BYTES} bytes",
            )
        self._held.setdefault(batch.producer_id, []).append((record, found.timestamp))

    async def _end_transaction(self, batch: Batch) -> None:
        marker = read_end_txn(batch)
        if marker is None:
            return
        for number, (record, timestamp) in enumerate(self._held.pop(batch.producer_id, ())):
            self._held_bytes -= len(record.key) + len(record.value or b"")
            if marker.is_commit:
                self._replay(record, timestamp, batch.base_offset)
            if number % LOAD_STEP == LOAD_STEP - 1:
                await self._slices.breathe()

    def _replay(self, record: Record, timestamp: int, offset: int) -> None:
        try:
            self._shard.replay(record, timestamp)
        except KafkaError as error:
            self._report(offset, error)

    def _report(self, offset: int, error: KafkaError) -> None:
        partition = self._partition
        self._on_unreadable(
            KafkaError(
                error.code,
                f"{partition.topic}-{partition.index} at offset {offset}: {error.message}",
            )
        )
