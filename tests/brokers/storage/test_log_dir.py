"""A log dir as a whole: who may open it, what it saves, and when it counts as clean."""

import errno
from pathlib import Path

import pytest

from brokers.storage.clean_shutdown import take_clean_shutdown
from brokers.storage.errors import LogDirFailed
from brokers.storage.files import Files, LocalFiles
from brokers.storage.handles import Handles
from brokers.storage.log_config import LogConfig
from brokers.storage.log_dir import LogDir, LogDirInUse
from tests.builders.logs import NOW_MS, append, batch, content, fill, spans
from tests.fakes.faulty_files import Fault, FaultyFiles

SIZE = len(batch())
CONFIG = LogConfig(segment_bytes=2 * SIZE, retention_ms=-1, retention_bytes=3 * SIZE)
ID = bytes(range(16))


def opened(path: Path, files: Files | None = None) -> LogDir:
    files = files or LocalFiles()
    return LogDir(
        str(path), files=files, handles=Handles(files, max_open=64), config_for=lambda _: CONFIG
    )


def loaded(path: Path, files: Files | None = None) -> LogDir:
    log_dir = opened(path, files)
    log_dir.load_all()
    return log_dir


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
    with_logs(tmp_path, 0, 1).close(broker_epoch=7)
    log_dir = opened(tmp_path)
    log_dir.load(log_dir.folders[0])

    assert not log_dir.close(broker_epoch=8)

    assert opened(tmp_path).clean_broker_epoch is None


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
    log_dir._files.close(log_dir._lock)  # noqa: SLF001  # as the end of the process does
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
    log_dir._files.close(log_dir._lock)  # noqa: SLF001  # as the end of the process does

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
    log_dir = opened(tmp_path)
    log = log_dir.create("orders", 0, ID)
    for _ in range(2):
        append(log, batch(records=4, size=20))
    log.flush()

    log_dir.truncate_to({("orders", 0): 6})

    assert log.end_offset == 4
    assert checkpoint(tmp_path, "recovery-point-offset-checkpoint") == ["orders 0 4"]


def test_a_removed_partition_is_gone_at_once_and_its_files_later(tmp_path: Path) -> None:
    log_dir = with_logs(tmp_path, 0, 1)

    folder = log_dir.remove("orders", 0)

    assert folder.startswith("orders-0.")
    assert folder.endswith("-delete")
    assert ends(log_dir) == {1: 5}
    assert (tmp_path / folder).is_dir()
    assert log_dir.purge() == 0
    assert not (tmp_path / folder).exists()


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
def test_files_and_foreign_folders_of_a_log_dir_are_no_partitions(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / name).write_text("0\n0\n")

    assert opened(tmp_path).folders == []
