"""Readers that do not let go hold back neither a folder, nor its name, nor the end of a log dir."""

from pathlib import Path

from brokers.storage.files import LocalFiles
from brokers.storage.handles import Handles
from brokers.storage.log_config import LogConfig
from brokers.storage.log_dir import LogDir
from tests.builders.logs import NOW_MS, batch, content, fill

SIZE = len(batch())
CONFIG = LogConfig(segment_bytes=2 * SIZE, retention_ms=-1)
ID = bytes(range(16))


def with_logs(path: Path, *partitions: int) -> LogDir:
    files = LocalFiles()
    log_dir = LogDir(
        str(path), files=files, handles=Handles(files, max_open=64), config_for=lambda _: CONFIG
    )
    for index in partitions:
        fill(log_dir.create("orders", index, ID), 5)
    return log_dir


def test_a_partition_is_removed_and_made_again_under_readers_that_do_not_let_go(
    tmp_path: Path,
) -> None:
    log_dir = with_logs(tmp_path, 0)
    log = log_dir.logs["orders", 0]
    found, deleted = log.read(4, max_bytes=1), log.read(0, max_bytes=1)
    before = found.read(log.handles.files), deleted.read(log.handles.files)
    log.advance_log_start(2)
    log.delete_old_segments(NOW_MS)

    log_dir.remove("orders", 0)
    new = log_dir.create("orders", 0, bytes(reversed(ID)))
    fill(new, 2, size=90)
    new.flush()
    while log_dir.purge():
        pass

    assert (found.read(log.handles.files), deleted.read(log.handles.files)) == before
    assert log_dir.logs["orders", 0].end_offset == 2
    assert len(content(new)) == 2 * len(batch(size=90))
    assert log_dir.handles.doomed_files == 2
    found.release()
    deleted.release()
    assert log_dir.handles.doomed_files == 0


def test_a_reader_keeps_no_dir_from_being_clean(tmp_path: Path) -> None:
    log_dir = with_logs(tmp_path, 0, 1)
    first, _second = log_dir.logs.values()
    found = first.read(0, max_bytes=1)

    assert log_dir.close(broker_epoch=8)

    assert len(found.read(first.handles.files)) == found.length
    found.release()
