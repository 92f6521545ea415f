"""Which batches of a producer are new, known or refused, and what holds back the stable offset.

The rules are those of Apache Kafka 4.3; `producer_steps.txt` is its own word on random steps.
"""

import sys

import pytest

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import HEADER, Batch
from brokers.protocol.records.control import EndTxnMarker
from brokers.protocol.records.validation import Origin
from brokers.storage.errors import StorageCorrupt
from brokers.storage.producer_entry import Duplicate
from brokers.storage.producer_state import (
    MAX_PRODUCERS,
    CompletedTxn,
    ProducerInfo,
    ProducerStates,
)

LAST_SEQUENCE = 2**31 - 1
TRANSACTIONAL, CONTROL = 0x10, 0x20


def batch(
    producer: int = 1,
    *,
    epoch: int = 0,
    sequence: int = 0,
    records: int = 1,
    timestamp: int = 1_000,
    attributes: int = 0,
) -> Batch:
    header = HEADER.pack(
        *(0, 49, 0, 2, 0, attributes, records - 1, timestamp, timestamp),
        *(producer, epoch, sequence, records),
    )
    return Batch(memoryview(bytearray(header)))


def txn_batch(producer: int = 1, *, sequence: int = 0, epoch: int = 0) -> Batch:
    return batch(producer, sequence=sequence, epoch=epoch, attributes=TRANSACTIONAL)


def marker(producer: int = 1, *, epoch: int = 0) -> Batch:
    return batch(producer, epoch=epoch, sequence=-1, attributes=TRANSACTIONAL | CONTROL)


def commit(coordinator_epoch: int = 0) -> EndTxnMarker:
    return EndTxnMarker(is_commit=True, coordinator_epoch=coordinator_epoch)


def abort(coordinator_epoch: int = 0) -> EndTxnMarker:
    return EndTxnMarker(is_commit=False, coordinator_epoch=coordinator_epoch)


class Partition:
    """Appends as a log does: asks, takes the next offsets, notes."""

    def __init__(self) -> None:
        self.states = ProducerStates()
        self.end = 0

    def append(self, new: Batch, now_ms: int = 1_000) -> Duplicate | int:
        duplicate = self.states.check(new)
        if duplicate is not None:
            return duplicate
        base, self.end = self.end, self.end + new.last_offset_delta + 1
        self.states.update(new, base, now_ms)
        return base

    def finish(self, ending: Batch, end: EndTxnMarker) -> CompletedTxn | None:
        self.states.check_marker(ending, end)
        base, self.end = self.end, self.end + 1
        txn = self.states.update_marker(ending, base, end, 1_000)
        if txn is not None:
            self.states.complete(txn)
        return txn


def refused(partition: Partition, new: Batch) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        partition.append(new)
    return caught.value.code


def test_batches_in_sequence_are_new() -> None:
    partition = Partition()

    assert partition.append(batch(sequence=0, records=3)) == 0
    assert partition.append(batch(sequence=3)) == 3
    assert partition.append(batch(sequence=4, records=2)) == 4


def test_each_of_the_last_five_batches_is_known_with_its_offsets() -> None:
    partition = Partition()
    sent = [batch(sequence=n * 2, records=2, timestamp=n) for n in range(7)]
    for new in sent:
        partition.append(new)

    for number in range(2, 7):
        assert partition.append(sent[number]) == Duplicate(
            base_offset=number * 2, last_offset=number * 2 + 1, timestamp=number
        )
    assert refused(partition, sent[1]) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_batch_that_overlaps_an_earlier_one_is_not_a_duplicate() -> None:
    partition = Partition()
    partition.append(batch(sequence=0, records=4))

    assert refused(partition, batch(sequence=0, records=3)) is (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    assert refused(partition, batch(sequence=1, records=3)) is (
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )


def test_a_gap_is_refused_and_changes_nothing() -> None:
    partition = Partition()
    partition.append(batch(sequence=0))

    assert refused(partition, batch(sequence=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.append(batch(sequence=1)) == 1


@pytest.mark.parametrize("sequence", [0, 1, 77, LAST_SEQUENCE])
def test_an_unknown_producer_may_begin_anywhere(sequence: int) -> None:
    """Retention may have taken everything that it wrote before."""
    partition = Partition()

    assert partition.append(batch(sequence=sequence)) == 0
    assert partition.append(batch(sequence=(sequence + 1) % 2**31)) == 1


def test_sequences_wrap_to_zero_between_batches() -> None:
    partition = Partition()
    partition.append(batch(sequence=LAST_SEQUENCE - 1, records=2))

    assert partition.append(batch(sequence=0)) == 2


def test_sequences_wrap_to_zero_within_a_batch() -> None:
    partition = Partition()
    wrapping = batch(sequence=LAST_SEQUENCE - 1, records=4)
    partition.append(wrapping)

    assert partition.append(batch(sequence=2)) == 4
    assert partition.append(wrapping) == Duplicate(base_offset=0, last_offset=3, timestamp=1_000)


def test_a_new_epoch_begins_at_zero_and_forgets_the_old_batches() -> None:
    partition = Partition()
    partition.append(batch(sequence=0))
    partition.append(batch(sequence=1))

    assert refused(partition, batch(epoch=1, sequence=2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.append(batch(epoch=1, sequence=0)) == 2
    assert refused(partition, batch(epoch=0, sequence=1)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_producers_do_not_know_of_each_other() -> None:
    partition = Partition()
    partition.append(batch(1, sequence=0))

    assert partition.append(batch(2, sequence=0)) == 1
    assert isinstance(partition.append(batch(1, sequence=0)), Duplicate)


def test_the_coordinator_writes_without_sequences_but_not_with_an_old_epoch() -> None:
    partition = Partition()
    commits = batch(epoch=3, sequence=-1, attributes=TRANSACTIONAL)
    late = batch(epoch=2, sequence=-1, attributes=TRANSACTIONAL)
    for _ in range(2):
        assert partition.states.check(commits, Origin.COORDINATOR) is None
        partition.states.update(commits, 0, 1_000)

    with pytest.raises(KafkaError) as caught:
        partition.states.check(late, Origin.COORDINATOR)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_transaction_holds_back_the_stable_offset_until_its_marker_is_replicated() -> None:
    partition = Partition()
    partition.append(batch(9))
    partition.append(txn_batch(sequence=0))
    partition.append(txn_batch(sequence=1))
    assert partition.states.first_unstable_offset == 1
    assert partition.states.transaction_start(1) == 1

    txn = partition.finish(marker(), commit())
    assert txn == CompletedTxn(
        producer_id=1, first_offset=1, last_offset=3, last_stable_offset=4, is_aborted=False
    )
    assert partition.states.transaction_start(1) is None

    partition.states.replicated_to(3)
    assert partition.states.first_unstable_offset == 1
    partition.states.replicated_to(4)
    assert partition.states.first_unstable_offset is None


def test_an_abort_carries_the_stable_offset_that_it_leaves_behind() -> None:
    partition = Partition()
    partition.append(txn_batch(1))
    partition.append(txn_batch(2))
    partition.append(txn_batch(3))

    second = partition.finish(marker(2), abort())
    first = partition.finish(marker(1), abort())

    assert second is not None
    assert first is not None
    assert (second.last_stable_offset, first.last_stable_offset) == (0, 2)
    assert second.is_aborted


def test_the_stable_offset_stays_until_an_ended_transaction_is_completed() -> None:
    """KAFKA-7866: if the index of aborts cannot be written, readers must not pass the abort."""
    partition = Partition()
    partition.append(txn_batch())

    txn = partition.states.update_marker(marker(), 1, abort(), 1_000)
    partition.states.replicated_to(2)

    assert txn is not None
    assert partition.states.first_unstable_offset == 0
    partition.states.complete(txn)
    partition.states.replicated_to(2)
    assert partition.states.first_unstable_offset is None


def test_a_transaction_may_begin_again_before_the_last_one_is_replicated() -> None:
    partition = Partition()
    partition.append(txn_batch(sequence=0))
    partition.finish(marker(), commit())
    partition.append(txn_batch(sequence=1))

    assert partition.states.first_unstable_offset == 0
    partition.states.replicated_to(2)
    assert partition.states.first_unstable_offset == 2


def test_a_plain_batch_within_a_transaction_is_refused() -> None:
    partition = Partition()
    partition.append(txn_batch(sequence=0))

    assert refused(partition, batch(sequence=1)) is ErrorCode.INVALID_TXN_STATE
    assert partition.append(txn_batch(sequence=1)) == 1


def test_a_marker_without_a_transaction_ends_nothing_but_is_remembered() -> None:
    partition = Partition()

    assert partition.finish(marker(epoch=4), commit(coordinator_epoch=2)) is None

    assert list(partition.states.active()) == [
        ProducerInfo(
            producer_id=1,
            epoch=4,
            last_sequence=-1,
            last_offset=-1,
            last_seen_ms=1_000,
            coordinator_epoch=2,
            txn_first_offset=-1,
        )
    ]
    assert refused(partition, batch(epoch=4, sequence=5)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.append(batch(epoch=4, sequence=0)) == 1


def test_a_marker_of_the_same_epoch_keeps_the_sequence_going() -> None:
    partition = Partition()
    partition.append(txn_batch(sequence=0))

    partition.finish(marker(), commit())

    assert partition.append(txn_batch(sequence=1)) == 2


def test_a_marker_from_a_deposed_coordinator_is_fenced() -> None:
    partition = Partition()
    partition.finish(marker(), commit(coordinator_epoch=5))

    with pytest.raises(KafkaError) as caught:
        partition.finish(marker(), commit(coordinator_epoch=4))

    assert caught.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED


@pytest.mark.parametrize(
    ("version", "epoch", "is_open", "accepted"),
    [
        (0, 1, True, True),
        (1, 1, True, True),
        (1, 0, True, False),
        (2, 2, True, True),
        (2, 1, True, False),  # a late marker of the transaction before
        (2, 1, False, True),  # the retry of a marker whose answer was lost (KAFKA-19999)
        (2, 0, False, False),
    ],
)
def test_which_epoch_a_marker_needs_depends_on_the_transaction_version(
    version: int, epoch: int, *, is_open: bool, accepted: bool
) -> None:
    partition = Partition()
    partition.append(txn_batch(epoch=1))
    if not is_open:
        partition.finish(marker(epoch=1), commit())

    if accepted:
        partition.states.check_marker(marker(epoch=epoch), commit(), version)
    else:
        with pytest.raises(KafkaError) as caught:
            partition.states.check_marker(marker(epoch=epoch), commit(), version)
        assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_silent_producers_expire_unless_their_transaction_is_open() -> None:
    partition = Partition()
    partition.append(batch(1), now_ms=1_000)
    partition.append(txn_batch(2), now_ms=1_000)
    partition.append(batch(3), now_ms=1_001)

    assert partition.states.expire(1_100, 100) == 1

    assert [info.producer_id for info in partition.states.active()] == [2, 3]
    assert partition.append(batch(1, sequence=9)) == 3


def test_old_record_timestamps_do_not_expire_a_producer_that_writes_now() -> None:
    partition = Partition()
    partition.append(batch(timestamp=5), now_ms=1_000_000)

    assert partition.states.expire(1_000_010, 100) == 0


@pytest.mark.slow
def test_past_the_limit_those_silent_longest_are_forgotten() -> None:
    states = ProducerStates()
    for producer in range(MAX_PRODUCERS):
        states.update(batch(producer, sequence=7), producer, now_ms=producer)

    assert states.check(batch(MAX_PRODUCERS)) is None
    states.update(batch(MAX_PRODUCERS), MAX_PRODUCERS, now_ms=MAX_PRODUCERS)

    remembered = {info.producer_id for info in states.active()}
    assert len(remembered) <= MAX_PRODUCERS
    assert 0 not in remembered
    assert {MAX_PRODUCERS, MAX_PRODUCERS - 1} <= remembered


@pytest.mark.slow
def test_past_the_limit_a_client_waits_if_all_have_open_transactions() -> None:
    states = ProducerStates()
    for producer in range(MAX_PRODUCERS):
        states.update(txn_batch(producer), producer, now_ms=1)

    with pytest.raises(KafkaError) as caught:
        states.check(batch(MAX_PRODUCERS))

    assert caught.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert states.check(txn_batch(5, sequence=1)) is None


def test_a_producer_costs_little_memory() -> None:
    states = ProducerStates()
    states.update(batch(), 0, 1_000)
    (producer,) = states._producers.values()  # noqa: SLF001

    assert sys.getsizeof(producer) + sys.getsizeof(producer.ring) <= 320


def test_a_snapshot_is_laid_out_as_kafka_lays_it_out() -> None:
    """These bytes were written by the ProducerStateManager of Apache Kafka 4.3.0."""
    partition = Partition()
    partition.end = 500
    partition.append(
        batch(77, epoch=3, sequence=10, records=3, attributes=TRANSACTIONAL), now_ms=1_000
    )
    partition.finish(marker(78, epoch=1), commit(coordinator_epoch=6))

    expected = bytes.fromhex(
        "0001"
        "511c3785"
        "00000002"
        "000000000000004d0003"
        "0000000c00000000000001f60000000200000000000003e8ffffffff00000000000001f4"
        "000000000000004e0001"
        "ffffffffffffffffffffffff0000000000000000000003e800000006ffffffffffffffff"
    )
    assert partition.states.snapshot() == expected


def test_a_loaded_snapshot_knows_the_last_batch_and_open_transactions() -> None:
    partition = Partition()
    partition.append(txn_batch(1, sequence=0))
    partition.append(batch(2, sequence=5, records=2))
    partition.append(txn_batch(1, sequence=1))
    data = partition.states.snapshot()

    restored = Partition()
    restored.states.load(data, "snapshot")
    restored.end = partition.end

    assert restored.states.first_unstable_offset == 0
    assert restored.append(batch(2, sequence=5, records=2)) == Duplicate(
        base_offset=1, last_offset=2, timestamp=1_000
    )
    assert refused(restored, txn_batch(1, sequence=0)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert restored.append(txn_batch(1, sequence=2)) == 4
    assert restored.states.snapshot() != data


def test_loading_replaces_everything_known_before() -> None:
    partition = Partition()
    partition.append(txn_batch(1))
    partition.finish(marker(1), abort())

    partition.states.load(ProducerStates().snapshot(), "snapshot")

    assert len(partition.states) == 0
    assert partition.states.first_unstable_offset is None


def snapshot() -> bytes:
    partition = Partition()
    partition.append(txn_batch(1))
    partition.append(batch(2, sequence=5, records=2))
    return partition.states.snapshot()


def test_a_snapshot_cut_at_any_byte_is_corrupt_and_changes_nothing() -> None:
    states = ProducerStates()
    states.update(batch(9), 0, 1)

    for length in range(len(snapshot())):
        with pytest.raises(StorageCorrupt):
            states.load(snapshot()[:length], "snapshot")

    assert [info.producer_id for info in states.active()] == [9]


def test_a_snapshot_with_any_flipped_bit_is_corrupt() -> None:
    data = snapshot()
    for position in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            with pytest.raises(StorageCorrupt):
                ProducerStates().load(bytes(damaged), "snapshot")


def test_trailing_bytes_make_a_snapshot_corrupt() -> None:
    with pytest.raises(StorageCorrupt):
        ProducerStates().load(snapshot() + b"\0", "snapshot")
