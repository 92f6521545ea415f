"""A log dir as a whole: who may open it, what it saves, and when it counts as clean."""

import errno
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from brokers.storage.clean_shutdown import take_clean_shutdown
from brokers.storage.errors import LogBusy, LogDirFailed, StorageCorrupt
from brokers.storage.files import Files, LocalFiles
from brokers.storage.handles import Handles
from brokers.storage.log_config import DAY_MS, LogConfig
from brokers.storage.log_dir import LogDir, LogDirInUse
from tests.builders.logs import NOW_MS, append, batch, content, fill, spans
from tests.fakes.faulty_files import Fault, FaultyFiles

SIZE = len(batch())
CONFIG = LogConfig(segment_bytes=2 * SIZE, retention_ms=-1, retention_bytes=3 * SIZE)
ID = bytes(range(16))


def opened(path: Path, files: Files | None = None, config: LogConfig = CONFIG) -> LogDir:
    files = files or LocalFiles()
    return LogDir(
        str(path), files=files, handles=Handles(files, max_open=64), config_for=lambda _: config
    )


def loaded(path: Path, files: Files | None = None, config: LogConfig = CONFIG) -> LogDir:
    log_dir = opened(path, files, config)
    log_dir.load_all()
    return log_dir


def ended(log_dir: LogDir) -> None:
    """Gives up the lock, as the end of the process does, and does nothing else."""
    log_dir._files.close(log_dir._lock)  # noqa: SLF001


def saved_anywhere(path: Path, partition: str) -> list[str]:
    """The checkpoints that have an entry of the partition."""
    files = sorted(path.glob("*-checkpoint"))
    return [file.name for file in files if f"{partition} " in file.read_text()]


def with_logs(path: Path, *partitions: int, batches: int = 5) -> LogDir:
    log_dir = opened(path)
    for index in partitions:
        fill(log_dir.create("orders", index, ID), batches)
    return log_dir


def ends(log_dir: LogDir) -> dict[int, int]:
    return {index: log.end_offset for (_, index), log in sorted(log_dir.logs.items())}


def checkpoint(path: Path, name: str) -> list[str]:
    return (path / name).read_text().splitlines()[2:]


def test_partitions_are_found_again_with_their_topic_ids(tmp_path: Path) -> None:
    with_logs(tmp_path, 0, 1, 12).close(broker_epoch=7)

    log_dir = loaded(tmp_path)

    assert ends(log_dir) == {0: 5, 1: 5, 12: 5}
    assert set(log_dir.topic_ids.values()) == {ID}
    assert log_dir.clean_broker_epoch == 7
    assert log_dir.folders == []


def test_two_brokers_never_share_a_log_dir(tmp_path: Path) -> None:
    first = opened(tmp_path)

    with pytest.raises(LogDirInUse):
        opened(tmp_path)

    first.close(broker_epoch=1)
    opened(tmp_path).close(broker_epoch=1)


def test_the_clean_mark_is_gone_while_the_dir_is_open(tmp_path: Path) -> None:
    with_logs(tmp_path, 0).close(broker_epoch=7)
    assert (tmp_path / ".kafka_cleanshutdown").exists()

    log_dir = opened(tmp_path)

    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    log_dir.load_all()
    assert log_dir.close(broker_epoch=8)
    assert take_clean_shutdown(LocalFiles(), str(tmp_path)) == 8


def test_a_dir_whose_recovery_did_not_end_is_not_clean(tmp_path: Path) -> None:
    ended(with_logs(tmp_path, 0, 1))
    log_dir = opened(tmp_path)
    log_dir.load(log_dir.folders[0])

    assert not log_dir.close(broker_epoch=8)

    assert opened(tmp_path).clean_broker_epoch is None


def test_a_start_that_comes_to_nothing_leaves_a_clean_dir_clean(tmp_path: Path) -> None:
    with_logs(tmp_path, 0, 1).close(broker_epoch=7)
    log_dir = opened(tmp_path)
    log_dir.load(log_dir.folders[0])

    assert log_dir.close(broker_epoch=7)

    again = opened(tmp_path)
    assert again.clean_broker_epoch == 7
    again.load_all()
    assert ends(again) == {0: 5, 1: 5}


def test_a_folder_that_cannot_be_opened_leaves_the_others_in_peace(tmp_path: Path) -> None:
    with_logs(tmp_path, 0, 1, 2).close(broker_epoch=7)
    # Only a complete cleaning is called .swap, so a broken one has no explanation.
    (tmp_path / "orders-1" / f"{0:020}.log.swap").write_bytes(b"\xff" * 99)

    log_dir = loaded(tmp_path)

    assert ends(log_dir) == {0: 5, 2: 5}
    assert [failed.folder for failed in log_dir.failed.values()] == ["orders-1"]
    assert "swap" in str(log_dir.failed["orders", 1].error)
    assert not log_dir.close(broker_epoch=8), "what was not opened was not closed cleanly"
    assert "orders 1 5" in checkpoint(tmp_path, "recovery-point-offset-checkpoint")


def test_damage_keeps_a_dir_from_being_clean(tmp_path: Path) -> None:
    with_logs(tmp_path, 0).close(broker_epoch=7)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    path = tmp_path / "orders-0" / f"{4:020}.log"
    path.write_bytes(path.read_bytes()[:-1])

    for _ in range(2):
        log_dir = loaded(tmp_path)
        assert log_dir.logs["orders", 0].damage is not None
        assert not log_dir.close(broker_epoch=8)


def test_checkpoints_say_where_recovery_begins_and_logs_start(tmp_path: Path) -> None:
    log_dir = with_logs(tmp_path, 0, 1)
    log_dir.logs["orders", 0].flush()
    log_dir.logs["orders", 1].advance_log_start(3)

    log_dir.write_checkpoints()
    log_dir.write_high_watermarks({("orders", 0): 4, ("orders", 1): 2})

    assert checkpoint(tmp_path, "recovery-point-offset-checkpoint") == ["orders 0 5", "orders 1 0"]
    assert checkpoint(tmp_path, "log-start-offset-checkpoint") == ["orders 1 3"]
    for log in log_dir.logs.values():
        log.abandon()
    ended(log_dir)
    again = loaded(tmp_path)
    assert again.high_watermarks == {("orders", 0): 4, ("orders", 1): 2}
    assert again.logs["orders", 1].start_offset == 3


@pytest.mark.parametrize("damage", [None, b"", b"garbage", b"0\n5\norders 0 1\n"])
def test_damaged_checkpoints_cost_a_longer_recovery_and_nothing_else(
    tmp_path: Path, damage: bytes | None
) -> None:
    with_logs(tmp_path, 0, 1).close(broker_epoch=7)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    for path in tmp_path.glob("*-checkpoint"):
        path.unlink()
        if damage is not None:
            path.write_bytes(damage)

    log_dir = loaded(tmp_path)

    assert ends(log_dir) == {0: 5, 1: 5}


def test_retention_saves_the_new_starts_before_it_deletes(tmp_path: Path) -> None:
    log_dir = with_logs(tmp_path, 0, batches=8)
    log = log_dir.logs["orders", 0]
    log.flush()

    assert log_dir.delete_old_segments(NOW_MS, {("orders", 0): 8}) == 2

    assert checkpoint(tmp_path, "log-start-offset-checkpoint") == ["orders 0 4"]
    assert [segment.base_offset for segment in log.segments] == [4, 6]
    log_dir.write_checkpoints()
    assert checkpoint(tmp_path, "log-start-offset-checkpoint") == []


def test_retention_waits_for_the_high_watermark(tmp_path: Path) -> None:
    log_dir = with_logs(tmp_path, 0, batches=8)
    log_dir.logs["orders", 0].flush()

    assert log_dir.delete_old_segments(NOW_MS, {}) == 0
    assert log_dir.delete_old_segments(NOW_MS, {("orders", 0): 3}) == 1


def test_a_crash_between_the_saved_start_and_the_deletion_is_made_up_for(tmp_path: Path) -> None:
    log_dir = with_logs(tmp_path, 0, batches=8)
    log = log_dir.logs["orders", 0]
    log.flush()
    log.expire(NOW_MS)
    log_dir.write_checkpoints()
    log.abandon()
    ended(log_dir)

    again = loaded(tmp_path).logs["orders", 0]

    assert (again.start_offset, again.end_offset) == (4, 8)
    assert [segment.base_offset for segment in again.segments] == [4, 6]


def test_a_truncation_saves_the_lower_recovery_point_first(tmp_path: Path) -> None:
    files = FaultyFiles()
    log_dir = opened(tmp_path, files)
    fill(log_dir.create("orders", 0, ID), 6)
    log_dir.logs["orders", 0].flush()
    log_dir.write_checkpoints()
    files.calls.clear()

    log_dir.truncate_to({("orders", 0): 3})

    order = [call.path for call in files.calls if call.kind in {"rename", "truncate"}]
    assert "recovery-point" in order[0]
    assert all("recovery-point" not in path for path in order[1:])
    assert checkpoint(tmp_path, "recovery-point-offset-checkpoint") == ["orders 0 3"]
    assert log_dir.logs["orders", 0].end_offset == 3


def test_a_truncation_within_a_batch_saves_where_the_log_ends(tmp_path: Path) -> None:
    files = FaultyFiles()
    log_dir = opened(tmp_path, files)
    log = log_dir.create("orders", 0, ID)
    for _ in range(2):
        append(log, batch(records=4, size=20))
    log.flush()
    log_dir.write_checkpoints()
    files.calls.clear()

    log_dir.truncate_to({("orders", 0): 6})

    assert log.end_offset == 4
    assert checkpoint(tmp_path, "recovery-point-offset-checkpoint") == ["orders 0 4"]
    saved = [call for call in files.calls if call.kind == "rename" and "point" in call.path]
    assert len(saved) == 1, "a crash between two would be taken for damage"


def test_a_truncation_into_a_gap_of_compaction_saves_no_more_than_is_left(tmp_path: Path) -> None:
    config = LogConfig(is_compacted=True)
    log_dir = opened(tmp_path, config=config)
    log = log_dir.create("orders", 0, ID)
    for base_offset in (0, 7, 9):
        log.append_replicated(batch(base_offset=base_offset, epoch=0), now_ms=NOW_MS)
    log.flush()
    log_dir.write_checkpoints()

    log_dir.truncate_to({("orders", 0): 5})

    assert log.end_offset == 1
    ended(log_dir)
    assert loaded(tmp_path, config=config).logs["orders", 0].damage is None


def test_producers_that_are_silent_for_a_day_are_forgotten(tmp_path: Path) -> None:
    log_dir = with_logs(tmp_path, 0, 1)
    for index in range(2):
        append(log_dir.logs["orders", index], batch(producer=5))

    assert log_dir.expire_producers(NOW_MS + DAY_MS - 1) == 0
    assert log_dir.expire_producers(NOW_MS + DAY_MS) == 2


def test_a_log_that_begins_elsewhere_does_so_for_every_later_start(tmp_path: Path) -> None:
    log_dir = with_logs(tmp_path, 0)
    log_dir.logs["orders", 0].flush()
    log_dir.write_checkpoints()

    log_dir.start_afresh(("orders", 0), 100)

    assert checkpoint(tmp_path, "recovery-point-offset-checkpoint") == ["orders 0 100"]
    append(log_dir.logs["orders", 0])
    log_dir.close(broker_epoch=1)
    again = loaded(tmp_path).logs["orders", 0]
    assert (again.start_offset, again.end_offset, again.damage) == (100, 101, None)


def test_a_folder_whose_files_are_gone_is_not_taken_for_a_new_partition(tmp_path: Path) -> None:
    with_logs(tmp_path, 0).close(broker_epoch=1)
    for path in (tmp_path / "orders-0").iterdir():
        path.unlink()

    log = loaded(tmp_path).logs["orders", 0]

    assert log.damage is not None
    assert "up to 5 was synced" in log.damage.reason


def test_a_truncation_below_the_saved_start_lowers_that_first(tmp_path: Path) -> None:
    log_dir = with_logs(tmp_path, 0, batches=10)
    log = log_dir.logs["orders", 0]
    log.flush()
    log.advance_log_start(9)
    log_dir.write_checkpoints()

    log_dir.truncate_to({("orders", 0): 6})

    assert checkpoint(tmp_path, "log-start-offset-checkpoint") == ["orders 0 6"]
    fill(log, 2)
    log.flush()
    ended(log_dir)
    again = loaded(tmp_path).logs["orders", 0]
    assert (again.start_offset, again.end_offset, again.damage) == (6, 8, None)


def test_truncation_below_the_first_segment_restarts_the_log(tmp_path: Path) -> None:
    log_dir = with_logs(tmp_path, 0, batches=10)
    log = log_dir.logs["orders", 0]
    log.flush()
    log.advance_log_start(7)
    log_dir.write_log_starts()
    log.delete_old_segments(NOW_MS)
    log_dir.write_log_starts()
    log.advance_log_start(9)
    log_dir.write_checkpoints()

    log_dir.truncate_to({("orders", 0): 3})
    fill(log, 4)
    log.flush()
    ended(log_dir)

    again = loaded(tmp_path).logs["orders", 0]
    assert (again.start_offset, again.end_offset, again.damage) == (3, 7, None)
    assert spans(content(again)) == [(3, 3), (4, 4), (5, 5), (6, 6)]


def test_crash_while_a_log_restarts_causes_no_damage(tmp_path: Path) -> None:
    ends_found = set()

    for at in range(20):
        files = FaultyFiles()
        (tmp_path / str(at)).mkdir()
        log_dir = opened(tmp_path / str(at), files)
        log = log_dir.create("orders", 0, ID)
        fill(log, 10)
        log.flush()
        log_dir.delete_old_segments(NOW_MS, {("orders", 0): 10})
        log_dir.write_checkpoints()
        files.plan(Fault(at=at, error=errno.EIO, is_lasting=True))
        with suppress(LogDirFailed):
            log_dir.truncate_to({("orders", 0): 3})
        ended(log_dir)
        again = loaded(tmp_path / str(at)).logs["orders", 0]
        assert again.damage is None
        ends_found.add(again.end_offset)

    assert {3, 10} <= ends_found


def test_damaged_log_keeps_its_recovery_point(tmp_path: Path) -> None:
    with_logs(tmp_path, 0).close(broker_epoch=7)
    path = tmp_path / "orders-0" / f"{4:020}.log"
    path.write_bytes(path.read_bytes()[:-1])
    log_dir = loaded(tmp_path)

    with pytest.raises(StorageCorrupt):
        log_dir.truncate_to({("orders", 0): 2})
    with pytest.raises(StorageCorrupt):
        log_dir.start_afresh(("orders", 0), 2)

    assert checkpoint(tmp_path, "recovery-point-offset-checkpoint") == ["orders 0 5"]


def test_a_removed_partition_is_gone_at_once_and_its_files_later(tmp_path: Path) -> None:
    log_dir = with_logs(tmp_path, 0, 1)

    folder = log_dir.remove("orders", 0)

    assert folder.startswith("orders-0.")
    assert folder.endswith("-delete")
    assert ends(log_dir) == {1: 5}
    assert (tmp_path / folder).is_dir()
    assert log_dir.purge() == 0
    assert not (tmp_path / folder).exists()


def test_folder_removed_by_an_operator_causes_no_failure(tmp_path: Path) -> None:
    log_dir = with_logs(tmp_path, 0)
    folder = tmp_path / log_dir.remove("orders", 0)
    shutil.rmtree(folder)

    assert log_dir.purge() == 0

    assert log_dir.handles.failure is None


def test_a_start_takes_up_purges_and_leaves_stray_folders_alone(tmp_path: Path) -> None:
    log_dir = with_logs(tmp_path, 0, 1, 2)
    log_dir.remove("orders", 0)
    stray = log_dir.remove("orders", 1, "-stray")
    log_dir.close(broker_epoch=1)

    again = loaded(tmp_path)

    assert ends(again) == {2: 5}
    assert again.set_aside == [stray]
    assert again.purge() == 0
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [
        stray,
        "orders-2",
    ]


def test_a_partition_that_is_made_again_knows_nothing_of_its_old_self(tmp_path: Path) -> None:
    log_dir = with_logs(tmp_path, 0)
    log_dir.logs["orders", 0].advance_log_start(3)
    log_dir.write_checkpoints()
    log_dir.remove("orders", 0)

    log = log_dir.create("orders", 0, bytes(reversed(ID)))

    assert (log.start_offset, log.end_offset) == (0, 0)
    append(log)
    assert spans(content(log)) == [(0, 0)]
    log_dir.close(broker_epoch=1)
    assert loaded(tmp_path).topic_ids["orders", 0] == bytes(reversed(ID))


def test_a_removed_partition_is_taken_out_of_every_checkpoint(tmp_path: Path) -> None:
    log_dir = with_logs(tmp_path, 0, 1)
    for log in log_dir.logs.values():
        log.flush()
        log.advance_log_start(3)
    log_dir.write_checkpoints()
    log_dir.write_high_watermarks({("orders", 0): 5, ("orders", 1): 5})
    assert len(saved_anywhere(tmp_path, "orders 0")) == 3

    log_dir.remove("orders", 0)
    log_dir.write_checkpoints()
    log_dir.write_high_watermarks(log_dir.high_watermarks)

    assert saved_anywhere(tmp_path, "orders 0") == []
    assert len(saved_anywhere(tmp_path, "orders 1")) == 3


def test_checkpoints_written_while_logs_are_loaded_lose_none_of_them(tmp_path: Path) -> None:
    log_dir = with_logs(tmp_path, 0, 1)
    log_dir.logs["orders", 1].advance_log_start(3)
    log_dir.write_high_watermarks({("orders", 0): 5, ("orders", 1): 5})
    assert log_dir.close(broker_epoch=1)
    log_dir = opened(tmp_path)
    log_dir.load(log_dir.folders[0])

    log_dir.write_checkpoints()
    log_dir.write_high_watermarks(log_dir.high_watermarks)

    assert len(saved_anywhere(tmp_path, "orders 1")) == 3
    log_dir.close(broker_epoch=2)


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_partition_made_again_keeps_its_records_whatever_its_old_self_had_saved(
    tmp_path: Path, is_clean: bool
) -> None:
    log_dir = with_logs(tmp_path, 0, batches=20)
    log_dir.logs["orders", 0].flush()
    log_dir.logs["orders", 0].advance_log_start(15)
    log_dir.write_checkpoints()
    log_dir.remove("orders", 0)
    log = log_dir.create("orders", 0, bytes(reversed(ID)))
    fill(log, 5)
    log.flush()
    if is_clean:
        assert log_dir.close(broker_epoch=1)
    else:
        ended(log_dir)

    again = loaded(tmp_path).logs["orders", 0]

    assert (again.start_offset, again.end_offset, again.damage) == (0, 5, None)


def test_a_partition_is_not_removed_under_a_flush(tmp_path: Path) -> None:
    log_dir = with_logs(tmp_path, 0, batches=6)
    log = log_dir.logs["orders", 0]

    ticket = log.begin_flush()
    assert ticket is not None
    with pytest.raises(LogBusy, match="flush"):
        log_dir.remove("orders", 0)
    assert ends(log_dir) == {0: 6}
    append(log)
    ticket.run()
    log.finish_flush(ticket)
    log_dir.remove("orders", 0)
    assert log_dir.logs == {}


def test_a_log_that_is_flushed_keeps_a_dir_from_being_clean_and_no_other_from_closing(
    tmp_path: Path,
) -> None:
    log_dir = with_logs(tmp_path, 0, 1)
    first, second = log_dir.logs.values()
    _ticket = first.begin_flush()

    assert not log_dir.close(broker_epoch=8)

    assert second.flushed_offset == 5
    again = loaded(tmp_path)
    assert again.clean_broker_epoch is None
    assert ends(again) == {0: 5, 1: 5}


def test_a_disk_that_fails_leaves_no_mark_and_loses_no_record(tmp_path: Path) -> None:
    files = FaultyFiles()
    log_dir = opened(tmp_path, files)
    for index in range(3):
        fill(log_dir.create("orders", index, ID), 5)
    log_dir.logs["orders", 0].flush()
    files.plan(Fault(at=0, error=errno.EIO, kinds=frozenset({"datasync"})))
    ticket = log_dir.logs["orders", 1].begin_flush()
    assert ticket is not None
    with pytest.raises(LogDirFailed):
        ticket.run()
    with pytest.raises(LogDirFailed):
        log_dir.logs["orders", 1].finish_flush(ticket)
    files.heal()

    assert not log_dir.close(broker_epoch=8)

    again = loaded(tmp_path)
    assert again.clean_broker_epoch is None
    assert ends(again) == {0: 5, 1: 5, 2: 5}


@pytest.mark.parametrize("name", ["recovery-point-offset-checkpoint", "meta.properties", "x.y"])
def test_files_and_foreign_folders_of_a_log_dir_are_ignored(tmp_path: Path, name: str) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / name).write_text("0\n0\n")

    assert opened(tmp_path).folders == []


def test_cleanings_are_saved_and_lowered_by_a_truncation_before_it_happens(tmp_path: Path) -> None:
    log_dir, name = with_logs(tmp_path, 0, 1), "cleaner-offset-checkpoint"
    log_dir.note_cleaned(("orders", 0), 4)
    log_dir.note_cleaned(("orders", 1), 4)
    log_dir.write_checkpoints()
    assert checkpoint(tmp_path, name) == ["orders 0 4", "orders 1 4"]

    log_dir.truncate_to({("orders", 0): 3})

    assert checkpoint(tmp_path, name) == ["orders 0 3", "orders 1 4"]
    assert [log_dir.first_dirty(("orders", index)) for index in range(3)] == [3, 4, 0]
    log_dir.start_afresh(("orders", 1), 9)
    assert checkpoint(tmp_path, name) == ["orders 0 3", "orders 1 0"]
    log_dir.close(broker_epoch=1)
    assert loaded(tmp_path).first_dirty(("orders", 0)) == 3


def test_a_partition_that_is_made_again_was_never_cleaned(tmp_path: Path) -> None:
    log_dir = with_logs(tmp_path, 0)
    log_dir.note_cleaned(("orders", 0), 4)
    log_dir.write_checkpoints()
    log_dir.remove("orders", 0)

    log_dir.create("orders", 0, ID)

    assert log_dir.first_dirty(("orders", 0)) == 0
    assert saved_anywhere(tmp_path, "orders 0") == []
