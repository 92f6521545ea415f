"""Kafka's own record classes: what they read in a file, and what they write into one.

Knows nothing of our readers and builders; rows are the tuples that both sides are compared by.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.oracles.java import gateway, java_class

PACKAGE = "org.apache.kafka.common.record.internal"

# Offset, timestamp, key, value, headers.
JavaRow = tuple[int, int, bytes | None, bytes | None, tuple[tuple[bytes, bytes | None], ...]]


@contextmanager
def segment(path: str, *, is_writable: bool = False) -> Iterator[Any]:
    """Open a segment as a broker opens it: an instance of `FileRecords`."""
    file = gateway().jvm.java.io.File(os.fspath(path))
    opened = java_class(f"{PACKAGE}.FileRecords").open(file, is_writable)
    try:
        yield opened
    finally:
        opened.close()


def rows(batch: Any) -> list[JavaRow]:
    """Read all records of one batch."""
    return [
        (
            record.offset(),
            record.timestamp(),
            _plain(record.key()),
            _plain(record.value()),
            tuple((header.key().encode(), header.value()) for header in record.headers()),
        )
        for record in batch.iterator()
    ]


def memory_records(
    contents: Sequence[JavaRow],
    *,
    codec: str,
    leader_epoch: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
) -> Any:
    """Build one batch with Kafka's builder; offsets count from the first row's."""
    jvm = gateway().jvm
    codecs = java_class("org.apache.kafka.common.compress.Compression")
    builder = java_class(f"{PACKAGE}.MemoryRecords").builder(
        jvm.java.nio.ByteBuffer.allocate(64 * 1024),
        2,
        codecs.of(codec).build(),
        java_class("org.apache.kafka.common.record.TimestampType").CREATE_TIME,
        contents[0][0],
        -1,
        producer_id,
        producer_epoch,
        base_sequence,
        is_transactional,
        leader_epoch,
    )
    wrap = java_class("org.apache.kafka.common.utils.Utils").wrapNullable
    for _, timestamp, key, value, headers in contents:
        builder.append(timestamp, wrap(key), wrap(value), _headers(headers))
    return builder.build()


def end_txn_records(
    *,
    offset: int,
    timestamp: int,
    leader_epoch: int,
    producer_id: int,
    is_commit: bool,
    coordinator_epoch: int,
) -> Any:
    """Build the control batch that ends a transaction."""
    kinds = java_class(f"{PACKAGE}.ControlRecordType")
    marker = java_class(f"{PACKAGE}.EndTransactionMarker")(
        kinds.COMMIT if is_commit else kinds.ABORT, coordinator_epoch
    )
    build = java_class(f"{PACKAGE}.MemoryRecords").withEndTransactionMarker
    return build(offset, timestamp, leader_epoch, producer_id, 0, marker)


def _headers(headers: Sequence[tuple[bytes, bytes | None]]) -> Any:
    header_class = java_class("org.apache.kafka.common.header.internals.RecordHeader")
    array = gateway().new_array(gateway().jvm.org.apache.kafka.common.header.Header, len(headers))
    for index, (key, value) in enumerate(headers):
        array[index] = header_class(key.decode(), value)
    return array


def _plain(buffer: Any) -> bytes | None:
    found = java_class("org.apache.kafka.common.utils.Utils").toNullableArray(buffer)
    return None if found is None else bytes(found)
