"""Logs after any kind of end: they have everything that was synced, and nothing damaged."""

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import LocalFiles
from brokers.storage.handles import Handles
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from brokers.storage.recovery import recover
from tests.builders.logs import (
    NOW_MS,
    append,
    batch,
    content,
    files_of,
    fill,
    marker,
    open_log,
    spans,
)
from tests.fakes.faulty_files import SYNCS, FaultyFiles

SIZE = len(batch())
CONFIG = LogConfig(segment_bytes=4 * SIZE, index_interval_bytes=2 * SIZE)


def crashed(folder: Path, batches: int = 10, config: LogConfig = CONFIG) -> Path:
    """A folder as a process leaves it that was killed: 4 batches per segment, epochs 0 and 1."""
    log = open_log(folder, config)
    for number in range(batches):
        append(log, epoch=2 * number // batches)
    log.abandon()
    return folder


def log_file(folder: Path, base_offset: int) -> Path:
    return folder / f"{base_offset:020}.log"


def change(path: Path, position: int, how: Callable[[bytes], bytes]) -> None:
    """Replaces what is behind `position`."""
    whole = path.read_bytes()
    path.write_bytes(whole[:position] + how(whole[position:]))


def flip(path: Path, position: int) -> None:
    change(path, position, lambda rest: bytes([rest[0] ^ 1]) + rest[1:])


def offsets(log: PartitionLog) -> list[int]:
    return [first for first, _ in spans(content(log))]


def test_a_killed_process_loses_nothing_that_it_had_written(tmp_path: Path) -> None:
    log = open_log(crashed(tmp_path / "t-0"), CONFIG)

    assert offsets(log) == list(range(10))
    assert log.flushed_offset == 10
    assert log.damage is None
    assert log.epochs.entries() == [(0, 0), (1, 5)]
    append(log, epoch=1)
    assert log.end_offset == 11


@pytest.mark.parametrize("left", range(0, SIZE, 7))
def test_a_torn_last_batch_is_cut_off(tmp_path: Path, left: int) -> None:
    folder = crashed(tmp_path / "t-0")
    change(log_file(folder, 8), SIZE, lambda rest: rest[:left])

    log = open_log(folder, CONFIG, recovery_point=4)

    assert offsets(log) == list(range(9))
    assert log.damage is None
    assert log_file(folder, 8).stat().st_size == SIZE


@pytest.mark.parametrize("rubbish", [bytes(5_000), b"\xff" * 500, b"\x02" * 90, bytes(1)])
def test_rubbish_behind_the_last_batch_is_cut_off(tmp_path: Path, rubbish: bytes) -> None:
    folder = crashed(tmp_path / "t-0")
    change(log_file(folder, 8), 2 * SIZE, lambda rest: rubbish)

    log = open_log(folder, CONFIG)

    assert offsets(log) == list(range(10))
    assert log.damage is None


def test_a_torn_segment_takes_all_later_ones_with_it(tmp_path: Path) -> None:
    folder = crashed(tmp_path / "t-0")
    change(log_file(folder, 4), 2 * SIZE, lambda rest: rest[:50])

    log = open_log(folder, CONFIG, recovery_point=2)

    assert offsets(log) == list(range(6))
    assert log.damage is None
    assert files_of(log, ".log") == [".log", "4.log"]
    assert "8.snapshot" not in files_of(log)
    assert log.set_aside == [f"{log_file(folder, 8)}.damaged"]


def test_a_later_segment_without_a_sound_batch_is_not_kept(tmp_path: Path) -> None:
    folder = crashed(tmp_path / "t-0")
    change(log_file(folder, 4), 2 * SIZE, lambda rest: rest[:50])
    change(log_file(folder, 8), 0, lambda rest: bytes(len(rest)))

    log = open_log(folder, CONFIG, recovery_point=2)

    assert offsets(log) == list(range(6))
    assert files_of_damage(folder) == log.set_aside == []


def test_a_segment_that_ends_early_makes_a_hole_that_nothing_may_follow(tmp_path: Path) -> None:
    folder = crashed(tmp_path / "t-0")
    change(log_file(folder, 4), 2 * SIZE, lambda rest: b"")

    later = log_file(folder, 8).read_bytes()

    log = open_log(folder, CONFIG, recovery_point=2)

    assert offsets(log) == list(range(6))
    assert log.damage is None
    assert files_of(log, ".log") == [".log", "4.log"]
    (kept,) = log.set_aside
    assert Path(kept).read_bytes() == later


def test_a_hole_below_the_recovery_point_is_accepted(tmp_path: Path) -> None:
    folder = crashed(tmp_path / "t-0")
    change(log_file(folder, 4), 2 * SIZE, lambda rest: b"")
    # It lets recovery read from there on.
    (folder / f"{0:020}.txnindex").write_bytes(b"garbage")

    log = open_log(folder, CONFIG, recovery_point=10)

    assert offsets(log) == [0, 1, 2, 3, 4, 5, 8, 9]
    assert log.damage is None


def test_a_hole_across_the_recovery_point_is_damage(tmp_path: Path) -> None:
    folder = crashed(tmp_path / "t-0")
    change(log_file(folder, 4), 2 * SIZE, lambda rest: b"")

    log = open_log(folder, CONFIG, recovery_point=7)

    assert log.damage is not None
    assert (log.damage.offset, log.damage.is_flushed) == (6, True)


def test_rot_in_the_last_batch_of_a_segment_is_damage_if_the_next_one_is_sound(
    tmp_path: Path,
) -> None:
    folder = crashed(tmp_path / "t-0")
    flip(log_file(folder, 4), 4 * SIZE - 5)

    log = open_log(folder, CONFIG)

    assert log.damage is not None
    assert (log.damage.offset, log.damage.is_flushed) == (7, False)
    assert log_file(folder, 8).stat().st_size == 2 * SIZE


def test_segments_that_overlap_are_damage(tmp_path: Path) -> None:
    folder = crashed(tmp_path / "t-0")
    with log_file(folder, 4).open("ab") as file:
        file.write(batch(base_offset=8, epoch=1))

    log = open_log(folder, CONFIG)

    assert log.damage is not None
    assert (log.damage.path, log.damage.offset) == (str(log_file(folder, 8)), 9)


def test_lower_epoch_in_a_sound_batch_is_not_a_torn_tail(tmp_path: Path) -> None:
    folder = tmp_path / "t-0"
    folder.mkdir()
    written = bytes(batch(epoch=5)) + bytes(batch(base_offset=1, epoch=4))
    log_file(folder, 0).write_bytes(written)

    log = open_log(folder)

    assert log.damage is not None
    assert "leader epoch 4 (at least 5)" in log.damage.reason
    assert log_file(folder, 0).read_bytes() == written


def test_compaction_may_leave_such_a_hole(tmp_path: Path) -> None:
    config = replace(CONFIG, is_compacted=True)
    folder = crashed(tmp_path / "t-0", config=config)
    change(log_file(folder, 4), 2 * SIZE, lambda rest: b"")

    log = open_log(folder, config)

    assert offsets(log) == [0, 1, 2, 3, 4, 5, 8, 9]


@pytest.mark.parametrize("recovery_point", [0, 7, 10])
def test_bytes_that_rotted_in_front_of_sound_batches_are_damage(
    tmp_path: Path, recovery_point: int
) -> None:
    folder = crashed(tmp_path / "t-0")
    flip(log_file(folder, 4), 2 * SIZE + 80)
    before = {path.name: path.read_bytes() for path in folder.glob("*.log")}

    log = open_log(folder, CONFIG, recovery_point=recovery_point)

    if recovery_point >= 8:
        # That segment was synced and is not read again: readers of the records will notice.
        assert log.damage is None
        return
    assert log.damage is not None
    assert (log.damage.path, log.damage.position) == (str(log_file(folder, 4)), 2 * SIZE)
    assert (log.damage.offset, log.damage.is_flushed) == (6, recovery_point > 6)
    assert "CRC" in log.damage.reason
    assert offsets(log) == list(range(6))
    assert {path.name: path.read_bytes() for path in folder.glob("*.log")} == before


def test_a_synced_end_that_is_torn_is_damage_too(tmp_path: Path) -> None:
    folder = crashed(tmp_path / "t-0")
    change(log_file(folder, 8), SIZE, lambda rest: rest[:40])

    log = open_log(folder, CONFIG, recovery_point=10)

    assert log.damage is not None
    assert log.damage.is_flushed
    assert offsets(log) == list(range(9))


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_synced_end_that_is_missing_is_damage_though_all_that_is_left_is_sound(
    tmp_path: Path, is_clean: bool
) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    fill(log, 10)
    log.close()
    change(log_file(tmp_path / "t-0", 8), SIZE, lambda rest: b"")

    log = open_log(tmp_path / "t-0", CONFIG, recovery_point=10, is_clean=is_clean)

    assert log.damage is not None
    assert (log.damage.offset, log.damage.is_flushed) == (9, True)
    assert "up to 10 was synced" in log.damage.reason
    log.drop_damage()
    assert append(log).base_offset == 9


def test_a_damaged_log_is_served_and_takes_nothing(tmp_path: Path) -> None:
    folder = crashed(tmp_path / "t-0")
    flip(log_file(folder, 4), 2 * SIZE + 80)
    log = open_log(folder, CONFIG)

    for refused in (
        lambda: append(log),
        lambda: log.append_replicated(batch(base_offset=6, epoch=1), now_ms=NOW_MS),
        lambda: log.truncate_to(2),
        lambda: log.truncate_fully_and_start_at(99),
    ):
        with pytest.raises(StorageCorrupt, match="CRC"):
            refused()

    assert log.begin_flush() is None
    log.close()


def test_damage_is_found_again_by_every_start_until_someone_decides(tmp_path: Path) -> None:
    folder = crashed(tmp_path / "t-0")
    change(log_file(folder, 8), SIZE, lambda rest: rest[:40])
    point = 10

    for _ in range(3):
        log = open_log(folder, CONFIG, recovery_point=point)
        assert log.damage is not None
        point = log.recovery_point
        log.close()


def test_damage_is_set_aside_on_request(tmp_path: Path) -> None:
    folder = crashed(tmp_path / "t-0")
    flip(log_file(folder, 4), 2 * SIZE + 80)
    damaged = log_file(folder, 4).read_bytes()
    later = log_file(folder, 8).read_bytes()
    log = open_log(folder, CONFIG)

    log.drop_damage()

    assert log.damage is None
    assert append(log, epoch=3).base_offset == 6
    kept = {name: (folder / name).read_bytes() for name in files_of_damage(folder)}
    assert kept == {f"{4:020}.log.damaged": damaged[2 * SIZE :], f"{8:020}.log.damaged": later}
    log.abandon()
    assert offsets(open_log(folder, CONFIG)) == list(range(7))


def files_of_damage(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*.damaged")]


def test_a_page_that_was_never_written_is_a_torn_tail_even_before_sound_batches(
    tmp_path: Path,
) -> None:
    folder = crashed(tmp_path / "t-0", batches=200, config=LogConfig())
    change(log_file(folder, 0), 8_192, lambda rest: bytes(4_096) + rest[4_096:])

    rest = log_file(folder, 0).read_bytes()[8_192 // SIZE * SIZE :]

    log = open_log(folder, recovery_point=20)

    assert log.damage is None
    assert log.end_offset == 8_192 // SIZE
    assert log_file(folder, 0).stat().st_size == 8_192 // SIZE * SIZE
    (kept,) = log.set_aside
    assert Path(kept).read_bytes() == rest


def test_damage_below_the_log_start_is_ignored(tmp_path: Path) -> None:
    folder = crashed(tmp_path / "t-0")
    flip(log_file(folder, 0), 80)

    log = open_log(folder, CONFIG, recovery_point=2, log_start_offset=5)

    assert log.damage is None
    assert (log.start_offset, log.end_offset) == (5, 10)
    assert files_of(log, ".log") == ["4.log", "8.log"]


def test_log_that_lost_its_end_below_its_start_restarts_at_its_start(tmp_path: Path) -> None:
    folder = crashed(tmp_path / "t-0")

    log = open_log(folder, CONFIG, log_start_offset=500)

    assert (log.start_offset, log.end_offset) == (500, 500)
    assert log.epochs.entries() == []
    assert append(log).base_offset == 500
    assert files_of(log, ".log") == ["500.log"]
    # Otherwise the start could be that of an older topic with this name.
    assert sorted(log.set_aside) == [f"{log_file(folder, base)}.damaged" for base in (0, 4, 8)]


def with_producer(folder: Path) -> Path:
    """Like `crashed`, from one producer."""
    log = open_log(folder, CONFIG)
    for number in range(10):
        append(log, batch(producer=7, sequence=number), epoch=number // 5)
    log.close()
    return folder


def test_a_log_without_any_segment_knows_no_producers_and_no_epochs(tmp_path: Path) -> None:
    folder = with_producer(tmp_path / "t-0")
    for path in folder.glob("*.log"):
        path.unlink()

    log = open_log(folder, CONFIG)

    assert files_of(log, ".snapshot") == []
    assert (folder / "leader-epoch-checkpoint").read_text() == "0\n0\n"
    fill(log, 9)
    log.truncate_to(8)
    assert list(log.producers.active()) == []


def test_dropped_damage_takes_with_it_what_was_known_of_its_future(tmp_path: Path) -> None:
    folder = with_producer(tmp_path / "t-0")
    flip(log_file(folder, 4), 80)
    log = open_log(folder, CONFIG, recovery_point=6)
    assert "8.snapshot" in files_of(log)

    log.drop_damage()

    assert files_of(log, ".snapshot") == ["4.snapshot"]
    assert (folder / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"
    assert [info.last_sequence for info in log.producers.active()] == [3]


def test_a_second_damage_does_not_replace_what_was_set_aside_first(tmp_path: Path) -> None:
    folder = crashed(tmp_path / "t-0")
    for _ in range(2):
        log = open_log(folder, CONFIG)
        fill(log, 10 - log.end_offset)
        log.abandon()
        flip(log_file(folder, 4), 80)
        log = open_log(folder, CONFIG)
        log.drop_damage()
        log.close()

    open_log(folder, CONFIG, is_clean=True)

    assert sorted(files_of_damage(folder)) == [
        f"{4:020}.log.2.damaged",
        f"{4:020}.log.damaged",
        f"{8:020}.log.2.damaged",
        f"{8:020}.log.damaged",
    ]


def test_a_rebuild_of_the_transaction_index_may_be_interrupted(tmp_path: Path) -> None:
    pristine = tmp_path / "pristine-0"
    log = open_log(pristine, CONFIG)
    for number in range(3):
        append(log, batch(producer=7, sequence=number, is_transactional=True))
        append(log, marker(7, commit=False))
    fill(log, 6)
    expected = log.aborted_transactions(0, 12)
    log.close()
    for path in pristine.glob("*.txnindex"):
        flip(path, 0)

    stopped = True
    for step in count():
        folder = tmp_path / f"t-{step}"
        shutil.copytree(pristine, folder)
        try:
            open_log(folder, CONFIG, files=StoppingFiles(step), recovery_point=12).abandon()
            stopped = False
        except KeyboardInterrupt:
            pass
        log = open_log(folder, CONFIG, recovery_point=12)
        assert log.aborted_transactions(0, 12) == expected, f"after step {step}"
        log.abandon()
        if not stopped:
            break
    assert len(expected) == 3
    assert step > 10


def test_only_segments_from_the_recovery_point_on_are_read(tmp_path: Path) -> None:
    folder = crashed(tmp_path / "t-0")

    found = recover(
        str(folder),
        CONFIG,
        Handles(LocalFiles(), max_open=16),
        recovery_point=5,
        log_start_offset=0,
        is_clean=False,
    )

    assert found.scanned_bytes == 6 * SIZE
    assert found.end_offset == 10


def test_a_clean_log_is_not_read(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    fill(log, 10)
    log.close()

    found = recover(
        str(tmp_path / "t-0"),
        CONFIG,
        Handles(LocalFiles(), max_open=16),
        recovery_point=0,
        log_start_offset=0,
        is_clean=True,
    )

    assert (found.scanned_bytes, found.end_offset) == (0, 10)


def test_recovered_records_are_synced_before_they_are_readable(tmp_path: Path) -> None:
    folder = crashed(tmp_path / "t-0", batches=6)
    files = FaultyFiles()

    open_log(folder, CONFIG, files=files)

    synced = {Path(call.path).name[18:] for call in files.calls if call.kind in SYNCS}
    assert {"00.log", "04.log", "00.index", "00.timeindex", "04.snapshot", ""} <= synced


def test_recovery_may_be_interrupted_anywhere_and_ends_the_same(tmp_path: Path) -> None:
    def broken_folder(number: str) -> Path:
        folder = crashed(tmp_path / number)
        change(log_file(folder, 4), 2 * SIZE, lambda rest: rest[:50])
        return folder

    files = FaultyFiles()
    expected = content(open_log(broken_folder("t-0"), CONFIG, files=files, recovery_point=2))
    assert len(files.calls) > 10

    for step in range(len(files.calls)):
        folder = broken_folder(f"t-{step + 1}")
        stopping = StoppingFiles(step)
        with pytest.raises(KeyboardInterrupt):
            open_log(folder, CONFIG, files=stopping, recovery_point=2)

        log = open_log(folder, CONFIG, recovery_point=2)
        assert content(log) == expected, f"after step {step}"
        log.abandon()


class StoppingFiles(FaultyFiles):
    """Files under a process that is stopped before a certain change."""

    def __init__(self, stop_at: int) -> None:
        super().__init__()
        self._stop_at = stop_at

    def _gate(self, kind: str, path: str) -> bool:
        if len(self.calls) == self._stop_at and kind not in {"pread", "size", "list_folder"}:
            raise KeyboardInterrupt
        return super()._gate(kind, path)


@pytest.mark.parametrize("damage", ["deleted", "empty", "garbage", "from another log"])
@pytest.mark.parametrize("is_clean", [True, False])
def test_leader_epochs_are_derived_again_from_the_batches(
    tmp_path: Path, damage: str, is_clean: bool
) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    for number in range(10):
        append(log, epoch=number // 3)
    log.close()
    path = tmp_path / "t-0" / "leader-epoch-checkpoint"
    if damage == "deleted":
        path.unlink()
    else:
        other = b"0\n2\n7 100\n9 200\n"
        path.write_bytes({"empty": b"", "garbage": b"\xff" * 9, "from another log": other}[damage])

    log = open_log(tmp_path / "t-0", CONFIG, is_clean=is_clean)

    assert log.epochs.entries() == [(0, 0), (1, 3), (2, 6), (3, 9)]


def test_an_epoch_keeps_its_beginning_though_compaction_took_its_first_batch(
    tmp_path: Path,
) -> None:
    config = replace(CONFIG, is_compacted=True)
    folder = crashed(tmp_path / "t-0", config=config)
    open_log(folder, config).close()
    change(log_file(folder, 4), 0, lambda rest: rest[2 * SIZE :])

    log = open_log(folder, config)

    assert offsets(log) == [0, 1, 2, 3, 6, 7, 8, 9]
    assert log.epochs.entries() == [(0, 0), (1, 5)]


def test_epochs_that_the_batches_contradict_are_corrected(tmp_path: Path) -> None:
    folder = crashed(tmp_path / "t-0")
    (folder / "leader-epoch-checkpoint").write_text("0\n3\n0 0\n3 2\n4 9\n")

    log = open_log(folder, CONFIG)

    assert log.epochs.entries() == [(0, 0), (1, 5)]


def test_any_bytes_in_place_of_a_log_end_in_a_log(tmp_path: Path) -> None:
    rng = random.Random(5)
    for number in range(50):
        folder = tmp_path / f"t-{number}"
        folder.mkdir()
        for base in (0, 40):
            size = rng.choice([0, 1, 60, 61, 500, 5_000])
            log_file(folder, base).write_bytes(rng.randbytes(size))
            (folder / f"{base:020}.index").write_bytes(rng.randbytes(rng.choice([0, 7, 80])))
            (folder / f"{base:020}.snapshot").write_bytes(rng.randbytes(rng.choice([0, 9, 80])))

        log = open_log(folder, is_clean=rng.random() < 0.5)

        assert log.end_offset in {0, 40}
        if log.damage is not None:
            log.drop_damage()
        append(log)
        assert len(content(log)) == SIZE
