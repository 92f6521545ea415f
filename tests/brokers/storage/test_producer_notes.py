"""Producer state follows the log, forward and back."""

import errno
from pathlib import Path

import pytest

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.storage.errors import OutOfSpace
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from tests.builders.logs import append, batch, fill, marker, open_log
from tests.fakes.faulty_files import SYNCS, Fault, FaultyFiles

CONFIG = LogConfig(segment_bytes=700)


def with_producers(folder: Path, files: FaultyFiles | None = None) -> PartitionLog:
    """Producer 1 wrote sequences 0 to 9 between other records, over several segments."""
    log = open_log(folder, CONFIG, files=files)
    for number in range(10):
        append(log, batch(producer=1, sequence=number))
        append(log)
    return log


def next_sequence(log: PartitionLog, producer: int = 1) -> int | None:
    """What the log expects next; None when it would take anything."""
    for info in log.producers.active():
        if info.producer_id == producer:
            return info.last_sequence + 1
    return None


@pytest.mark.parametrize("is_clean", [True, False])
def test_producers_survive_a_restart(tmp_path: Path, is_clean: bool) -> None:
    log = with_producers(tmp_path / "t-0")
    log.close() if is_clean else log.abandon()

    log = open_log(tmp_path / "t-0", CONFIG, is_clean=is_clean)

    assert next_sequence(log) == 10
    with pytest.raises(KafkaError) as caught:
        append(log, batch(producer=1, sequence=11))
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert append(log, batch(producer=1, sequence=9)).is_duplicate


@pytest.mark.parametrize("damage", ["deleted", "empty", "garbage", "cut"])
def test_damaged_snapshots_are_replaced_by_a_replay(tmp_path: Path, damage: str) -> None:
    with_producers(tmp_path / "t-0").close()
    for path in (tmp_path / "t-0").glob("*.snapshot"):
        content = path.read_bytes()
        path.unlink()
        if damage != "deleted":
            path.write_bytes({"empty": b"", "garbage": b"x" * 40, "cut": content[:-3]}[damage])

    log = open_log(tmp_path / "t-0", CONFIG, is_clean=True)

    assert next_sequence(log) == 10


@pytest.mark.parametrize("offset", range(0, 21, 3))
def test_a_truncation_takes_producers_back(tmp_path: Path, offset: int) -> None:
    log = with_producers(tmp_path / "t-0")

    log.truncate_to(offset)

    assert next_sequence(log) == ((offset + 1) // 2 or None)


def test_a_log_that_begins_elsewhere_knows_no_producers(tmp_path: Path) -> None:
    log = with_producers(tmp_path / "t-0")

    log.truncate_fully_and_start_at(50)

    assert next_sequence(log) is None
    log.close()
    assert next_sequence(open_log(tmp_path / "t-0", CONFIG)) is None


@pytest.mark.parametrize("is_clean", [True, False])
def test_transactions_survive_a_restart(tmp_path: Path, is_clean: bool) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    for producer in (1, 2, 3):
        append(log, batch(producer=producer, is_transactional=True))
    fill(log, 8)
    append(log, marker(1, commit=False))
    append(log, marker(3, commit=True))
    log.close() if is_clean else log.abandon()

    log = open_log(tmp_path / "t-0", CONFIG, is_clean=is_clean)

    assert log.producers.transaction_start(2) == 1
    log.producers.replicated_to(log.end_offset)
    assert log.producers.first_unstable_offset == 1
    assert [one.producer_id for one in log.aborted_transactions(0, 99)] == [1]


def test_an_abort_that_cannot_be_indexed_holds_readers_back_until_it_can(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path / "t-0", files=files)
    append(log, batch(producer=1, is_transactional=True))
    files.plan(Fault(at=0, error=errno.ENOSPC, kinds=frozenset({"write"})))

    append(log, marker(1, commit=False))

    log.producers.replicated_to(log.end_offset)
    assert log.end_offset == 2, "the marker is in the log and stays there (KAFKA-7866)"
    assert log.producers.first_unstable_offset == 0
    files.heal()
    log.flush()
    log.producers.replicated_to(log.end_offset)
    assert log.producers.first_unstable_offset is None
    assert len(log.aborted_transactions(0, 2)) == 1


def with_waiting_abort(folder: Path) -> tuple[PartitionLog, FaultyFiles]:
    """Offset 1 aborts the transaction of offset 0, and the index has no room for it."""
    files = FaultyFiles()
    log = open_log(folder, CONFIG, files=files)
    append(log, batch(producer=1, is_transactional=True))
    log.flush()
    files.plan(Fault(at=0, error=errno.ENOSPC, kinds=frozenset({"write"}), is_lasting=True))
    append(log, marker(1, commit=False))
    return log, files


def test_a_log_with_an_abort_in_no_index_is_not_closed_cleanly(tmp_path: Path) -> None:
    log, _ = with_waiting_abort(tmp_path / "t-0")

    with pytest.raises(OutOfSpace):
        log.close()

    assert log.recovery_point == 1, "recovery begins at the marker"
    again = open_log(tmp_path / "t-0", CONFIG, recovery_point=1)
    assert len(again.aborted_transactions(0, 2)) == 1
    assert again.end_offset == 2


def test_a_truncation_keeps_aborts_that_waited_for_room(tmp_path: Path) -> None:
    log, files = with_waiting_abort(tmp_path / "t-0")
    fill(log, 2)
    with pytest.raises(OutOfSpace):
        log.truncate_to(3)
    assert log.end_offset == 4
    files.heal()

    log.truncate_to(3)

    log.producers.replicated_to(3)
    assert len(log.aborted_transactions(0, 3)) == 1
    assert log.producers.first_unstable_offset is None


def test_an_abort_that_is_indexed_late_is_synced_before_recovery_passes_its_marker(
    tmp_path: Path,
) -> None:
    log, files = with_waiting_abort(tmp_path / "t-0")
    assert log.flush() == 1
    files.heal()
    fill(log, 20)
    files.calls.clear()

    assert log.flush() == 22

    assert f"{0:020}.txnindex" in [
        Path(call.path).name for call in files.calls if call.kind in SYNCS
    ]
    assert log.segments[0].txn_index is not None
    assert log.segments[0].txn_index.unsynced() is None


def test_a_damaged_transaction_index_is_made_again(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    for producer in (1, 2, 3):
        append(log, batch(producer=producer, is_transactional=True))
        append(log, marker(producer, commit=False))
    expected = log.aborted_transactions(0, 99)
    log.close()
    (path,) = (tmp_path / "t-0").glob("*.txnindex")
    path.write_bytes(path.read_bytes()[:-5])

    log = open_log(tmp_path / "t-0", is_clean=True)

    assert log.aborted_transactions(0, 99) == expected
