"""A log driven by thousands of random steps beside a twin that is a plain list.

Appends of every kind, reads by offset and by time, flushes that overlap with all of it, cleaning,
truncation, retention, deletion, clean restarts, killed processes and power failures. What was
flushed must be there after any of them, and every answer must be the twin's.
"""

import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import TimestampType
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.control import EndTxnMarker, build_end_txn
from brokers.protocol.records.validation import Origin, ProduceRules
from brokers.storage.clean_worker import decode_job, encode_job
from brokers.storage.cleaning import clean
from brokers.storage.errors import LogBusy, OffsetOutOfRange
from brokers.storage.fsync import FlushTicket
from brokers.storage.handles import Handles
from brokers.storage.log import Appended, PartitionLog
from brokers.storage.log_config import LogConfig
from brokers.storage.reads import LogSlice
from tests.brokers.storage.log_twin import Aborted, LogTwin, Stored, stored, stored_end, stored_in
from tests.builders.cleaning import swap_cleaned
from tests.builders.logs import at_greatest_time, at_time, expire
from tests.fakes.crash_files import CrashDisk, CrashFiles
from tests.scale import count

SEEDS = 20
STEPS = count(250, 750, long=25_000)
ALL = 1 << 30

# What happens how often; the numbers are weights.
ACTIONS = {
    "append_plain": 30,
    "append_idempotent": 14,
    "append_transactional": 10,
    "end_transaction": 6,
    "append_replicated": 6,
    "read": 30,
    "hold_a_slice": 4,
    "read_held_slices": 3,
    "find_time": 8,
    "find_latest_time": 3,
    "look_for_aborts": 6,
    "ask_epochs": 3,
    "begin_flush": 6,
    "finish_flush": 6,
    "save_recovery_point": 3,
    "begin_epoch": 2,
    "truncate": 1.5,
    "delete_records": 2,
    "expire": 3,
    "clean": 1,
    "unlink_old_files": 2,
    "reconfigure": 0.5,
    "start_elsewhere": 0.15,
    "recreate": 0.1,
    "close_and_open": 0.6,
    "kill_and_open": 0.6,
    "lose_power_and_open": 1.2,
}


class Driver:
    """The log's owner: it does what a broker does around a log, and compares every answer."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.disk = CrashDisk(folder)
        self.folder = str(self.disk.live / "orders-0")
        self.now_ms = 1_700_000_000_000
        self.epoch = 0
        self.new_producer = 1
        self.seen: Counter[str] = Counter()
        self.config = self.random_config()
        self.forget()
        self.open(is_clean=False)

    def forget(self) -> None:
        self.twin = LogTwin()
        self.safe = 0  # everything below was flushed
        self.saved_point = self.saved_start = 0  # the log dir's checkpoints
        self.windows: dict[int, list[Stored]] = {}  # what each idempotent producer may repeat
        self.open_txns: dict[int, int] = {}  # producer -> its next sequence
        self.vanished: dict[int, int] = {}  # producer -> the newest batch that cleaning took
        self.ticket: FlushTicket | None = None
        self.slices: list[tuple[LogSlice, bytes]] = []

    def step(self) -> None:
        self.now_ms += self.rng.choice([0, 1, 20, 500])
        (action,) = self.rng.choices(list(ACTIONS), list(ACTIONS.values()))
        self.seen[action] += 1
        method: Callable[[], None] = getattr(self, action)
        method()
        assert (self.log.start_offset, self.log.end_offset) == (self.twin.start, self.twin.end)
        assert self.log.flushed_offset <= self.log.end_offset

    # Appending

    def append_plain(self) -> None:
        self.append(self.builder(BatchBuilder(compression=self.random_codec())))

    def append_idempotent(self) -> None:
        choice = self.rng.choice(
            ["new", "next", "next", "next", "repeat", "gap", "epoch", "zombie"]
        )
        known = [producer for producer in self.windows if producer not in self.open_txns]
        if choice == "new" or not known:
            sequence = self.rng.choice([0, 0, 7, 2**31 - 2])
            self.new_producer += 1
            return self.append(self.sequenced(self.new_producer, 0, sequence))
        producer = self.rng.choice(known)
        window = self.windows[producer]
        last = window[-1]
        if choice == "repeat":
            repeated = self.rng.choice(window)
            return self.repeat(repeated)
        epoch, following = last.producer_epoch, (last.last_sequence + 1) % 2**31
        if choice == "gap":
            wrong = (following + self.rng.randrange(1, 9)) % 2**31
            gap = self.sequenced(producer, epoch, wrong)
            return self.refused(gap, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        if choice == "zombie" and epoch > 0:
            late = self.sequenced(producer, epoch - 1, following)
            return self.refused(late, ErrorCode.INVALID_PRODUCER_EPOCH)
        if choice == "epoch":
            return self.append(self.sequenced(producer, epoch + 1, 0))
        return self.append(self.sequenced(producer, epoch, following))

    def append_transactional(self) -> None:
        if len(self.open_txns) < 3 and self.rng.random() < 0.4:
            self.new_producer += 1
            self.open_txns[self.new_producer] = 0
        if not self.open_txns:
            return
        producer = self.rng.choice(list(self.open_txns))
        builder = BatchBuilder(
            producer_id=producer,
            producer_epoch=0,
            base_sequence=self.open_txns[producer],
            is_transactional=True,
        )
        self.append(self.builder(builder))
        self.open_txns[producer] += builder.record_count

    def end_transaction(self) -> None:
        if not self.open_txns:
            return
        producer = self.rng.choice(list(self.open_txns))
        marker = EndTxnMarker(is_commit=self.rng.random() < 0.5, coordinator_epoch=0)
        built = build_end_txn(marker, producer_id=producer, producer_epoch=0, timestamp=self.now_ms)
        del self.open_txns[producer]
        self.append(built, Origin.COORDINATOR)

    def append_replicated(self) -> None:
        base, sent = self.log.end_offset, []
        for _ in range(self.rng.randrange(1, 5)):
            base += self.rng.choice([0, 0, 0, 3])  # compaction on the leader leaves gaps
            builder = BatchBuilder(base_offset=base, leader_epoch=self.epoch)
            sent.append(stored(bytes(self.builder(builder))))
            base = sent[-1].last + 1
        together = memoryview(b"".join(batch.data for batch in sent))
        appended = self.log.append_replicated(together, now_ms=self.now_ms)
        assert (appended.base_offset, appended.last_offset) == (sent[0].base, sent[-1].last)
        for batch in sent:
            self.twin.append(batch)

    def append(self, data: bytearray, origin: Origin = Origin.CLIENT) -> None:
        appended = self.send(data, origin)
        new = stored(bytes(data))
        assert not appended.is_duplicate
        assert (appended.base_offset, appended.last_offset) == (new.base, new.last)
        assert appended.base_offset == self.twin.end
        assert new.epoch == self.epoch
        self.twin.append(new)
        if new.producer >= 0 and new.ends_with is None:
            window = self.windows.setdefault(new.producer, [])
            if window and window[-1].producer_epoch != new.producer_epoch:
                window.clear()
            window.append(new)
            del window[:-5]

    def repeat(self, earlier: Stored) -> None:
        # Not counted, since cleaning may have taken some of them.
        count = earlier.last - earlier.base + 1
        data = self.sequenced(earlier.producer, earlier.producer_epoch, earlier.sequence, count)
        appended = self.send(data)
        assert appended.is_duplicate
        assert (appended.base_offset, appended.last_offset) == (earlier.base, earlier.last)

    def refused(self, data: bytearray, code: ErrorCode) -> None:
        before = self.log.size_bytes
        with pytest.raises(KafkaError) as caught:
            self.send(data)
        assert caught.value.code is code
        assert self.log.size_bytes == before

    def send(self, data: bytearray, origin: Origin = Origin.CLIENT) -> Appended:
        return self.log.append(
            memoryview(data), leader_epoch=self.epoch, now_ms=self.now_ms, origin=origin
        )

    def sequenced(
        self, producer: int, epoch: int, sequence: int, records: int | None = None
    ) -> bytearray:
        builder = BatchBuilder(producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
        return self.builder(builder, records)

    def builder(self, builder: BatchBuilder, records: int | None = None) -> bytearray:
        for _ in range(records or self.rng.choice([1, 1, 1, 2, 5])):
            time = self.now_ms - self.rng.choice([0, 0, 0, 1, 100, 30_000])
            value = self.rng.randbytes(self.rng.choice([0, 10, 10, 60, 300]))
            key = self.rng.choice([None, b"a", b"b", b"c"])
            builder.append(key, value, timestamp=self.rng.choice([time, time, time, -1]))
        return builder.build()

    # Reading

    def read(self) -> None:
        offset = self.rng.randrange(max(0, self.twin.start - 3), self.twin.end + 4)
        max_bytes = self.rng.choice([1, 100, 500, 2_000, ALL])
        max_offset = self.rng.choice([None, None, self.rng.randrange(self.twin.end + 1)])
        min_one = self.rng.random() < 0.8
        if not self.twin.start <= offset <= self.twin.end:
            with pytest.raises(OffsetOutOfRange):
                self.log.read(offset, max_bytes=max_bytes)
            return
        found = self.log.read(
            offset, max_bytes=max_bytes, max_offset=max_offset, min_one_batch=min_one
        )
        data = self.content(found)
        self.check_slice(data, offset, max_bytes, max_offset, min_one=min_one)

    def content(self, found: LogSlice) -> bytes:
        data = found.read(self.files) if found.length else b""
        found.release()
        return data

    def check_slice(
        self, data: bytes, offset: int, max_bytes: int, max_offset: int | None, *, min_one: bool
    ) -> None:
        limit = self.twin.end if max_offset is None else max_offset
        first = self.twin.first_at(offset)
        expected = b""
        for number, batch in enumerate(self.twin.batches[first:]):
            too_much = len(expected) + batch.size > max_bytes and (number > 0 or not min_one)
            if batch.last >= limit or too_much:
                break
            expected += batch.data
            if number == 0:
                assert len(data) >= batch.size, f"nothing was read at {offset}"
        assert expected.startswith(data)
        ends = [0]
        for batch in self.twin.batches[first:]:
            ends.append(ends[-1] + batch.size)
            if ends[-1] >= len(data):
                break
        assert len(data) in ends, "the slice ends within a batch"

    def hold_a_slice(self) -> None:
        if self.twin.end > self.twin.start and len(self.slices) < 5:
            offset = self.rng.randrange(self.twin.start, self.twin.end)
            found = self.log.read(offset, max_bytes=1_000)
            if found.length:
                self.slices.append((found, found.read(self.files)))
            else:
                found.release()

    def read_held_slices(self) -> None:
        """Whatever was deleted meanwhile, a reader gets what it was promised."""
        for found, data in self.slices:
            assert found.read(self.files) == data
            found.release()
        self.slices.clear()

    def find_time(self) -> None:
        timestamp = self.now_ms - self.rng.choice([-1, 0, 50, 1_000, 10_000, 100_000])
        found = at_time(self.log, timestamp)
        expected = self.twin.offset_for_timestamp(timestamp)
        actual = None if found is None else (found.offset, found.timestamp, found.leader_epoch)
        assert actual == expected

    def find_latest_time(self) -> None:
        found = at_greatest_time(self.log)
        first = self.twin.first_at(self.log.segments[0].base_offset)
        held = [time for batch in self.twin.batches[first:] for time in batch.times]
        latest = max((time for _, time in held), default=-1)
        if latest < 0:
            assert found is None
        else:
            assert found is not None
            assert found.timestamp == latest
            assert found.offset == next(offset for offset, time in held if time == latest)

    def look_for_aborts(self) -> None:
        first = self.rng.randrange(self.twin.start, self.twin.end + 1)
        upper = first + self.rng.choice([1, 5, 50, 1_000])
        aborted, open_since = self.twin.transactions()
        expected = [txn for txn in aborted if txn.last >= first and txn.first < upper]
        found = [
            Aborted(producer=txn.producer_id, first=txn.first_offset, last=txn.last_offset)
            for txn in self.log.aborted_transactions(first, upper)
        ]
        # Where a transaction began is forgotten when its first records are deleted.
        assert [self.clipped(txn) for txn in found] == [self.clipped(txn) for txn in expected]
        self.log.producers.replicated_to(self.log.end_offset)
        unstable = min(open_since.values(), default=None)
        assert self.log.producers.first_unstable_offset == unstable

    def clipped(self, txn: Aborted) -> Aborted:
        return replace(txn, first=max(txn.first, self.twin.start))

    def ask_epochs(self) -> None:
        served = list(self.twin.served())
        if not served:
            return
        batch = self.rng.choice(served)
        offset = max(batch.base, self.twin.start)
        assert self.log.epochs.epoch_for_offset(offset) == batch.epoch
        later = [other.base for other in served if other.epoch > batch.epoch]
        end = later[0] if later else self.log.end_offset
        epoch, found = self.log.epochs.end_offset_for(batch.epoch, self.log.end_offset)
        # Cleaning may have taken the first batch of the next epoch.
        assert (epoch, batch.last < found <= end) == (batch.epoch, True)
        assert found == end or self.seen["clean"] > 0

    # What the owner does besides

    def begin_flush(self) -> None:
        if self.ticket is None:
            self.ticket = self.log.begin_flush(rolled_only=self.rng.random() < 0.2)

    def finish_flush(self) -> None:
        if self.ticket is not None:
            self.ticket.run()
            self.safe = max(self.safe, self.log.finish_flush(self.ticket))
            self.ticket = None

    def save_recovery_point(self) -> None:
        self.saved_point = self.log.recovery_point

    def begin_epoch(self) -> None:
        self.epoch += self.rng.randrange(1, 3)

    def truncate(self) -> None:
        self.read_held_slices()
        offset = self.rng.randrange(max(self.twin.start, self.twin.end - 40), self.twin.end + 2)
        # A batch that reaches across the cut goes as a whole, and a gap may count as not there.
        kept = self.twin.first_at(offset)
        cut = min(offset, self.twin.batches[kept - 1].last + 1) if kept else 0
        self.saved_point, self.safe = min(self.saved_point, cut), min(self.safe, cut)
        self.saved_start = min(self.saved_start, cut)

        try:
            assert self.log.truncate_to(offset) == (offset < self.twin.end)
        except LogBusy:
            # Nothing was cut, and what is being flushed may be lost to the cut as soon as it is.
            assert self.ticket is not None
            self.finish_flush()
            self.saved_point, self.safe = min(self.saved_point, cut), min(self.safe, cut)
            assert self.log.truncate_to(offset)

        self.twin.truncate(offset)
        assert self.log.end_offset <= max(offset, self.twin.end)
        self.twin.ends_at(self.log.end_offset)
        self.settle_producers()

    def delete_records(self) -> None:
        """Never past an open transaction, so that the twin need not guess what is forgotten."""
        bound = min(self.twin.transactions()[1].values(), default=self.twin.end)
        offset = self.rng.randrange(max(0, self.twin.start - 2), max(self.twin.start, bound) + 1)
        assert self.log.advance_log_start(offset) == (offset > self.twin.start)
        self.twin.start = max(self.twin.start, offset)
        if self.rng.random() < 0.7:
            self.delete_segments()

    def expire(self) -> None:
        bound = min(self.twin.transactions()[1].values(), default=self.twin.end)
        expire(self.log, self.now_ms, high_watermark=bound)
        assert self.twin.start <= self.log.start_offset <= max(bound, self.twin.start)
        self.twin.start = self.log.start_offset
        self.delete_segments()

    def delete_segments(self) -> None:
        self.saved_start = self.log.start_offset
        self.log.delete_old_segments(self.now_ms)
        assert self.log.segments[0].base_offset <= self.log.start_offset

    def clean(self) -> None:
        """As a broker does that has made the topic a compacted one, and thinks better of it."""
        self.log.reconfigure(
            replace(self.config, is_compacted=True, is_deleted=False, min_cleanable_ratio=0.0)
        )
        cleaning = self.log.cleaning(
            first_dirty=0, high_watermark=self.twin.end, now_ms=self.now_ms
        )
        self.log.reconfigure(self.config)
        if cleaning is None:
            return
        bases = [segment.base_offset for segment in cleaning.segments]
        segments = [range(*pair) for pair in pairwise([*bases, cleaning.end])]
        whole = [
            span
            for span, segment in zip(segments, cleaning.segments, strict=True)
            if segment.txn_index is not None or self.twin.has_transactions(span)
        ]
        before = self.twin.batches
        result = clean(self.files, decode_job(encode_job(cleaning)))

        assert swap_cleaned(self.log, cleaning, result, self.now_ms)

        assert result.end == cleaning.end
        left = [batch for batch in stored_in(self.log) if batch.base >= bases[0]]
        # What lies below the start is not read any more, and not compared.
        dirty = range(cleaning.first_dirty, cleaning.end)
        self.twin.clean(left, range(bases[0], cleaning.end), dirty, whole)
        kept = {batch.base for batch in self.twin.batches}
        for batch in before:
            if batch.base not in kept:
                self.vanished[batch.producer] = batch.base
        for window in self.windows.values():
            # The last one of a producer goes only where its time is long ago, or it has none.
            assert window[-1].base in kept or window[-1].max_timestamp < 0
        self.settle_producers()

    def unlink_old_files(self) -> None:
        waiting = self.log.delete_pending(self.now_ms)
        if waiting == 0 and self.ticket is None:
            assert not [name for name in os.listdir(self.folder) if name.endswith(".deleted")]

    def reconfigure(self) -> None:
        self.config = self.random_config()
        self.log.reconfigure(self.config)

    def start_elsewhere(self) -> None:
        self.read_held_slices()
        offset = self.twin.end + self.rng.choice([-5, 0, 5, 1_000])
        offset = max(offset, 0)
        self.saved_point = min(self.saved_point, offset)
        self.finish_flush()
        self.log.truncate_fully_and_start_at(offset)
        self.saved_start = self.safe = offset
        self.twin.start_at(offset)
        self.settle_producers()

    def recreate(self) -> None:
        self.finish_flush()
        self.log.delete()
        assert not os.path.exists(self.folder)
        self.read_held_slices()
        assert self.log.handles.open_files == 0
        self.forget()
        self.open(is_clean=False)

    # Ends and beginnings

    def close_and_open(self) -> None:
        self.finish_flush()
        self.log.close()
        self.read_held_slices()
        assert self.log.handles.open_files == 0
        assert self.log.flushed_offset == self.log.end_offset == self.twin.end
        self.safe = self.saved_point = self.log.recovery_point
        self.saved_start = self.log.start_offset
        self.files.stop()
        if self.rng.random() < 0.5:
            self.disk.lose_power(self.rng)
        before = self.twin.start, self.twin.end
        self.open(is_clean=True)
        assert (self.twin.start, self.twin.end) == before

    def kill_and_open(self) -> None:
        self.files.stop()
        self.disk.kill()
        before = self.twin.end
        self.open(is_clean=False)
        assert self.twin.end == before, "a process died, and the log lost what it had written"

    def lose_power_and_open(self) -> None:
        self.files.stop()
        self.disk.lose_power(self.rng)
        if self.rng.random() < 0.3:
            self.recover_halfway()
        self.open(is_clean=False)

    def recover_halfway(self) -> None:
        """The power goes again while the log is being recovered, or just after."""
        files = self.disk.files()
        PartitionLog.open(
            self.folder,
            self.config,
            handles=Handles(files),
            recovery_point=self.saved_point,
            log_start_offset=self.saved_start,
            is_clean=False,
        )
        files.stop()
        self.disk.lose_power(self.rng)

    def open(self, *, is_clean: bool) -> None:
        self.files: CrashFiles = self.disk.files()
        self.ticket, self.slices = None, []
        self.log = PartitionLog.open(
            self.folder,
            self.config,
            handles=Handles(self.files, max_open=16, index_bytes=1_000, tail_bytes=1_000),
            recovery_point=self.saved_point,
            log_start_offset=self.saved_start,
            is_clean=is_clean,
        )
        assert self.log.damage is None
        assert self.safe <= self.log.end_offset <= self.twin.end, "flushed records are lost"
        self.safe = self.log.end_offset
        assert self.log.start_offset >= self.saved_start
        self.twin.truncate(self.log.end_offset)
        self.twin.ends_at(self.log.end_offset)
        self.twin.start = self.log.start_offset
        if self.log.size_bytes == 0 and len(self.log.producers) == 0:
            # Its end lay below its start, so it began anew and forgot who had written before.
            self.twin.batches.clear()
        self.check_everything()
        self.settle_producers()

    def check_everything(self) -> None:
        offset, content = self.twin.start, b""
        while offset < self.twin.end:
            found = self.log.read(offset, max_bytes=ALL)
            data = self.content(found)
            if not data:
                break
            content += data
            offset = stored_end(data)
        expected = b"".join(batch.data for batch in self.twin.served())
        assert content == expected

    def settle_producers(self) -> None:
        """After a truncation or restart a producer's last batch in the log is what is known."""
        held = self.log.segments[0].base_offset
        last = {batch.producer: batch for batch in self.twin.batches if batch.last >= held}
        self.windows = {
            producer: [last[producer]]
            for producer in self.windows
            if producer in last
            and last[producer].ends_with is None
            # Else a snapshot may know what no batch tells.
            and last[producer].base > self.vanished.get(producer, -1)
        }
        _, open_since = self.twin.transactions()
        self.open_txns = {
            producer: (last[producer].last_sequence + 1) % 2**31
            for producer in open_since
            if producer in last
        }

    def random_codec(self) -> Compression:
        return self.rng.choice([Compression.NONE, Compression.NONE, Compression.GZIP])

    def random_config(self) -> LogConfig:
        rng = self.rng
        stamped = rng.random() < 0.2
        kind = TimestampType.LOG_APPEND_TIME if stamped else TimestampType.CREATE_TIME
        return LogConfig(
            segment_bytes=rng.choice([2_500, 6_000, 20_000]),
            segment_ms=rng.choice([2_000, 50_000]),
            segment_index_bytes=rng.choice([48, 200, 10_000]),
            index_interval_bytes=rng.choice([0, 100, 1_000]),
            retention_bytes=rng.choice([-1, 4_000, 20_000]),
            retention_ms=rng.choice([-1, 20_000, 10**9]),
            file_delete_delay_ms=rng.choice([0, 2_000]),
            rules=ProduceRules(timestamp_type=kind),
        )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_log_answers_as_a_list_does_whatever_happens(tmp_path: Path, seed: int) -> None:
    driver = Driver(tmp_path, seed)
    for number in range(STEPS):
        try:
            driver.step()
        except BaseException as error:
            # Whatever went wrong, the seed and the step are what repeats it.
            error.add_note(f"seed {seed}, step {number}, done so far: {driver.seen}")
            raise
