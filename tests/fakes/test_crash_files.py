"""What a power loss may do to files, and what it never does."""

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.crash_files import CrashDisk, CrashFiles

NEW = os.O_RDWR | os.O_CREAT
SEEDS = 60

pytestmark = pytest.mark.slow


def after_power_loss(
    folder: Path, seed: int, program: Callable[[CrashFiles, str], None]
) -> dict[str, bytes | None]:
    """Every path that is there after the program ran and the power went; None for a folder."""
    disk = CrashDisk(folder)
    with disk.files() as files:
        program(files, str(disk.live))
    disk.lose_power(random.Random(seed))
    paths = sorted(disk.live.rglob("*"))
    return {
        str(path.relative_to(disk.live)): path.read_bytes() if path.is_file() else None
        for path in paths
    }


def create(files: CrashFiles, path: str, content: bytes, *, sync: bool = True) -> None:
    fd = files.open(path, NEW | os.O_TRUNC)
    files.write(fd, content)
    if sync:
        files.datasync(fd)
    files.close(fd)


def outcomes(
    folder: Path, program: Callable[[CrashFiles, str], None]
) -> list[dict[str, bytes | None]]:
    return [after_power_loss(folder, seed, program) for seed in range(SEEDS)]


def test_synced_bytes_with_a_synced_name_always_stay(tmp_path: Path) -> None:
    def program(files: CrashFiles, live: str) -> None:
        create(files, f"{live}/a", b"kept")
        files.sync_folder(live)

    assert all(left == {"a": b"kept"} for left in outcomes(tmp_path, program))


def test_a_name_that_was_not_synced_may_be_gone_with_all_its_bytes(tmp_path: Path) -> None:
    def program(files: CrashFiles, live: str) -> None:
        create(files, f"{live}/a", b"kept")

    results = outcomes(tmp_path, program)

    assert {} in results
    assert {"a": b"kept"} in results
    assert all(left in ({}, {"a": b"kept"}) for left in results)


def test_a_synced_name_may_come_without_its_bytes(tmp_path: Path) -> None:
    def program(files: CrashFiles, live: str) -> None:
        create(files, f"{live}/a", b"x" * 2_000, sync=False)
        files.sync_folder(live)

    contents = [left["a"] for left in outcomes(tmp_path, program)]

    assert b"" in contents
    assert b"x" * 2_000 in contents
    lengths = {len(content or b"") for content in contents}
    assert any(length % 512 for length in lengths)
    assert any(content and set(content) != {ord("x")} for content in contents)


def test_later_writes_never_touch_the_synced_bytes_before_them(tmp_path: Path) -> None:
    def program(files: CrashFiles, live: str) -> None:
        fd = files.open(f"{live}/a", NEW)
        files.write(fd, b"s" * 700)
        files.datasync(fd)
        files.sync_folder(live)
        for _ in range(4):
            files.write(fd, b"u" * 700)

    contents = [left["a"] or b"" for left in outcomes(tmp_path, program)]

    assert all(content[:700] == b"s" * 700 for content in contents)
    assert len({len(content) for content in contents}) > 3


def test_a_replaced_file_is_the_old_or_the_new_one_and_whole(tmp_path: Path) -> None:
    def program(files: CrashFiles, live: str) -> None:
        create(files, f"{live}/a", b"old")
        files.sync_folder(live)
        create(files, f"{live}/a.tmp", b"new")
        files.rename(f"{live}/a.tmp", f"{live}/a")

    contents = [left["a"] for left in outcomes(tmp_path, program)]

    assert set(contents) == {b"old", b"new"}


def test_a_replacement_without_a_sync_of_its_bytes_may_be_empty(tmp_path: Path) -> None:
    """The bug that the file layer exists to catch."""

    def program(files: CrashFiles, live: str) -> None:
        create(files, f"{live}/a", b"old")
        files.sync_folder(live)
        create(files, f"{live}/a.tmp", b"new", sync=False)
        files.rename(f"{live}/a.tmp", f"{live}/a")

    assert b"" in [left["a"] for left in outcomes(tmp_path, program)]


def test_a_removal_that_was_not_synced_may_be_undone(tmp_path: Path) -> None:
    def program(files: CrashFiles, live: str) -> None:
        create(files, f"{live}/a", b"data")
        files.sync_folder(live)
        files.unlink(f"{live}/a")

    results = outcomes(tmp_path, program)

    assert {} in results
    assert {"a": b"data"} in results


def test_names_are_undone_in_order(tmp_path: Path) -> None:
    def program(files: CrashFiles, live: str) -> None:
        for name in "abc":
            create(files, f"{live}/{name}", b"")

    results = [tuple(left) for left in outcomes(tmp_path, program)]

    assert set(results) == {(), ("a",), ("a", "b"), ("a", "b", "c")}


def test_a_truncation_is_there_or_not_but_never_half(tmp_path: Path) -> None:
    def program(files: CrashFiles, live: str) -> None:
        fd = files.open(f"{live}/a", NEW)
        files.write(fd, b"o" * 1_000)
        files.datasync(fd)
        files.sync_folder(live)
        files.truncate(fd, 100)
        files.seek(fd, 100)
        files.write(fd, b"n" * 100)

    contents = [left["a"] or b"" for left in outcomes(tmp_path, program)]

    assert b"o" * 1_000 in contents
    assert b"o" * 100 + b"n" * 100 in contents
    for content in contents:
        assert content == b"o" * 1_000 or content[:100] == b"o" * 100
        assert len(content) <= 200 or content == b"o" * 1_000


def test_a_folder_that_was_not_synced_vanishes_with_its_files(tmp_path: Path) -> None:
    def program(files: CrashFiles, live: str) -> None:
        files.make_folder(f"{live}/t-0")
        create(files, f"{live}/t-0/a", b"data")
        files.sync_folder(f"{live}/t-0")

    results = outcomes(tmp_path, program)

    assert {} in results
    assert {"t-0": None, "t-0/a": b"data"} in results


def test_a_renamed_folder_keeps_what_was_synced_in_it(tmp_path: Path) -> None:
    def program(files: CrashFiles, live: str) -> None:
        files.make_folder(f"{live}/t-0")
        files.sync_folder(live)
        create(files, f"{live}/t-0/a", b"data")
        files.sync_folder(f"{live}/t-0")
        files.rename(f"{live}/t-0", f"{live}/t-0.deleted")

    results = outcomes(tmp_path, program)

    assert {"t-0": None, "t-0/a": b"data"} in results
    assert {"t-0.deleted": None, "t-0.deleted/a": b"data"} in results
    assert all(len(left) == 2 for left in results)


def test_a_killed_process_loses_nothing(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    with disk.files() as files:
        create(files, f"{disk.live}/a", b"unsynced", sync=False)

    disk.kill()

    assert (disk.live / "a").read_bytes() == b"unsynced"


def test_losses_add_up_over_several_power_failures(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    rng = random.Random(5)
    for number in range(10):
        with disk.files() as files:
            create(files, f"{disk.live}/{number}", bytes([number]))
            files.sync_folder(str(disk.live))
            create(files, f"{disk.live}/unsynced", b"?", sync=False)
        disk.lose_power(rng)

    names = {path.name for path in disk.live.iterdir()} - {"unsynced"}
    assert names == {str(number) for number in range(10)}


def test_a_child_that_is_killed_leaves_a_journal_that_can_be_replayed(tmp_path: Path) -> None:
    program = """
import sys, os
from tests.fakes.crash_files import CrashFiles
files = CrashFiles(sys.argv[1], sys.argv[2])
fd = files.open(sys.argv[1] + "/a", os.O_RDWR | os.O_CREAT)
files.sync_folder(sys.argv[1])
while True:
    files.write(fd, b"0123456789")
    files.datasync(fd)
    print(files.size(fd), flush=True)
"""
    disk = CrashDisk(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", program, str(disk.live), str(disk.journal)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        for _ in range(50):
            child.stdout.readline()
        child.kill()
        told = [int(line) for line in child.stdout]

    disk.lose_power(random.Random(1))

    assert (disk.live / "a").stat().st_size >= max(told, default=500)
