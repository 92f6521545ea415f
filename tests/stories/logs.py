"""Commands of stories about the log of one partition: its records, its files, and its disk.

The broker, the network and the threads of the flusher are left out: a story flushes when it says
so. A record is written `value` or `key:value`; `key:` deletes the key.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

from brokers.protocol.errors import KafkaError
from brokers.protocol.records.batch import batches
from brokers.protocol.records.reader import Record, records
from brokers.protocol.records.validation import ProduceRules
from brokers.replication.flusher import Flusher
from brokers.replication.log_settings import TopicSettings
from brokers.replication.partition import Partition
from brokers.replication.waits import WaitRoom
from brokers.storage.fsync import FlushTicket
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from tests.builders.cleaning import clean_now, keyed, rows_of
from tests.builders.logs import finished, open_log
from tests.fakes.clock import ManualClock
from tests.fakes.faulty_files import UnsyncedFiles
from tests.stories.script import Commands, Milliseconds, counted

NO_PRODUCER: Final = -1
EPOCH: Final = 0
MOST: Final = 1 << 20
WEEK: Final = Milliseconds(7 * 86_400_000)
DAY: Final = Milliseconds(86_400_000)


class FlusherOfStory:
    """Takes requests for a flush, and leaves it to the story when one runs."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock

    def ask(self, log: Partition) -> None:
        log.is_flush_asked = True

    def begin(self, log: Partition) -> None:
        """A flush begins when the story says so."""


class Producer:
    """Notes which batches are acknowledged; a slot is the base offset of one."""

    def __init__(self) -> None:
        self.news: list[str] = []

    def reached(self, slot: int) -> None:
        self.news.append(f"the batch at {slot} is acknowledged")

    def lost(self, slot: int, error: KafkaError) -> None:
        self.news.append(f"the batch at {slot}: {error.code.name}")


def commands(folder: Path) -> Commands:
    stage = Logs(folder)
    return {
        "open": stage.open,
        "resign": stage.resign,
        "produce": stage.produce,
        "begin-flush": stage.begin_flush,
        "end-flush": stage.end_flush,
        "flush": stage.flush,
        "fetch": stage.fetch,
        "offsets": stage.offsets,
        "segments": stage.segments,
        "wait": stage.wait,
        "expire": stage.expire,
        "clean": stage.clean,
        "delete-before": stage.delete_before,
        "kill": stage.kill,
        "cut-power": stage.cut_power,
        "damage": stage.damage,
    }


class Logs:
    """The state of one story."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "orders-0"
        self._clock = ManualClock()
        self._producer = Producer()
        self._ticket: FlushTicket | None = None
        self._opened: Partition | None = None
        # What the disk has confirmed: offsets, and bytes of the newest segment.
        self._flushed_offset = self._flushed_bytes = 0

    @property
    def _partition(self) -> Partition:
        assert self._opened is not None, "a story opens its log first"
        return self._opened

    @property
    def _log(self) -> PartitionLog:
        return self._partition.log

    # -- the log ---------------------------------------------------------------------------------

    def open(
        self,
        *,
        policy: str = "delete",
        durability: str = "synced",
        segment_bytes: int = MOST,
        retention: Milliseconds = WEEK,
        keep_tombstones: Milliseconds = DAY,
    ) -> Iterator[str]:
        """Open the log, as the start of a broker does, and lead the partition."""
        is_compacted = policy == "compact"
        config = LogConfig(
            segment_bytes=segment_bytes,
            retention_ms=retention,
            file_delete_delay_ms=0,
            is_compacted=is_compacted,
            is_deleted=not is_compacted,
            delete_retention_ms=keep_tombstones,
            min_cleanable_ratio=0.0,
            rules=ProduceRules(are_keys_required=is_compacted),
        )
        size = self._size()
        log = open_log(
            self._folder, config, files=UnsyncedFiles(), recovery_point=self._flushed_offset
        )
        self._opened = Partition(
            topic="orders",
            topic_id=bytes(16),
            index=0,
            log=log,
            settings=TopicSettings(log=config, is_synced=durability == "synced"),
            # The story's own has the part of a flusher that a partition calls.
            flusher=cast(Flusher, FlusherOfStory(self._clock)),
            room=WaitRoom(),
            on_log_dir_failed=_never,
        )
        self._partition.lead(EPOCH)
        self._note_flushed()
        yield f"log start {log.start_offset}, log end {log.end_offset}"
        if size > self._size():
            yield f"recovery has cut {size - self._size()} bytes off its end"
        if log.damage is not None:
            yield f"damaged at offset {log.damage.offset}: {log.damage.reason}"

    def resign(self) -> Iterator[str]:
        self._partition.resign()
        yield "leads no longer"
        yield from self._news()

    def produce(
        self, *values: str, producer: int = NO_PRODUCER, sequence: int = -1
    ) -> Iterator[str]:
        """Append one batch, and wait for its acknowledgement."""
        rows = [_row(value) for value in values]
        now_ms = self._clock.now_ms()
        data = keyed(*rows, timestamp=now_ms, producer=producer, sequence=sequence)
        appended = self._partition.append(data, now_ms)
        first, last = appended.base_offset, appended.last_offset
        place = f"offset {first}" if first == last else f"offsets {first} to {last}"
        yield f"known at {place}" if appended.is_duplicate else f"appended at {place}"
        if self._partition.high_watermark > last:
            yield f"the batch at {first} is acknowledged"
        else:
            self._partition.wait_for(last + 1, self._producer, first)

    def begin_flush(self) -> Iterator[str]:
        """Take what there is to sync; records that come now go into the next flush."""
        self._ticket = self._partition.begin_flush()
        yield f"flushing up to {self._log.end_offset}" if self._ticket else "nothing to flush"

    def end_flush(self) -> Iterator[str]:
        """Sync, and advance the high watermark."""
        assert self._ticket is not None, "a story begins a flush before it ends it"
        self._ticket.run()
        self._partition.finish_flush(self._ticket)
        self._note_flushed()
        yield f"flushed up to {self._log.flushed_offset}"
        yield from self._news()

    def flush(self) -> Iterator[str]:
        yield from self.begin_flush()
        yield from self.end_flush()

    def fetch(self, offset: int, *, max_bytes: int = MOST) -> Iterator[str]:
        """Read as a consumer does: whole batches below the high watermark."""
        piece = self._partition.read(offset, max_bytes, min_one_batch=True)
        try:
            data = self._partition.content(piece)
        finally:
            piece.release()
        found = [
            record
            for batch in batches(memoryview(data))
            for record in records(batch, max_bytes=MOST)
            if record.offset >= offset
        ]
        yield from map(_text, found)
        if not found:
            yield f"no records below the high watermark {self._partition.high_watermark}"

    def offsets(self) -> Iterator[str]:
        yield (
            f"log start {self._log.start_offset}, "
            f"high watermark {self._partition.high_watermark}, log end {self._log.end_offset}"
        )

    def segments(self) -> Iterator[str]:
        """List the segments by their first offset, with the records that they hold."""
        rows = rows_of(self._log)
        bases = [segment.base_offset for segment in self._log.segments]
        for base, following in zip(bases, [*bases[1:], self._log.end_offset], strict=True):
            held = [_text(row) for row in rows if base <= row.offset < following]
            yield f"{base}: {', '.join(held) or 'empty'}"

    # -- time ------------------------------------------------------------------------------------

    def wait(self, time: Milliseconds) -> Iterator[str]:
        self._clock.advance(time)
        yield "time passes"

    def expire(self) -> Iterator[str]:
        """Apply the retention, as housekeeping does, and delete old segments."""
        now_ms, before = self._clock.now_ms(), self._log.start_offset
        finished(self._partition.inspect_ages(now_ms))
        self._partition.expire(now_ms)
        count = self._log.delete_old_segments(now_ms)
        self._log.delete_pending(now_ms)
        if before == self._log.start_offset:
            yield "no segment is old enough"
        else:
            yield f"log start {self._log.start_offset}, deleted {counted(count, 'segment')}"

    def clean(self) -> Iterator[str]:
        """Compact the closed segments."""
        before = len(rows_of(self._log))
        clean_now(self._log, now_ms=self._clock.now_ms())
        self._log.delete_pending(self._clock.now_ms())
        yield f"removed {before - len(rows_of(self._log))} of {counted(before, 'record')}"

    def delete_before(self, offset: int) -> Iterator[str]:
        """Do what DeleteRecords asks for."""
        yield f"log start {self._partition.delete_before(offset)}"

    # -- accidents -------------------------------------------------------------------------------

    def kill(self) -> Iterator[str]:
        """Kill the broker: the system has what it wrote, flushed or not."""
        self._log.abandon()
        yield f"the files end at offset {self._log.end_offset}"

    def cut_power(self, *, bytes_written: int = 0) -> Iterator[str]:
        """Kill the machine; of what was not flushed, so many bytes had reached the disk."""
        self._log.abandon()
        os.truncate(self._newest(), self._flushed_bytes + bytes_written)
        yield f"the files end at offset {self._flushed_offset} and {bytes_written} bytes of a batch"

    def damage(self, offset: int) -> Iterator[str]:
        """Change a byte of the batch at an offset, as a bad disk does."""
        position = 0
        for batch in batches(memoryview(self._newest().read_bytes())):
            if batch.base_offset == offset:
                break
            position += batch.size
        with self._newest().open("r+b") as file:
            # Within the records, which the batch's checksum covers.
            file.seek(position + 70)
            (byte,) = file.read(1)
            file.seek(position + 70)
            file.write(bytes([byte ^ 0xFF]))
        yield f"one byte of the batch at {offset} has changed"

    def _newest(self) -> Path:
        return max(self._folder.glob("*.log"))

    def _size(self) -> int:
        return sum(path.stat().st_size for path in self._folder.glob("*.log"))

    def _note_flushed(self) -> None:
        self._flushed_offset = self._log.flushed_offset
        if self._log.flushed_offset == self._log.end_offset:
            self._flushed_bytes = self._newest().stat().st_size

    def _news(self) -> Iterator[str]:
        news, self._producer.news = self._producer.news, []
        yield from news


def _row(text: str) -> tuple[bytes | None, bytes | None]:
    key, colon, value = text.partition(":")
    if not colon:
        return None, text.encode()
    return key.encode(), value.encode() if value else None


def _text(record: Record) -> str:
    value = "deleted" if record.value is None else record.value.decode()
    key = "" if record.key is None else f"{record.key.decode()}:"
    return f"{record.offset} {key}{value}"


def _never(failure: Exception) -> None:
    raise AssertionError(f"the disk of a story does not fail: {failure}")
