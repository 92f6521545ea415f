"""Cleaned segments take the place of old ones while readers, deletions and truncations go on."""

import errno
from pathlib import Path

import pytest

from brokers.protocol.records.batch import batches
from brokers.storage.errors import LogBusy, OutOfSpace
from brokers.storage.files import LocalFiles
from brokers.storage.log import PartitionLog
from tests.builders.cleaning import (
    clean_now,
    cleaned,
    compacted,
    compacted_log,
    fill_keys,
    latest,
    plan,
    rows_of,
    swap_cleaned,
)
from tests.builders.logs import NOW_MS, at_time, content, files_of, read

ROWS = [(b"k%d" % (number % 5), b"%d" % number + b"v" * 40) for number in range(40)]


class RefusingFiles(LocalFiles):
    """A disk that refuses to rename files of one ending, with room for everything else."""

    def __init__(self, ending: str = "") -> None:
        self.ending = ending

    def rename(self, source: str, target: str) -> None:  # type: ignore[override]
        if self.ending and target.endswith(self.ending):
            raise OSError(errno.ENOSPC, "no room")
        LocalFiles.rename(source, target)


def dirty(folder: Path, files: LocalFiles | None = None) -> PartitionLog:
    """Several segments with five keys in all."""
    log = compacted_log(folder, compacted(segment_bytes=600), files=files)
    fill_keys(log, ROWS)
    return log


def test_a_cleaned_log_is_read_from_its_new_files_and_grows_on(tmp_path: Path) -> None:
    log = dirty(tmp_path)
    before, size = latest(rows_of(log)), log.size_bytes

    clean_now(log)
    fill_keys(log, [(b"k0", b"new")])

    assert latest(rows_of(log)) == {**before, b"k0": b"new"}
    assert log.size_bytes < size / 2
    assert log.size_bytes == sum(segment.size for segment in log.segments)
    assert not [name for name in files_of(log) if "cleaned" in name or "swap" in name]
    assert [s.start + s.size for s in log.segments][:-1] == [s.start for s in log.segments][1:]


def test_every_offset_can_still_be_asked_for(tmp_path: Path) -> None:
    log = dirty(tmp_path)
    clean_now(log)
    whole = list(batches(memoryview(content(log))))

    for offset in range(log.end_offset):
        first = next(batches(memoryview(read(log, offset, max_bytes=1))))
        assert first.base_offset == next(b.base_offset for b in whole if b.last_offset >= offset)
        assert at_time(log, NOW_MS) is not None


def test_reader_continues_with_the_files_that_it_holds(tmp_path: Path) -> None:
    log = dirty(tmp_path)
    reading = log.read(0, max_bytes=500)
    expected = reading.read(log.handles.files)

    clean_now(log)
    late = NOW_MS + 2 * log.config.file_delete_delay_ms
    assert log.delete_pending(late) == 1

    assert reading.read(log.handles.files) == expected
    reading.release()
    assert log.delete_pending(late) == 0
    assert not files_of(log, ".deleted")


def test_a_recent_reader_is_served_from_the_right_place(tmp_path: Path) -> None:
    log = dirty(tmp_path)
    active = log.segments.active.base_offset
    expected = read(log, active)

    clean_now(log)

    assert read(log, active) == expected
    assert latest(rows_of(log))[b"k4"].startswith(b"39")


def test_a_result_is_void_once_the_log_was_cut(tmp_path: Path) -> None:
    log = dirty(tmp_path)
    cleaning = plan(log)
    result = cleaned(cleaning)
    log.truncate_to(30)
    served = content(log)

    assert not swap_cleaned(log, cleaning, result, NOW_MS)

    assert content(log) == served
    assert not files_of(log, ".cleaned")


def test_a_result_is_void_where_segments_were_deleted(tmp_path: Path) -> None:
    log = dirty(tmp_path)
    cleaning = plan(log)
    result = cleaned(cleaning)
    log.advance_log_start(20)
    log.delete_old_segments(NOW_MS)
    served = content(log)

    assert not swap_cleaned(log, cleaning, result, NOW_MS)

    assert content(log) == served


@pytest.mark.parametrize("is_exchanged", [False, True])
def test_a_cut_in_the_middle_of_a_swap_goes_first(tmp_path: Path, is_exchanged: bool) -> None:
    log = dirty(tmp_path)
    cleaning = plan(log)
    ticket = log.begin_swap(cleaning, cleaned(cleaning).groups[0])
    assert ticket is not None
    ticket.run()
    if is_exchanged:
        ticket = log.exchange_cleaned(ticket, NOW_MS)
        assert ticket is not None
        ticket.run()

    log.truncate_to(2)

    assert not files_of(log, ".swap")
    if is_exchanged:
        log.finish_swap(ticket)
    else:
        assert log.exchange_cleaned(ticket, NOW_MS) is None
    assert log.end_offset <= 2


def test_segments_deleted_before_the_exchange_make_it_void(tmp_path: Path) -> None:
    log = dirty(tmp_path)
    cleaning = plan(log)
    ticket = log.begin_swap(cleaning, cleaned(cleaning).groups[0])
    assert ticket is not None
    ticket.run()
    log.advance_log_start(20)
    log.delete_old_segments(NOW_MS)

    assert log.exchange_cleaned(ticket, NOW_MS) is None

    assert not files_of(log, ".swap")


def test_a_log_whose_swap_is_being_synced_is_in_use(tmp_path: Path) -> None:
    log = dirty(tmp_path)
    cleaning = plan(log)
    ticket = log.begin_swap(cleaning, cleaned(cleaning).groups[0])
    assert ticket is not None

    with pytest.raises(LogBusy, match="put in place"):
        log.close()

    ticket.run()
    assert log.exchange_cleaned(ticket, NOW_MS) is not None


@pytest.mark.parametrize("ending", [".timeindex.swap", ".log.swap", ".index.deleted"])
def test_a_refused_rename_leaves_the_log_as_it_was(tmp_path: Path, ending: str) -> None:
    files = RefusingFiles()
    log = dirty(tmp_path, files)
    served = content(log)
    cleaning = plan(log)
    result = cleaned(cleaning)

    files.ending = ending
    with pytest.raises(OutOfSpace):
        swap_cleaned(log, cleaning, result, NOW_MS)
    files.ending = ""

    assert content(log) == served
    assert not [name for name in files_of(log) if "cleaned" in name or "swap" in name]
    clean_now(log)
    assert len(content(log)) < len(served)


@pytest.mark.parametrize("then", ["clean", "cut", "delete", "start"])
def test_a_refused_last_rename_is_made_up_for(tmp_path: Path, then: str) -> None:
    files = RefusingFiles()
    log = dirty(tmp_path, files)
    truth, cleaning = latest(rows_of(log)), plan(log)
    result = cleaned(cleaning)

    files.ending = ".log"
    with pytest.raises(OutOfSpace):
        swap_cleaned(log, cleaning, result, NOW_MS)
    assert files_of(log, ".log.swap")
    assert latest(rows_of(log)) == truth
    files.ending = ""

    if then == "clean":
        clean_now(log)
    elif then == "cut":
        log.truncate_to(39)
        truth[b"k4"] = ROWS[34][1]
    elif then == "delete":
        log.advance_log_start(39)
        log.delete_old_segments(NOW_MS)
        truth = {b"k4": truth[b"k4"]}
        log.delete_pending(NOW_MS * 2)
        clean_in_vain = log.cleaning(first_dirty=39, high_watermark=40, now_ms=NOW_MS)
        assert clean_in_vain is None
    else:
        log.close()
        log = compacted_log(tmp_path, is_clean=True, log_start_offset=log.start_offset)
    assert latest(rows_of(log)) == truth
    assert not files_of(log, ".swap")
    log.close()
    again = compacted_log(tmp_path, is_clean=True, log_start_offset=log.start_offset)
    assert latest(rows_of(again)) == truth


def test_a_file_that_a_killed_cleaning_left_does_not_undo_a_later_swap(tmp_path: Path) -> None:
    log = dirty(tmp_path)
    truth, cleaning = latest(rows_of(log)), plan(log)
    *_, last = cleaned(cleaning).groups
    assert last.base > 0
    (tmp_path / f"{0:020}.log.cleaned").write_bytes(b"half")

    ticket = log.begin_swap(cleaning, last)
    assert ticket is not None
    ticket.run()
    ticket = log.exchange_cleaned(ticket, NOW_MS)
    assert ticket is not None
    assert files_of(log, ".log.swap")

    # The broker dies here, without a word.
    assert latest(rows_of(compacted_log(tmp_path))) == truth
