"""The log as a whole: opening, truncating, closing, and what it costs to keep one."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from bench.measure import rss_bytes
from brokers.protocol.errors import KafkaError
from brokers.storage.errors import LogBusy, LogDirFailed, OffsetOutOfRange
from brokers.storage.files import LocalFiles
from brokers.storage.handles import Handles
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from tests.builders.logs import (
    ALL,
    NOW_MS,
    append,
    batch,
    content,
    files_of,
    fill,
    marker,
    open_log,
    read,
    spans,
)
from tests.fakes.faulty_files import SYNCS, Fault, FaultyFiles

SIZE = len(batch())
CONFIG = LogConfig(segment_bytes=4 * SIZE, index_interval_bytes=2 * SIZE)


def test_new_log_is_empty_and_begins_at_the_given_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", log_start_offset=70)

    assert (log.start_offset, log.end_offset, log.flushed_offset) == (70, 70, 70)
    assert log.size_bytes == 0
    assert files_of(log) == ["70.log"]


@pytest.mark.parametrize("is_clean", [True, False])
def test_reopened_log_continues_at_its_end(tmp_path: Path, is_clean: bool) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    fill(log, 10, records=2)
    before, size = content(log), log.size_bytes
    log.close()

    log = open_log(tmp_path / "t-0", CONFIG, is_clean=is_clean)

    assert (log.end_offset, log.flushed_offset, log.size_bytes) == (20, 20, size)
    assert content(log) == before
    assert append(log).base_offset == 20
    assert len(spans(content(log))) == 11


def test_a_close_leaves_nothing_to_do_for_the_next_start(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    fill(log, 6)
    log.close()
    names = files_of(log)
    before = {name: path.read_bytes() for name, path in zip(names, sorted_files(log), strict=True)}

    files = FaultyFiles()
    log = open_log(tmp_path / "t-0", CONFIG, files=files, is_clean=True)
    log.close()

    after = {name: path.read_bytes() for name, path in zip(names, sorted_files(log), strict=True)}
    assert after == before
    assert names == [
        ".index",
        ".log",
        ".timeindex",
        "4.index",
        "4.log",
        "4.snapshot",
        "4.timeindex",
        "6.snapshot",
        "leader-epoch-checkpoint",
    ]


def sorted_files(log: PartitionLog) -> list[Path]:
    return sorted(Path(log.folder).iterdir())


@pytest.mark.parametrize("offset", range(21))
def test_a_truncated_log_holds_exactly_what_was_below(tmp_path: Path, offset: int) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    for number in range(10):
        append(log, batch(records=2, timestamp=NOW_MS + number), epoch=number // 2)
    log.flush()
    kept = [span for span in spans(content(log)) if span[1] < offset]

    assert log.truncate_to(offset) is (offset < 20)

    end = 2 * len(kept)
    assert (log.end_offset, log.flushed_offset) == (end, end)
    assert spans(content(log)) == kept
    assert log.epochs.entries() == [(e, 4 * e) for e in range(5) if 4 * e < end]
    log.abandon()
    again = open_log(tmp_path / "t-0", CONFIG, recovery_point=log.recovery_point)
    assert spans(content(again)) == kept
    assert append(again, epoch=9).base_offset == end


def test_a_truncation_is_on_the_disk_when_it_returns(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path / "t-0", CONFIG, files=files)
    fill(log, 10)
    log.flush()
    files.calls.clear()

    log.truncate_to(2)

    order = [
        call.kind
        for call in files.calls
        if call.kind in SYNCS | {"truncate", "rename"} and ".log" in call.path + ".log"
    ]
    # Later segments are gone before the cut, and the cut is synced before anything goes on.
    assert order.index("sync_folder") < order.index("truncate") < order.index("datasync")


def test_a_log_that_begins_elsewhere_has_no_past(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    fill(log, 10)

    log.truncate_fully_and_start_at(4)

    assert (log.start_offset, log.end_offset, log.flushed_offset) == (4, 4, 4)
    assert log.epochs.entries() == []
    append(log)
    log.delete_pending(NOW_MS)
    assert [name for name in files_of(log) if "checkpoint" not in name] == ["4.log"]
    log.abandon()
    assert spans(content(open_log(tmp_path / "t-0", CONFIG))) == [(4, 4)]


def test_a_truncation_below_the_first_segment_begins_there(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", CONFIG, log_start_offset=50)
    fill(log, 3)

    log.truncate_to(20)

    assert (log.start_offset, log.end_offset) == (20, 20)


def test_a_truncation_that_fails_ends_the_log_dir(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path / "t-0", CONFIG, files=files)
    fill(log, 10)
    files.plan(Fault(at=0, error=errno.EIO, kinds=frozenset({"truncate"})))

    with pytest.raises(LogDirFailed):
        log.truncate_to(2)

    with pytest.raises(LogDirFailed):
        append(log)


def full_log(folder: Path) -> tuple[PartitionLog, FaultyFiles]:
    """Several segments and epochs, and an aborted transaction, all flushed."""
    files = FaultyFiles()
    log = open_log(folder, CONFIG, files=files)
    for number in range(10):
        append(log, epoch=number // 4)
    append(log, batch(producer=1, is_transactional=True), epoch=2)
    append(log, marker(1, commit=False), epoch=2)
    log.flush()
    files.calls.clear()
    return log, files


# A refused allocation, rename or open does no harm; a failed sync or half of a truncation does.
REFUSABLE = frozenset({"open", "rename", "write", "pwrite"})


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EMFILE, errno.EROFS])
@pytest.mark.parametrize("is_lasting", [False, True])
@pytest.mark.parametrize("starts_afresh", [False, True])
def test_a_truncation_that_is_refused_has_cut_nothing(
    tmp_path: Path, error: int, is_lasting: bool, starts_afresh: bool
) -> None:
    def cut(log: PartitionLog) -> None:
        if starts_afresh:
            log.truncate_fully_and_start_at(50)
        else:
            log.truncate_to(5)

    refused, number = 0, 0
    while True:
        log, files = full_log(tmp_path / f"t-{number}")
        before, epochs = content(log), log.epochs.entries()
        files.plan(Fault(at=number, error=error, kinds=REFUSABLE, is_lasting=is_lasting))

        try:
            cut(log)
        except KafkaError:
            refused += 1
            files.heal()
            assert (content(log), log.end_offset, log.epochs.entries()) == (before, 12, epochs)
            cut(log)
        except LogDirFailed:
            assert is_lasting, "only names that cannot be given back end the log dir"
            assert files.failed[0].kind == "rename"
            files.close_all()
            number += 1
            continue

        has_failed = bool(files.failed)
        files.heal()
        end = 50 if starts_afresh else 5
        assert append(log, epoch=7).base_offset == end
        assert log.flush() == end + 1
        kept = spans(content(log))
        log.abandon()
        again = open_log(tmp_path / f"t-{number}", CONFIG, recovery_point=end + 1)
        assert (spans(content(again)), again.damage) == (kept, None)
        assert again.epochs.entries()[-1] == (7, end)
        again.close()
        if not has_failed:
            break
        number += 1
    assert refused > 0


def test_a_log_that_could_not_begin_elsewhere_says_what_failed(tmp_path: Path) -> None:
    log, files = full_log(tmp_path / "t-0")
    files.plan(Fault(at=0, error=errno.EIO, kinds=SYNCS))

    with pytest.raises(LogDirFailed, match="t-0"):
        log.truncate_fully_and_start_at(50)

    assert log.size_bytes > 0


def test_a_file_is_not_cut_under_a_reader(tmp_path: Path) -> None:
    log, _ = full_log(tmp_path / "t-0")
    before = content(log)
    found = log.read(5, max_bytes=1)
    data = found.read(log.handles.files)

    with pytest.raises(LogBusy, match="reader"):
        log.truncate_to(6)

    assert (content(log), log.end_offset) == (before, 12)
    assert log.truncate_to(3), "another file"
    for _ in range(3):
        append(log, batch(size=120), epoch=1)
    assert found.read(log.handles.files) == data
    found.release()


@pytest.mark.parametrize("how", ["close", "abandon", "delete"])
def test_a_log_that_is_flushed_is_not_closed(tmp_path: Path, how: str) -> None:
    log, _ = full_log(tmp_path / "t-0")
    append(log, epoch=2)
    ticket = log.begin_flush()
    assert ticket is not None
    before = content(log)

    with pytest.raises(LogBusy, match="flush"):
        getattr(log, how)()

    assert content(log) == before
    ticket.run()
    log.finish_flush(ticket)
    getattr(log, how)()
    assert log.handles.open_files == 0


@pytest.mark.parametrize("is_deleted", [False, True], ids=["", "of a deleted segment"])
@pytest.mark.parametrize("how", ["close", "abandon", "delete"])
def test_a_log_is_taken_out_under_a_reader_whose_slice_stays_readable(
    tmp_path: Path, how: str, is_deleted: bool
) -> None:
    log, _ = full_log(tmp_path / "t-0")
    found, again = log.read(0, max_bytes=1), log.read(0, max_bytes=1)
    data = found.read(log.handles.files)
    if is_deleted:
        log.truncate_fully_and_start_at(20)

    getattr(log, how)()

    assert (tmp_path / "t-0").exists() == (how != "delete")
    assert (log.handles.open_files, log.handles.doomed_files) == (1, 1)
    again.release()
    assert found.read(log.handles.files) == data
    assert log.handles.doomed_files == 1
    found.release()
    assert (log.handles.open_files, found.file.fd) == (0, -1)


def test_a_log_that_is_made_again_is_not_mixed_up_with_the_one_that_is_still_read(
    tmp_path: Path,
) -> None:
    old = open_log(tmp_path / "t-0")
    fill(old, 3, size=200)
    found = old.read(0, max_bytes=ALL)
    before = found.read(old.handles.files)
    old.delete()

    new = open_log(tmp_path / "t-0", handles=old.handles)
    fill(new, 3, size=90)

    assert found.read(old.handles.files) == before
    assert len(content(new)) == 3 * len(batch(size=90))
    found.release()
    assert len(content(new)) == 3 * len(batch(size=90))


def test_a_full_disk_leaves_the_damage_where_it_is(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    fill(log, 20)
    log.flush()
    log.abandon()
    with (tmp_path / "t-0" / f"{0:020}.log").open("r+b") as file:
        file.seek(3 * SIZE + 80)
        file.write(b"?")
    files = FaultyFiles()
    log = open_log(tmp_path / "t-0", files=files, recovery_point=20)
    assert log.damage is not None
    files.plan(Fault(at=0, error=errno.ENOSPC, kinds=REFUSABLE, is_lasting=True))

    with pytest.raises(KafkaError):
        log.drop_damage()

    assert log.damage is not None
    files.heal()
    log.drop_damage()
    assert append(log).base_offset == 3


def test_the_log_start_moves_forward_within_the_log_only(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    for number in range(10):
        append(log, epoch=number // 4)

    assert log.advance_log_start(6)
    assert not log.advance_log_start(6)
    with pytest.raises(OffsetOutOfRange):
        log.advance_log_start(11)

    assert log.epochs.entries() == [(1, 6), (2, 8)]
    assert log.start_offset == 6


def test_reads_of_a_disk_that_fails_end_the_log_dir(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path / "t-0", CONFIG, files=files)
    fill(log, 10)
    log.close()
    log = open_log(tmp_path / "t-0", CONFIG, files=files, is_clean=True)
    files.plan(Fault(at=0, error=errno.EIO, kinds=frozenset({"pread"})))

    with pytest.raises(LogDirFailed, match="read"):
        log.read(2, max_bytes=1)

    assert log.handles.failure is not None


def test_a_deleted_log_leaves_no_file(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    fill(log, 10)
    log.advance_log_start(4)
    log.delete_old_segments(NOW_MS)

    log.delete()

    assert not (tmp_path / "t-0").exists()
    assert log.handles.open_files == 0


def test_nothing_stays_open_or_counted_after_a_close(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    handles = Handles(LocalFiles(), max_open=16)
    log = open_log(tmp_path / "t-0", replace(CONFIG, index_interval_bytes=0), handles=handles)
    fill(log, 300)
    read(log, 1)
    log.advance_log_start(40)
    log.delete_old_segments(NOW_MS)

    log.close()

    assert handles.open_files == 0
    assert handles.indexes.held_bytes == handles.tails.held_bytes == 0
    assert not handles.owners
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.alone
def test_a_log_at_rest_costs_little_memory(tmp_path: Path) -> None:
    handles = Handles(LocalFiles(), max_open=64)
    config = LogConfig()
    open_log(tmp_path / "warm-0", config, handles=handles)
    logs = []
    before = rss_bytes()

    for number in range(500):
        log = open_log(tmp_path / f"t-{number}", config, handles=handles)
        append(log)
        log.flush()
        logs.append(log)

    per_log = (rss_bytes() - before) / len(logs)
    assert per_log < 6 * 1024
    assert handles.open_files <= 64
    for log in logs:
        log.abandon()
