"""Markers: ours are Kafka's, newer ones are read, broken ones are corrupt."""

import pytest

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG, Batch, read_batch
from brokers.protocol.records.control import (
    ControlType,
    EndTxnMarker,
    build_end_txn,
    control_type,
    read_end_txn,
)
from brokers.protocol.records.reader import Record
from tests.brokers.protocol.records.samples import NOW_MS, build, captured, seal

MARKED = CONTROL_FLAG | TRANSACTIONAL_FLAG
COMMIT_KEY = b"\x00\x00\x00\x01"


def control_batch(key: bytes | None, value: bytes | None) -> Batch:
    data = build([(key, value, (), NOW_MS)], is_control=True, is_transactional=True)
    return read_batch(memoryview(data))


@pytest.mark.parametrize(("word", "is_commit"), [("commit", True), ("abort", False)])
def test_our_marker_is_the_java_brokers_byte_for_byte(word: str, *, is_commit: bool) -> None:
    marker = EndTxnMarker(is_commit=is_commit, coordinator_epoch=29)

    ours = build_end_txn(
        marker, producer_id=4242, producer_epoch=3, timestamp=NOW_MS, leader_epoch=7
    )

    assert ours == captured(f"java-{word}.bin")
    assert read_end_txn(read_batch(memoryview(ours))) == marker


def test_a_newer_marker_is_read_as_far_as_it_is_known() -> None:
    batch = control_batch(b"\x00\x01\x00\x01later", b"\x00\x02\x00\x00\x00\x05and more")

    assert read_end_txn(batch) == EndTxnMarker(is_commit=True, coordinator_epoch=5)


def test_other_control_records_are_no_markers() -> None:
    leader_change = control_batch(b"\x00\x00\x00\x02", b"")
    unknown = control_batch(b"\x00\x00\x00\x63", None)
    emptied = read_batch(memoryview(seal(build(), b"", record_count=0, attributes=MARKED)))

    assert read_end_txn(leader_change) is None
    assert read_end_txn(unknown) is None
    assert read_end_txn(emptied) is None


def test_control_types_are_named_by_their_key() -> None:
    def named(number: int) -> ControlType | None:
        return control_type(Record(0, NOW_MS, b"\x00\x00" + number.to_bytes(2), None, ()))

    assert [named(number) for number in range(7)] == list(ControlType)
    assert named(7) is None
    assert named(0xFFFF) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\x00\x00\x00\x00\x00\x05"),
        (b"", b"\x00\x00\x00\x00\x00\x05"),
        (b"\x00\x00\x00", b"\x00\x00\x00\x00\x00\x05"),
        (b"\xff\xff\x00\x01", b"\x00\x00\x00\x00\x00\x05"),
        (COMMIT_KEY, None),
        (COMMIT_KEY, b"\x00\x00\x00\x00\x00"),
        (COMMIT_KEY, b"\xff\xff\x00\x00\x00\x05"),
    ],
)
def test_a_marker_that_says_nothing_is_corrupt(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(KafkaError) as caught:
        read_end_txn(control_batch(key, value))

    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
