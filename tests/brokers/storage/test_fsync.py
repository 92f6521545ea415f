"""A flush covers its range, in any thread, and no flush follows a failed one."""

import errno
import threading
from pathlib import Path

import pytest

from brokers.protocol.errors import KafkaError
from brokers.storage.errors import LogBusy, LogDirFailed
from brokers.storage.handles import Handles
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from tests.builders.logs import NOW_MS, append, batch, content, fill, marker, open_log, spans
from tests.fakes.faulty_files import SYNCS, Fault, FaultyFiles

SIZE = len(batch())


def log_with(folder: Path, batches: int, **config: int) -> tuple[PartitionLog, FaultyFiles]:
    """A log with some batches not flushed, on files that remember every call."""
    files = FaultyFiles()
    log = open_log(folder, LogConfig(**config), files=files)  # type: ignore[arg-type]  # sizes
    fill(log, batches)
    files.calls.clear()
    return log, files


def synced(files: FaultyFiles) -> list[str]:
    """What was synced, by short names, in order."""
    names = [Path(call.path).name for call in files.calls if call.kind in SYNCS]
    return [name[:20].lstrip("0") + name[20:] if name[:20].isdigit() else name for name in names]


def test_the_flushed_offset_moves_when_the_ticket_comes_back(tmp_path: Path) -> None:
    log, _ = log_with(tmp_path / "t-0", 3)
    ticket = log.begin_flush()
    assert ticket is not None
    fill(log, 2)

    ticket.run()
    assert log.flushed_offset == 0

    assert log.finish_flush(ticket) == 3
    assert (log.flushed_offset, log.recovery_point) == (3, 3)
    assert log.flush() == 5


def test_there_is_nothing_to_flush_twice(tmp_path: Path) -> None:
    log, _ = log_with(tmp_path / "t-0", 3)
    log.flush()

    assert log.begin_flush() is None


def test_a_new_log_syncs_its_folder_with_its_first_records(tmp_path: Path) -> None:
    log, files = log_with(tmp_path / "t-0", 1)

    log.flush()

    assert synced(files) == [".log", "leader-epoch-checkpoint.tmp", "t-0"]


def test_a_flush_covers_rolled_segments_with_their_indexes_and_snapshots(tmp_path: Path) -> None:
    log, files = log_with(tmp_path / "t-0", 1, segment_bytes=2 * SIZE)
    log.flush()
    files.calls.clear()

    fill(log, 4)
    log.flush()

    assert synced(files) == [
        ".log",
        "2.log",
        "4.log",
        "2.snapshot",
        "4.snapshot",
        ".index",
        ".timeindex",
        "2.index",
        "2.timeindex",
        "t-0",
    ]


def test_only_rolled_segments_are_flushed_when_that_is_enough(tmp_path: Path) -> None:
    log, files = log_with(tmp_path / "t-0", 5, segment_bytes=2 * SIZE)
    assert log.has_rolled

    ticket = log.begin_flush(rolled_only=True)
    assert ticket is not None
    ticket.run()
    log.finish_flush(ticket)

    assert log.flushed_offset == 4
    assert not log.has_rolled
    assert "4.log" not in synced(files)


def test_aborts_are_synced_with_the_markers_that_caused_them(tmp_path: Path) -> None:
    log, files = log_with(tmp_path / "t-0", 1)
    append(log, batch(producer=5, is_transactional=True))
    append(log, marker(5, commit=False))

    log.flush()

    assert ".txnindex" in synced(files)
    assert log.begin_flush() is None


def test_ticket_runs_in_another_thread_during_appends(tmp_path: Path) -> None:
    log, _ = log_with(tmp_path / "t-0", 3, segment_bytes=2 * SIZE)
    ticket = log.begin_flush()
    assert ticket is not None

    thread = threading.Thread(target=ticket.run)
    thread.start()
    fill(log, 50)
    thread.join()

    assert log.finish_flush(ticket) == 3
    assert log.end_offset == 53


def test_files_of_a_ticket_stay_open_whatever_the_budget(tmp_path: Path) -> None:
    handles = Handles(FaultyFiles(), max_open=1)
    log = open_log(tmp_path / "t-0", handles=handles)
    append(log)
    ticket = log.begin_flush()
    assert ticket is not None

    for index in range(1, 4):
        append(open_log(tmp_path / f"t-{index}", handles=handles))

    assert log.segments.active.file.fd >= 0
    ticket.run()
    log.finish_flush(ticket)


def test_a_log_has_one_ticket_at_a_time(tmp_path: Path) -> None:
    log, _ = log_with(tmp_path / "t-0", 3)
    ticket = log.begin_flush()
    assert ticket is not None
    append(log)

    with pytest.raises(AssertionError, match="flushed already"):
        log.begin_flush()
    with pytest.raises(AssertionError, match="has not run"):
        log.finish_flush(ticket)


@pytest.mark.parametrize("offset", [0, 1, 2])
def test_a_file_is_not_cut_while_it_is_being_flushed(tmp_path: Path, offset: int) -> None:
    log, _ = log_with(tmp_path / "t-0", 3)
    ticket = log.begin_flush()
    assert ticket is not None
    before = content(log)

    with pytest.raises(LogBusy, match="flush"):
        log.truncate_to(offset)

    assert content(log) == before
    ticket.run()
    assert log.finish_flush(ticket) == 3
    assert log.truncate_to(offset)
    fill(log, 5)
    assert log.flush() == offset + 5


def test_records_truncated_during_a_flush_do_not_count_as_flushed(tmp_path: Path) -> None:
    log, _ = log_with(tmp_path / "t-0", 4, segment_bytes=2 * SIZE)
    log.flush()
    fill(log, 2)
    ticket = log.begin_flush()
    assert ticket is not None
    log.truncate_to(1)
    fill(log, 5)

    ticket.run()

    assert log.finish_flush(ticket) == 1
    assert log.flush() == 6


def test_a_log_that_began_elsewhere_while_a_flush_ran_is_not_flushed_there(
    tmp_path: Path,
) -> None:
    log, _ = log_with(tmp_path / "t-0", 9)
    ticket = log.begin_flush()
    assert ticket is not None
    log.truncate_fully_and_start_at(4)
    fill(log, 3)

    ticket.run()

    assert log.finish_flush(ticket) == 4


def test_segments_deleted_while_a_flush_runs_do_not_fail_it(tmp_path: Path) -> None:
    log, _ = log_with(tmp_path / "t-0", 5, segment_bytes=2 * SIZE)
    log.flush()
    fill(log, 4)
    ticket = log.begin_flush()
    assert ticket is not None
    log.advance_log_start(4)

    log.delete_old_segments(NOW_MS)
    log.delete_pending(1 << 60)
    ticket.run()

    assert log.finish_flush(ticket) == 9


def test_a_ticket_that_ends_in_any_other_way_has_failed(tmp_path: Path) -> None:
    class Broken(FaultyFiles):
        def datasync(self, fd: int) -> None:
            raise MemoryError

    log = open_log(tmp_path / "t-0", files=Broken())
    append(log)
    ticket = log.begin_flush()
    assert ticket is not None

    with pytest.raises(MemoryError):
        ticket.run()

    with pytest.raises(LogDirFailed):
        log.finish_flush(ticket)
    assert log.flushed_offset == 0


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE, errno.ENOSPC])
def test_a_flush_that_finds_no_room_or_no_descriptor_is_tried_again(
    tmp_path: Path, error: int
) -> None:
    log, files = log_with(tmp_path / "t-0", 5, segment_bytes=2 * SIZE)
    append(log, batch(producer=5, is_transactional=True), epoch=3)
    append(log, marker(5, commit=False), epoch=3)
    files.plan(Fault(at=0, error=error, kinds=frozenset({"open"}), is_lasting=True))

    with pytest.raises(KafkaError) as caught:
        log.flush()

    assert caught.value.code.retriable
    assert (log.flushed_offset, log.is_flushing) == (0, False)
    files.heal()
    files.calls.clear()
    assert log.flush() == 7
    assert {"0.log", "6.log", "leader-epoch-checkpoint.tmp", "2.snapshot"} <= {
        name if name != ".log" else "0.log" for name in synced(files)
    }
    assert ".txnindex" in "".join(synced(files))
    log.close()


def sync_count(folder: Path) -> int:
    log, files = log_with(folder, 5, segment_bytes=2 * SIZE)
    log.flush()
    return len(synced(files))


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_any_sync_that_fails_is_the_last_one(tmp_path: Path, error: int) -> None:
    for number in range(sync_count(tmp_path / "count-0")):
        log, files = log_with(tmp_path / f"t-{number}", 5, segment_bytes=2 * SIZE)
        files.plan(Fault(at=number, error=error, kinds=SYNCS))
        ticket = log.begin_flush()
        assert ticket is not None

        with pytest.raises(LogDirFailed):
            ticket.run()
        with pytest.raises(LogDirFailed):
            log.finish_flush(ticket)

        files.heal()
        assert log.flushed_offset == 0
        for refused in (log.begin_flush, log.flush, lambda log=log: append(log)):
            with pytest.raises(LogDirFailed):
                refused()
        assert len(spans(content(log))) == 5, "what is there can still be read"
        with pytest.raises(LogDirFailed):
            log.close()
