"""The log dir's own small files in every bad state: the logs are there all the same.

Checkpoints only say where recovery may begin and what is deleted already; without them recovery
reads more, and readers may see records again that were about to go.
"""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from brokers.protocol.records.builder import BatchBuilder
from brokers.storage import names
from brokers.storage.handles import Handles
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from brokers.storage.log_dir import LogDir
from tests.fakes.faulty_files import FaultyFiles

CONFIG = LogConfig(segment_bytes=2_000, file_delete_delay_ms=0)
TOPIC_IDS = {"orders": bytes(range(16)), "payments": bytes(range(1, 17))}
PARTITIONS = [("orders", 0), ("orders", 1), ("payments", 0)]
NOW_MS = 1_700_000_000_000
ALL = 1 << 30

FILES = {
    "recovery points": names.RECOVERY_POINTS,
    "log starts": names.LOG_STARTS,
    "high watermarks": names.HIGH_WATERMARKS,
    "clean shutdown": names.CLEAN_SHUTDOWN,
    "topic id": f"*/{names.PARTITION_METADATA}",
}

DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "deleted": lambda data: None,
    "empty": lambda data: b"",
    "zeros": lambda data: bytes(len(data)),
    "garbage": lambda data: random.Random(len(data)).randbytes(200),
    "too short": lambda data: data[:-3],
    "too long": lambda data: data + b"orders 9 9\n",
    "twice": lambda data: data + data,
    "huge": lambda data: data * 100_000,
}


def open_dir(folder: Path, files: FaultyFiles) -> LogDir:
    log_dir = LogDir(
        str(folder), files=files, handles=Handles(files), config_for=lambda _topic: CONFIG
    )
    log_dir.load_all()
    return log_dir


def content(log: PartitionLog, files: FaultyFiles, start: int) -> bytes:
    """All whole batches from the one that holds `start` on."""
    data, offset = b"", start
    while offset < log.end_offset:
        found = log.read(offset, max_bytes=ALL)
        data += found.read(files)
        offset = (
            log.end_offset
            if found.file is log.segments.active.file
            else (log.segments[log.segments.index_of(offset) + 1].base_offset)
        )
        found.release()
    return data


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three logs, one of them with a start of its own, after a clean shutdown."""
    folder, files, rng = tmp_path_factory.mktemp("pristine"), FaultyFiles(), random.Random(3)
    log_dir = open_dir(folder, files)
    for topic, index in PARTITIONS:
        log = log_dir.create(topic, index, TOPIC_IDS[topic])
        for _ in range(60):
            builder = BatchBuilder()
            builder.append(None, rng.randbytes(80), timestamp=NOW_MS)
            log.append(memoryview(builder.build()), leader_epoch=0, now_ms=NOW_MS)
    log_dir.logs["orders", 1].flush()
    log_dir.logs["orders", 1].advance_log_start(25)
    log_dir.delete_old_segments(NOW_MS, {})
    log_dir.delete_pending(NOW_MS)
    log_dir.write_high_watermarks(dict.fromkeys(PARTITIONS, 60))
    assert log_dir.close(broker_epoch=4)
    return folder


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", FILES)
def test_without_a_sound_file_the_logs_are_there_all_the_same(
    tmp_path: Path, pristine: Path, kind: str, damage: str
) -> None:
    folder = tmp_path / "dir"
    shutil.copytree(pristine, folder)
    sound_files, files = FaultyFiles(), FaultyFiles()
    sound = open_dir(pristine_copy(tmp_path, pristine), sound_files)
    for path in folder.glob(FILES[kind]):
        damaged = DAMAGES[damage](path.read_bytes())
        path.unlink() if damaged is None else path.write_bytes(damaged)

    log_dir = open_dir(folder, files)

    assert log_dir.failed == {}
    assert list(log_dir.logs) == list(sound.logs)
    for partition, log in log_dir.logs.items():
        expected = sound.logs[partition]
        assert log.damage is None
        assert log.end_offset == expected.end_offset
        if kind == "log starts":
            assert log.segments[0].base_offset <= log.start_offset <= expected.start_offset
        else:
            assert log.start_offset == expected.start_offset
        start = expected.start_offset
        assert content(log, files, start) == content(expected, sound_files, start)
    if kind != "topic id":
        assert log_dir.topic_ids == sound.topic_ids
    assert log_dir.close(broker_epoch=5)
    sound_files.close_all()
    assert_sound(folder)


def pristine_copy(tmp_path: Path, pristine: Path) -> Path:
    shutil.copytree(pristine, tmp_path / "sound")
    return tmp_path / "sound"


def assert_sound(folder: Path) -> None:
    """After a clean shutdown everything that the log dir writes is as it should be."""
    files = FaultyFiles()
    log_dir = open_dir(folder, files)
    assert log_dir.clean_broker_epoch == 5
    assert log_dir.failed == {}
    assert [log.end_offset for log in log_dir.logs.values()] == [60, 60, 60]
    files.close_all()
