"""The queue of a SQLite file's writers: order, urgency, bounds, and writers that die."""

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.sqlite import turns
from gateway.sqlite.turns import Turn, TurnTimeout
from tests.gateway.sqlite.waiting import join_waiting_threads

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_S = 20.0
SHORT_S = 0.02
ALL = 4
# Four of these write without a pause until their input ends: each time one letter, its own.
WRITER = """
import sys, threading, time
from pathlib import Path
from gateway.sqlite.turns import Turn
database = Path(sys.argv[1])
counter = database.with_suffix(".count")
turn = Turn(database, is_urgent=False)
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
print("writes", flush=True)
while not ended.is_set():
    turn.take(20)
    with counter.open("ab") as file:
        file.write(sys.argv[2].encode())
    # As long as a small transaction on a quick disk.
    until = time.perf_counter() + 0.0005
    while time.perf_counter() < until:
        pass
    turn.give_back()
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "some.db"


@pytest.fixture
def make(database: Path) -> Iterator[Callable[..., Turn]]:
    made: list[Turn] = []

    def build(*, is_urgent: bool = False) -> Turn:
        made.append(Turn(database, is_urgent=is_urgent))
        return made[-1]

    yield build
    for turn in made:
        turn.close()
    join_waiting_threads()


class Taking(threading.Thread):
    """Takes a turn in a thread of its own and notes that it came."""

    def __init__(
        self,
        turn: Turn,
        label: str,
        database: Path,
        order: list[str],
        *,
        is_last: bool = False,
    ) -> None:
        super().__init__()
        self._is_last = is_last
        self._turn = turn
        self._label = label
        self._database = database
        self._order = order
        self.start()

    def run(self) -> None:
        self._turn.take(PATIENCE_S)
        self._order.append(self._label)
        # A transaction is long enough for the next ones to come to where they wait.
        if not self._is_last:
            until_blocked(self._database, ALL - len(self._order))
        self._turn.give_back()


def blocked_locks(database: Path) -> int:
    """Return how many locks on the files of a database are waited for in the kernel."""
    inodes = {
        str(Path(f"{database}{suffix}").stat().st_ino)
        for suffix in (turns.QUEUE_SUFFIX, turns.URGENT_SUFFIX, turns.WRITER_SUFFIX)
    }
    lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    return sum("->" in line and line.split(":")[-1].split()[0] in inodes for line in lines)


def until_blocked(database: Path, count: int) -> None:
    while blocked_locks(database) != count:
        os.sched_yield()


@pytest.mark.parametrize(
    ("last", "order"),
    [
        ("fourth", ["first", "second", "third", "fourth"]),
        ("urgent", ["first", "urgent", "second", "third"]),
    ],
)
def test_writers_go_in_the_order_of_asking_and_an_urgent_one_overtakes(
    make: Callable[..., Turn], database: Path, last: str, order: list[str]
) -> None:
    went: list[str] = []
    holder = make()
    holder.take(PATIENCE_S)
    waiting = []
    for place, label in enumerate(("first", "second", "third", last), start=1):
        waiting.append(Taking(make(is_urgent=label == "urgent"), label, database, went))
        until_blocked(database, place)

    holder.give_back()
    for taking in waiting:
        taking.join()

    assert went == order


def test_a_wait_is_bounded_and_names_the_file_and_its_holder(make: Callable[..., Turn]) -> None:
    holder, other = make(), make()
    holder.take(PATIENCE_S)

    with pytest.raises(TurnTimeout, match="database is locked") as timeout:
        other.take(SHORT_S)

    assert "some.db-writer" in str(timeout.value)
    assert f"process {os.getpid()}" in str(timeout.value)
    holder.give_back()
    other.take(PATIENCE_S)


def test_attempts_that_end_in_vain_leave_one_thread_that_waits(make: Callable[..., Turn]) -> None:
    holder, other = make(), make()
    holder.take(PATIENCE_S)
    before = threading.active_count()

    for _ in range(5):
        with pytest.raises(TurnTimeout):
            other.take(0)

    assert threading.active_count() == before + 1
    holder.give_back()
    other.take(PATIENCE_S)


def test_a_turn_that_comes_when_nobody_wants_it_any_more_goes_on(
    make: Callable[..., Turn],
) -> None:
    holder, gone, other = make(), make(), make()
    holder.take(PATIENCE_S)
    with pytest.raises(TurnTimeout):
        gone.take(0)
    gone.close()

    holder.give_back()

    other.take(PATIENCE_S)


@pytest.fixture
def one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one thread of this process wait in the kernel."""
    monkeypatch.setattr(turns._Wait, "_places", threading.Semaphore(1))  # noqa: SLF001


@pytest.mark.usefixtures("one_place")
def test_threads_that_wait_are_bounded(make: Callable[..., Turn]) -> None:
    holder, second, third = make(), make(), make()
    holder.take(PATIENCE_S)
    with pytest.raises(TurnTimeout, match="waited"):
        second.take(0)

    with pytest.raises(TurnTimeout, match="64 threads of this process wait"):
        third.take(SHORT_S)


@pytest.mark.usefixtures("one_place")
def test_a_writer_beyond_the_bound_waits_for_a_place_as_long_as_for_its_turn(
    make: Callable[..., Turn], database: Path
) -> None:
    went: list[str] = []
    holder = make()
    holder.take(PATIENCE_S)
    second = Taking(make(), "second", database, went, is_last=True)
    until_blocked(database, 1)
    third = Taking(make(), "third", database, went, is_last=True)

    holder.give_back()
    second.join()
    third.join()

    assert went == ["second", "third"]


def test_a_writer_that_cannot_wait_does_not_keep_the_head_of_the_queue(
    make: Callable[..., Turn], monkeypatch: pytest.MonkeyPatch
) -> None:
    holder, refused, other = make(), make(), make()
    holder.take(PATIENCE_S)
    with monkeypatch.context() as patched:
        patched.setattr(turns._Wait, "_places", threading.Semaphore(0))  # noqa: SLF001
        with pytest.raises(TurnTimeout, match="threads of this process wait"):
            refused.take(0)
    holder.give_back()

    other.take(SHORT_S)


def test_a_full_disk_takes_no_turn_hostage(
    make: Callable[..., Turn], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    turn, other = make(), make()

    turn.take(PATIENCE_S)
    turn.give_back()

    other.take(SHORT_S)


def test_a_turn_that_nobody_has_any_more_closes_its_files(database: Path) -> None:
    Turn(database, is_urgent=False).take(PATIENCE_S)

    other = Turn(database, is_urgent=False)
    other.take(SHORT_S)
    other.close()

    folder = Path("/proc/self/fd")
    opened = [os.readlink(file) for file in folder.iterdir() if file.is_symlink()]
    assert not [file for file in opened if file.startswith(str(database))]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_writer_that_is_root_leaves_the_files_to_the_owner_of_the_database(
    make: Callable[..., Turn], database: Path
) -> None:
    database.touch()
    os.chown(database, 65_534, 65_534)

    make().take(PATIENCE_S)

    files = [Path(f"{database}{suffix}") for suffix in ("-queue", "-urgent", "-writer")]
    assert {file.stat().st_uid for file in files} == {65_534}


def test_a_forked_child_does_not_share_its_parents_turn(
    make: Callable[..., Turn], monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = make()
    turn.take(PATIENCE_S)

    # What a child sees: the same objects, files that its parent has open too, another process id.
    assert turn._files is not None  # noqa: SLF001 - only a fork could show it otherwise
    of_parent = os.dup(turn._files.writer)  # noqa: SLF001
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(TurnTimeout):
        turn.take(SHORT_S)
    os.close(of_parent)


@pytest.mark.slow
def test_a_writer_that_is_killed_frees_its_turn(make: Callable[..., Turn], database: Path) -> None:
    program = WRITER.replace("    turn.give_back()", "    print('held', flush=True); input()")
    child = start(database, program, "a")
    assert child.stdout is not None
    assert child.stdout.readline() + child.stdout.readline() == "writes\nheld\n"

    child.kill()
    child.communicate()

    make().take(PATIENCE_S)


@pytest.mark.slow
def test_four_processes_share_evenly_and_an_urgent_writer_overtakes(
    make: Callable[..., Turn], database: Path
) -> None:
    counter = database.with_suffix(".count")
    writers = [start(database, WRITER, letter) for letter in "abcd"]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    urgent = make(is_urgent=True)
    waited: list[int] = []

    # All of them have begun.
    while not counter.exists() or len(set(counter.read_bytes())) < len(writers):
        os.sched_yield()
    begun = counter.stat().st_size
    while counter.stat().st_size < begun + 1000:
        asked = counter.stat().st_size
        urgent.take(PATIENCE_S)
        waited.append(counter.stat().st_size - asked)
        urgent.give_back()
        while counter.stat().st_size < asked + 20:
            os.sched_yield()
    for writer in writers:
        writer.kill()
        writer.communicate()
    written = counter.read_bytes()[begun:]
    shares = [written.count(letter.encode()) for letter in "abcd"]

    assert max(shares) <= 2 * min(shares), shares
    # The present writer and one other; what was written before it had asked is counted too.
    assert sorted(waited)[len(waited) // 2] <= 4, waited


def start(database: Path, program: str, letter: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", program, str(database), letter],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
