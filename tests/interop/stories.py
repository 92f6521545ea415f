"""A partition's story: batches of every kind, and what they must read as, told side by side.

The expectation is made from what went in, never read back by our own code, so that a foreign reader
and ours are each compared with the same list.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from brokers.protocol.records.batch import Batch, TimestampType, batches
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.control import EndTxnMarker, build_end_txn
from brokers.protocol.records.reader import Record, records
from brokers.protocol.records.validation import Origin, ProduceRules
from brokers.storage import names
from brokers.storage.files import LocalFiles
from brokers.storage.handles import Handles
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import UNLIMITED, LogConfig

TOPIC = "story"
NOW_MS = 1_700_000_000_000
# Unpacked, the largest batch told here has some thousand bytes.
MAX_BYTES = 1 << 20

# Several segments, and several index entries in each, from a few hundred records.
SMALL = LogConfig(segment_bytes=8 * 1024, index_interval_bytes=512)
STAMPING = LogConfig(
    segment_bytes=SMALL.segment_bytes,
    index_interval_bytes=SMALL.index_interval_bytes,
    rules=ProduceRules(timestamp_type=TimestampType.LOG_APPEND_TIME),
)

# A broker allows no smaller segments.
LARGER = LogConfig(
    segment_bytes=1024 * 1024,
    index_interval_bytes=SMALL.index_interval_bytes,
    retention_ms=UNLIMITED,
)

# What is derived from a segment's batches.
INDEXES = (names.OFFSET_INDEX, names.TIME_INDEX, names.TXN_INDEX)

Headers = tuple[tuple[bytes, bytes | None], ...]
Content = tuple[bytes | None, bytes | None, Headers]
# Header keys are UTF-8, because foreign readers decode them; keys and values are any bytes.
CONTENTS: tuple[Content, ...] = (
    (None, None, ()),
    (b"", b"", ()),
    (None, b"value only", ((b"trace", b"abc"), (b"", None), (b"trace", b""))),
    (b"key only", None, (("ключ".encode(), bytes(range(256))),)),
    (b"\xff\x00", b"samsa " * 60, ()),
    *((b"user-%d" % (n % 3), b'{"id": %d}' % n, ()) for n in range(12)),
)

COORDINATOR_EPOCH = 4
IDEMPOTENT, COMMITTING, ABORTING = 7, 8, 9


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatch:
    """What a reader must find in one batch."""

    leader_epoch: int
    codec: Compression
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_control: bool
    is_stamped: bool
    records: tuple[Record, ...]


class Story:
    """Appends to a log as its leader, and notes what was appended."""

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        self.leader_epoch = 0
        self.batches: list[StoredBatch] = []
        self._sequences: dict[int, int] = {}
        self._now_ms = NOW_MS

    @property
    def rows(self) -> list[Record]:
        return [record for batch in self.batches for record in batch.records]

    def append(
        self,
        contents: Sequence[Content] = CONTENTS,
        *,
        codec: Compression = Compression.NONE,
        producer_id: int = -1,
        producer_epoch: int = 0,
        is_transactional: bool = False,
        timestamp: int | None = None,
    ) -> None:
        """Append one batch; its records are a millisecond apart unless a timestamp is given."""
        is_stamped = self.log.config.rules.timestamp_type is TimestampType.LOG_APPEND_TIME
        self._now_ms += len(contents)
        sequence = -1
        if producer_id >= 0:
            sequence = self._sequences.get(producer_id, 0)
            self._sequences[producer_id] = sequence + len(contents)
        builder = BatchBuilder(
            compression=codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch if producer_id >= 0 else -1,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
        rows, offset = [], self.log.end_offset
        for number, (key, value, headers) in enumerate(contents):
            own_ms = self._now_ms + number if timestamp is None else timestamp
            builder.append(key, value, headers, own_ms)
            told_ms = self._now_ms if is_stamped else own_ms
            rows.append(Record(offset + number, told_ms, key, value, headers))
        self.log.append(
            memoryview(builder.build()), leader_epoch=self.leader_epoch, now_ms=self._now_ms
        )
        self.batches.append(
            StoredBatch(
                leader_epoch=self.leader_epoch,
                codec=codec,
                producer_id=producer_id,
                producer_epoch=producer_epoch if producer_id >= 0 else -1,
                base_sequence=sequence,
                is_transactional=is_transactional,
                is_control=False,
                is_stamped=is_stamped,
                records=tuple(rows),
            )
        )

    def end_txn(self, producer_id: int, *, is_commit: bool) -> None:
        """Append the marker that ends the producer's transaction."""
        self._now_ms += 1
        offset = self.log.end_offset
        marker = EndTxnMarker(is_commit=is_commit, coordinator_epoch=COORDINATOR_EPOCH)
        data = build_end_txn(
            marker, producer_id=producer_id, producer_epoch=0, timestamp=self._now_ms
        )
        self.log.append(
            memoryview(data),
            leader_epoch=self.leader_epoch,
            now_ms=self._now_ms,
            origin=Origin.COORDINATOR,
        )
        # Version and type; version and coordinator epoch.
        key = b"\0\0\0" + (b"\1" if is_commit else b"\0")
        value = b"\0\0" + COORDINATOR_EPOCH.to_bytes(4, "big")
        self.batches.append(
            StoredBatch(
                leader_epoch=self.leader_epoch,
                codec=Compression.NONE,
                producer_id=producer_id,
                producer_epoch=0,
                base_sequence=-1,
                is_transactional=True,
                is_control=True,
                is_stamped=False,
                records=(Record(offset, self._now_ms, key, value, ()),),
            )
        )

    def tell_everything(self, *, epochs_per_codec: int = 2) -> None:
        """Append every kind of batch with every codec, enough of them to fill several segments."""
        for number, codec in enumerate(Compression):
            self.leader_epoch = number * epochs_per_codec
            self.append(codec=codec)
            self.append(codec=codec, producer_id=IDEMPOTENT)
            # Two transactions that overlap: the abort's index entry tells where the other began.
            self.append(codec=codec, producer_id=ABORTING, is_transactional=True)
            self.append(codec=codec, producer_id=COMMITTING, is_transactional=True)
            self.append(CONTENTS[:1], codec=codec, producer_id=ABORTING, is_transactional=True)
            self.end_txn(ABORTING, is_commit=False)
            self.end_txn(COMMITTING, is_commit=True)
            # Times may be absent, and may go back.
            self.append(CONTENTS[2:4], codec=codec, timestamp=-1)
            self.append(CONTENTS[2:4], codec=codec, timestamp=NOW_MS - 1000)
        self.log.reconfigure(STAMPING)
        self.append(codec=Compression.ZSTD)
        self.append(producer_id=IDEMPOTENT)
        self.log.reconfigure(SMALL)

    def cut(self, offset: int) -> None:
        """Truncate the log; a batch that reaches across the offset goes as a whole."""
        self.log.truncate_to(offset)
        kept = [batch for batch in self.batches if batch.records[-1].offset < offset]
        for batch in self.batches[len(kept) :]:
            if batch.base_sequence >= 0:
                first = min(self._sequences[batch.producer_id], batch.base_sequence)
                self._sequences[batch.producer_id] = first
        self.batches = kept


def topic_config(config: LogConfig) -> dict[str, str]:
    """What a broker must be told to keep a log as we do."""
    return {
        "segment.bytes": str(config.segment_bytes),
        "index.interval.bytes": str(config.index_interval_bytes),
        "retention.ms": str(config.retention_ms),
    }


def open_log(folder: str | os.PathLike[str], *, is_clean: bool = False) -> PartitionLog:
    return PartitionLog.open(
        os.fspath(folder), SMALL, handles=Handles(LocalFiles()), is_clean=is_clean
    )


def batches_of(log: PartitionLog) -> Iterator[Batch]:
    """Every batch of a log, through its own reads, each with its CRC checked."""
    offset = log.start_offset
    while offset < log.end_offset:
        found = log.read(offset, max_bytes=MAX_BYTES)
        data = found.read(log.handles.files)
        found.release()
        assert data, f"nothing at offset {offset} of {log.end_offset}"
        for batch in batches(memoryview(data)):
            batch.check_crc()
            yield batch
            offset = batch.next_offset


def rows_of(found: Iterable[Batch]) -> list[Record]:
    return [record for batch in found for record in records(batch, max_bytes=MAX_BYTES)]


def segment_paths(folder: str | os.PathLike[str], suffix: str = names.LOG) -> list[str]:
    """The segments' files of one kind, oldest first."""
    return [
        os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(suffix)
    ]


def contents_of(folder: str | os.PathLike[str], *suffixes: str) -> dict[str, bytes]:
    """The bytes of the segments' files of these kinds, by name."""
    return {
        os.path.basename(path): Path(path).read_bytes()
        for suffix in suffixes
        for path in segment_paths(folder, suffix)
    }
