"""The index of aborted transactions: 34 bytes each, sorted, searched, cut and checked."""

import os
import random
from pathlib import Path

import pytest

from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import LocalFiles
from brokers.storage.txn_index import ENTRY_SIZE, AbortedTxn, TxnIndex
from tests.fakes.crash_files import CrashDisk


def txn(producer: int, first: int, last: int, stable: int) -> AbortedTxn:
    return AbortedTxn(
        producer_id=producer, first_offset=first, last_offset=last, last_stable_offset=stable
    )


# Kafka's own example: overlapping transactions of three producers.
TXNS = [txn(0, 0, 10, 2), txn(1, 5, 15, 16), txn(2, 18, 35, 25), txn(3, 32, 50, 40)]


def index(folder: Path, txns: list[AbortedTxn] | None = None) -> TxnIndex:
    made = TxnIndex(LocalFiles(), str(folder / "00000000000000000000.txnindex"))
    for aborted in TXNS if txns is None else txns:
        made.append(aborted)
    return made


def test_the_file_appears_with_the_first_abort(tmp_path: Path) -> None:
    empty = index(tmp_path, [])

    assert empty.aborted_between(0, 100).found == []
    assert list(tmp_path.iterdir()) == []
    assert empty.size_bytes == 0


def test_an_entry_is_laid_out_as_kafka_lays_it_out(tmp_path: Path) -> None:
    made = index(tmp_path, [txn(0x0102030405060708, 1, 2, 3)])

    expected = "00000102030405060708000000000000000100000000000000020000000000000003"
    assert Path(made.path).read_bytes().hex() == expected


@pytest.mark.parametrize(
    ("first", "upper", "expected", "is_complete"),
    [
        (0, 100, [0, 1, 2, 3], False),
        (0, 32, [0, 1, 2], True),
        (0, 35, [0, 1, 2, 3], True),
        (10, 35, [0, 1, 2, 3], True),
        (11, 35, [1, 2, 3], True),
        (20, 41, [2, 3], False),
        (51, 100, [], False),
        (0, 2, [0], True),
    ],
)
def test_a_range_finds_the_transactions_that_overlap_it(
    tmp_path: Path, first: int, upper: int, expected: list[int], *, is_complete: bool
) -> None:
    result = index(tmp_path).aborted_between(first, upper)

    assert [aborted.producer_id for aborted in result.found] == expected
    assert result.is_complete == is_complete


def test_reopened_index_continues_at_its_end(tmp_path: Path) -> None:
    index(tmp_path).close()

    reopened = index(tmp_path, [])
    reopened.append(txn(4, 51, 60, 61))

    assert list(reopened.entries()) == [*TXNS, txn(4, 51, 60, 61)]


@pytest.mark.parametrize(("offset", "left"), [(51, 4), (50, 3), (36, 3), (35, 2), (10, 0), (0, 0)])
def test_truncation_forgets_markers_at_and_above_the_offset(
    tmp_path: Path, offset: int, left: int
) -> None:
    made = index(tmp_path)

    made.truncate_to(offset)
    made.append(txn(9, 60, 70, 71))

    assert list(made.entries()) == [*TXNS[:left], txn(9, 60, 70, 71)]


def test_truncation_of_a_reopened_index_cuts_the_file(tmp_path: Path) -> None:
    index(tmp_path).close()

    reopened = index(tmp_path, [])
    reopened.truncate_to(35)

    assert os.stat(reopened.path).st_size == 2 * ENTRY_SIZE


def test_a_descriptor_is_held_exactly_while_bytes_wait_for_a_sync(tmp_path: Path) -> None:
    made = index(tmp_path, TXNS[:1])
    fd, mark = made.unsynced() or (-1, -1)
    made.append(TXNS[1])

    made.synced(mark)
    still_fd, later_mark = made.unsynced() or (-1, -1)
    assert still_fd == fd

    made.synced(later_mark)
    assert made.unsynced() is None
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(fd)


def test_a_sync_begun_before_a_truncation_does_not_cover_what_came_after(tmp_path: Path) -> None:
    made = index(tmp_path)
    _, mark = made.unsynced() or (-1, -1)
    made.truncate_to(35)
    made.append(txn(5, 40, 45, 46))
    made.append(txn(6, 40, 55, 56))

    made.synced(mark)

    assert made.unsynced() is not None


def test_a_truncation_lasts_through_a_power_failure(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    name = "00000000000000000000.txnindex"
    with disk.files() as files:
        made = TxnIndex(files, str(disk.live / name))
        for aborted in TXNS:
            made.append(aborted)
        fd, _ = made.unsynced() or (-1, -1)
        files.datasync(fd)
        files.sync_folder(str(disk.live))
        made.truncate_to(35)

    disk.lose_power(random.Random(3))

    assert list(TxnIndex(LocalFiles(), str(disk.live / name)).entries()) == TXNS[:2]


def test_a_sound_index_passes_the_check(tmp_path: Path) -> None:
    index(tmp_path).check(10, 51)


@pytest.mark.parametrize(
    "bounds",
    [
        pytest.param((11, 51), id="the first marker lies before the segment"),
        pytest.param((10, 50), id="the last marker lies behind the segment"),
    ],
)
def test_markers_outside_of_the_segment_are_corrupt(
    tmp_path: Path, bounds: tuple[int, int]
) -> None:
    with pytest.raises(StorageCorrupt, match="cannot be in a segment"):
        index(tmp_path).check(*bounds)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: data[:-1], id="a byte is missing"),
        pytest.param(lambda data: data + b"\0", id="a byte too many"),
        pytest.param(lambda data: data + bytes(ENTRY_SIZE), id="an entry of zeros at the end"),
        pytest.param(lambda data: bytes(len(data)), id="all zeros"),
        pytest.param(lambda data: b"\xff" * len(data), id="all ones"),
        pytest.param(lambda data: b"\0\1" + data[2:], id="a version from the future"),
        pytest.param(lambda data: data[:-8] + b"\1" + data[-7:], id="a stable offset too high"),
        pytest.param(lambda data: data[ENTRY_SIZE:] + data[:ENTRY_SIZE], id="out of order"),
    ],
)
def test_damage_is_found_by_the_check_and_reset_starts_over(tmp_path: Path, damage: object) -> None:
    index(tmp_path).close()
    path = tmp_path / "00000000000000000000.txnindex"
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]

    with pytest.raises(StorageCorrupt):
        index(tmp_path, []).check(0, 100)
    rebuilt = index(tmp_path, [])
    rebuilt.reset()
    for aborted in TXNS:
        rebuilt.append(aborted)

    rebuilt.check(0, 100)
    assert list(rebuilt.entries()) == TXNS


def test_a_long_index_answers_as_a_search_over_all_entries_does(tmp_path: Path) -> None:
    rng = random.Random(7)
    txns = []
    stable = 0
    for number in range(1_000):
        last = number * 3 + rng.randrange(3)
        stable = max(stable, last - rng.randrange(40))
        txns.append(txn(number, max(0, last - rng.randrange(50)), last, stable))
    made = index(tmp_path, txns)

    for _ in range(200):
        first = rng.randrange(3_100)
        upper = first + rng.randrange(1, 200)
        end = next((n + 1 for n, t in enumerate(txns) if t.last_stable_offset >= upper), 1_000)
        wanted = [t for t in txns[:end] if t.last_offset >= first and t.first_offset < upper]
        assert made.aborted_between(first, upper).found == wanted
