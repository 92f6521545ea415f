"""A checkpoint that was refused behind its rename: the disk has what memory does not know of."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from brokers.storage.errors import TooManyOpenFiles
from brokers.storage.files import Files, LocalFiles
from brokers.storage.handles import Handles
from brokers.storage.log_config import LogConfig
from brokers.storage.log_dir import LogDir
from tests.builders.logs import append, fill
from tests.fakes.faulty_files import Fault, FaultyFiles

ID, LATER_ID = bytes(range(16)), bytes(range(1, 17))
REFUSED = Fault(at=0, error=errno.EMFILE, kinds=frozenset({"sync_folder"}))


def loaded(path: Path, files: Files) -> LogDir:
    log_dir = LogDir(
        str(path),
        files=files,
        handles=Handles(files, max_open=16),
        config_for=lambda _: LogConfig(retention_ms=-1),
    )
    log_dir.load_all()
    return log_dir


def refused(files: FaultyFiles, write: Callable[[], None]) -> None:
    """Writes a checkpoint, and has no descriptor left to sync its name with."""
    files.plan(REFUSED)
    with pytest.raises(TooManyOpenFiles):
        write()
    files.heal()


@pytest.mark.parametrize("name", ["write_checkpoints", "write_log_starts"])
def test_a_partition_made_again_meets_nothing_of_it(tmp_path: Path, name: str) -> None:
    files = FaultyFiles()
    log_dir = loaded(tmp_path, files)
    old = log_dir.create("orders", 0, ID)
    fill(old, 5)
    old.flush()
    old.advance_log_start(5)
    refused(files, getattr(log_dir, name))

    log_dir.remove("orders", 0)
    log = log_dir.create("orders", 0, LATER_ID)
    append(log)
    assert log.flush() == 1
    files.close_all()

    again = loaded(tmp_path, LocalFiles()).logs["orders", 0]
    assert (again.damage, again.set_aside) == (None, [])
    assert (again.start_offset, again.end_offset) == (0, 1)


def test_log_starts_are_written_once_more(tmp_path: Path) -> None:
    files = FaultyFiles()
    log_dir = loaded(tmp_path, files)
    log = log_dir.create("orders", 0, ID)
    fill(log, 5)
    log.advance_log_start(3)
    log_dir.write_log_starts()
    log.truncate_to(2)
    refused(files, log_dir.write_log_starts)
    fill(log, 3)
    log.advance_log_start(3)

    log_dir.write_log_starts()

    saved = (tmp_path / "log-start-offset-checkpoint").read_text().splitlines()[2:]
    assert saved == ["orders 0 3"]


def test_a_truncation_lowers_what_may_have_been_saved(tmp_path: Path) -> None:
    files = FaultyFiles()
    log_dir = loaded(tmp_path, files)
    log = log_dir.create("orders", 0, ID)
    fill(log, 5)
    log.flush()
    refused(files, log_dir.write_checkpoints)

    log_dir.truncate_to({("orders", 0): 2})

    saved = (tmp_path / "recovery-point-offset-checkpoint").read_text().splitlines()[2:]
    assert saved == ["orders 0 2"]
