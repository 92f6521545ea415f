"""Compacted logs: records with keys in, what a reader finds of them out."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from brokers.protocol.errors import KafkaError
from brokers.protocol.records.batch import batches
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.reader import Record, records
from brokers.storage.clean_worker import decode_job, decode_result, encode_job, encode_result
from brokers.storage.cleaning import Result, clean
from brokers.storage.compaction import Cleaning
from brokers.storage.errors import StorageError
from brokers.storage.files import Files, LocalFiles
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from tests.builders.logs import NOW_MS, append, content, open_log

KEPT_MS = 1_000

Row = tuple[bytes | None, bytes | None]


def compacted(**fields: Any) -> LogConfig:
    """The configuration of a compacted topic with small segments, due at the first dirty byte."""
    fields = {"segment_bytes": 2_000, "index_interval_bytes": 200, **fields}
    return LogConfig(
        is_compacted=True,
        is_deleted=False,
        min_cleanable_ratio=0.0,
        delete_retention_ms=KEPT_MS,
        **fields,
    )


def keyed(
    *rows: Row,
    timestamp: int = NOW_MS,
    producer: int = -1,
    sequence: int = -1,
    codec: Compression = Compression.NONE,
) -> memoryview:
    """One batch of keys and values."""
    builder = BatchBuilder(
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=sequence,
        compression=codec,
    )
    for number, (key, value) in enumerate(rows):
        builder.append(key, value, [(b"h", b"x")], timestamp + number)
    return memoryview(builder.build())


def compacted_log(folder: Path | str, config: LogConfig | None = None, **how: Any) -> PartitionLog:
    return open_log(folder, config or compacted(), **how)


def fill_keys(log: PartitionLog, rows: Sequence[Row], **fields: Any) -> None:
    """Appends one batch for each row, and flushes."""
    for row in rows:
        append(log, keyed(row, **fields))
    log.flush()


def plan(log: PartitionLog, *, now_ms: int = NOW_MS, first_dirty: int = 0) -> Cleaning:
    """What there is to clean, which must be something."""
    cleaning = log.cleaning(
        first_dirty=first_dirty,
        high_watermark=log.end_offset,
        now_ms=now_ms,
        next_horizon_ms=now_ms,
    )
    assert cleaning is not None
    return cleaning


def cleaned(cleaning: Cleaning, files: Files | None = None) -> Result:
    """What the worker makes of it, by way of its JSON."""
    job = decode_job(encode_job(cleaning))
    return decode_result(encode_result(clean(files or LocalFiles(), job)))


def clean_now(log: PartitionLog, *, now_ms: int = NOW_MS, first_dirty: int = 0) -> Result:
    """One whole cleaning."""
    cleaning = plan(log, now_ms=now_ms, first_dirty=first_dirty)
    result = cleaned(cleaning, log.handles.files)
    assert swap_cleaned(log, cleaning, result, now_ms)
    return result


def swap_cleaned(log: PartitionLog, cleaning: Cleaning, result: Result, now_ms: int) -> bool:
    """Do all steps for all groups at once; return False if the cleaning was void."""
    for group in result.groups:
        ticket = log.begin_swap(cleaning, group)
        if ticket is None:
            return False
        # Taking the ticket back, which is required, raises its error.
        with suppress(KafkaError, StorageError):
            ticket.run()
        ticket = log.exchange_cleaned(ticket, now_ms)
        if ticket is None:
            return False
        with suppress(KafkaError, StorageError):
            ticket.run()
        log.finish_swap(ticket)
    return True


def rows_of(log: PartitionLog) -> list[Record]:
    """Every record that a reader of the whole log finds."""
    return [
        record
        for batch in batches(memoryview(content(log)))
        for record in records(batch, max_bytes=1 << 24)
    ]


def latest(rows: Sequence[Record]) -> dict[bytes | None, bytes]:
    """What a reader that follows the log knows in the end."""
    known: dict[bytes | None, bytes] = {}
    for row in rows:
        if row.value is None:
            known.pop(row.key, None)
        else:
            known[row.key] = row.value
    return known
