"""Series in memory and in the collector's file."""

import math
import sqlite3
import threading
from array import array
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from console.monitoring import samples as samples_module
from console.monitoring.rings import BLOCK_S, BLOCK_STEPS, KINDS, Finished, PartitionRing, Ring
from console.monitoring.samples import HOUR_S, Samples, SamplesFailed

HOUR = 1_700_000_000 // HOUR_S * HOUR_S
NAN = math.nan


Opener = Callable[..., Samples]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opener]:
    """Opens the file of this test, and closes it at the end."""
    files: list[Samples] = []

    def opener(**limits: int) -> Samples:
        files.append(Samples(tmp_path / "samples.db", **limits))
        return files[-1]

    yield opener
    for file in files:
        file.close()


def lag_block(start_s: int, lags: list[float], name: str = "billing") -> Finished:
    return Finished("group", (name,), start_s, (lags, [NAN] * len(lags)))


def lags_of(
    file: Samples, start_s: int, end_s: int, name: str = "billing"
) -> tuple[int, list[float]]:
    found = file.read("group", (name,), "lag", start_s=start_s, end_s=end_s)
    return found.step_s, found.samples


def rows(file: Samples, statement: str) -> list[tuple[int, ...]]:
    """What another program finds in the file, or changes."""
    with closing(sqlite3.connect(file.path)) as database, database:
        return database.execute(statement).fetchall()


def test_blocks_of_an_hour_lie_in_one_row_and_are_read_in_order(opened: Opener) -> None:
    file = opened()
    file.add([lag_block(HOUR, [float(n) for n in range(BLOCK_STEPS)])])
    file.add([lag_block(HOUR + BLOCK_S, [100.0] * BLOCK_STEPS)])

    step_s, found = lags_of(file, HOUR, HOUR + 2 * BLOCK_S)

    assert step_s == 10
    assert found == [*map(float, range(BLOCK_STEPS)), *[100.0] * BLOCK_STEPS]
    assert rows(file, "SELECT count(*) FROM samples") == [(2,)]


def test_a_gap_is_read_as_a_gap(opened: Opener) -> None:
    file = opened()
    file.add([lag_block(HOUR, [1.0] * BLOCK_STEPS)])
    file.add([lag_block(HOUR + 2 * BLOCK_S, [2.0] * BLOCK_STEPS)])

    _step, found = lags_of(file, HOUR, HOUR + 3 * BLOCK_S)

    assert [math.isnan(value) for value in found[BLOCK_STEPS : 2 * BLOCK_STEPS]] == [True] * 30
    assert found[-1] == 2.0


def test_longer_times_are_read_by_the_minute(opened: Opener) -> None:
    file = opened()
    file.add([lag_block(HOUR, [float(n) for n in range(BLOCK_STEPS)])])

    step_s, found = lags_of(file, HOUR, HOUR + 24 * HOUR_S)

    assert step_s == 60
    assert found[:5] == [2.5, 8.5, 14.5, 20.5, 26.5]


def test_what_is_too_old_is_deleted_and_the_finest_sooner(opened: Opener) -> None:
    file = opened()
    file.add([lag_block(HOUR, [1.0] * BLOCK_STEPS)])

    file.prune(HOUR + 8 * HOUR_S)
    assert lags_of(file, HOUR, HOUR + BLOCK_S) == (60, [1.0] * 5)

    file.prune(HOUR + 8 * 24 * HOUR_S)
    assert all(math.isnan(value) for value in lags_of(file, HOUR, HOUR + BLOCK_S)[1])
    assert rows(file, "SELECT count(*) FROM series") == [(0,)]


def test_a_full_file_gives_up_the_finest_first(opened: Opener) -> None:
    file = opened(max_bytes=400_000)
    for hour in range(4):
        start_s = HOUR + hour * HOUR_S
        noise = [float(n % 7) for n in range(BLOCK_STEPS)]
        file.add([lag_block(start_s, noise, f"group-{n}") for n in range(500)])
    assert file.used_bytes() > 400_000

    file.prune(HOUR + 4 * HOUR_S)

    assert file.used_bytes() <= 400_000
    found = rows(file, "SELECT step, count(DISTINCT hour) FROM samples GROUP BY step")
    hours = {step: number for step, number in found}  # noqa: C416 - `dict` takes no such tuples
    assert hours[60] == 4
    assert hours.get(10, 0) < 4


def test_a_damaged_file_is_set_aside_over_no_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "samples.db"
    for name in ("samples.db.damaged", "samples.db.damaged-2"):
        path.write_bytes(b"this is not a database, and long enough to be taken for one" * 100)
        file = Samples(path)

        file.open()

        assert "not a database" in file.set_aside
        assert name in file.set_aside
        assert path.with_name(name).read_bytes().startswith(b"this is not a database")
        assert file.add([lag_block(HOUR, [1.0])]) == 1
        file.close()


def test_a_file_that_another_program_holds_is_waited_for_and_kept(
    tmp_path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples_module, "LOCK_S", 0.0)
    opened().add([lag_block(HOUR, [1.0] * BLOCK_STEPS)])
    with closing(sqlite3.connect(tmp_path / "samples.db", isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        file = opened()

        file.open()

        with pytest.raises(SamplesFailed, match="locked"):
            file.add([lag_block(HOUR + BLOCK_S, [2.0] * BLOCK_STEPS)])
    file.add([lag_block(HOUR + BLOCK_S, [2.0] * BLOCK_STEPS)])
    assert file.set_aside == ""
    _step, found = lags_of(file, HOUR, HOUR + 2 * BLOCK_S)
    assert found == [1.0] * BLOCK_STEPS + [2.0] * BLOCK_STEPS


@pytest.mark.parametrize("code", ["SQLITE_FULL", "SQLITE_BUSY", "SQLITE_IOERR_SHMSIZE"])
def test_a_file_that_cannot_be_opened_now_is_opened_by_a_later_use(
    tmp_path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    opened().add([lag_block(HOUR, [1.0] * BLOCK_STEPS)])
    file = opened()
    refusal = sqlite3.OperationalError("not now")
    refusal.sqlite_errorcode = getattr(sqlite3, code)

    def refuse(*_place: object, **_options: object) -> sqlite3.Connection:
        raise refusal

    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", refuse)
        with pytest.raises(SamplesFailed, match="not now"):
            file.open()

    assert lags_of(file, HOUR, HOUR + BLOCK_S)[1] == [1.0] * BLOCK_STEPS
    assert file.set_aside == ""
    assert not list(tmp_path.glob("*.damaged*"))


def test_a_row_that_is_damaged_is_a_gap(opened: Opener) -> None:
    file = opened()
    file.add([lag_block(HOUR, [1.0] * BLOCK_STEPS)])
    rows(file, "UPDATE samples SET data = x'0000ffff01'")

    assert all(math.isnan(value) for value in lags_of(file, HOUR, HOUR + BLOCK_S)[1])


def test_series_are_there_again_after_a_restart(opened: Opener) -> None:
    file = opened()
    file.add([lag_block(HOUR, [1.0] * BLOCK_STEPS)])
    file.close()

    again = opened()
    again.add([lag_block(HOUR + BLOCK_S, [2.0] * BLOCK_STEPS)])

    assert lags_of(again, HOUR, HOUR + 2 * BLOCK_S)[1] == [1.0] * BLOCK_STEPS + [2.0] * BLOCK_STEPS


def test_a_ring_gives_its_block_with_the_moments_that_were_missed() -> None:
    ring = Ring(KINDS["group"])
    ring.block_s = HOUR
    ring.set(("a",), (5.0, 50.0))
    ring.sample(HOUR)
    ring.set(("a",), (6.0, 60.0))
    ring.set(("b",), (1.0, 10.0))
    ring.sample(HOUR + 20)

    assert str(ring.recent(("a",), 0)) == "[5.0, nan, 6.0]"
    assert str(ring.recent(("b",), 1)) == "[nan, nan, 10.0]"
    first, second = ring.finish().series()
    assert str(first.metrics) == "([5.0, nan, 6.0], [50.0, nan, 60.0])"
    assert str(second.metrics) == "([nan, nan, 1.0], [nan, nan, 10.0])"


def test_a_series_that_has_ended_leaves_the_ring_with_its_block() -> None:
    ring = Ring(KINDS["group"])
    for at_s, names in ((0, "ab"), (10, "b")):
        for name in names:
            ring.set((name,), (1.0, 1.0))
        ring.sample(at_s)

    assert str(ring.recent(("a",), 0)) == "[1.0, nan]"
    assert len(list(ring.finish().series())) == 2
    assert list(ring.slots) == [("b",)]
    ring.set(("b",), (3.0, 3.0))
    ring.sample(0)
    assert ring.recent(("b",), 0) == [3.0]


def test_partitions_have_their_rates_of_the_last_ten_minutes() -> None:
    ring = PartitionRing()
    for end in range(0, 70 * 50, 50):
        ring.sample(array("q", [end, 7]))
    ring.sample(array("q", [0, 17, 1_000]))

    assert len(ring.rates(0)) == 60
    assert ring.rates(0)[-2:] == [5.0, 0.0]
    assert ring.rates(1)[-1] == 1.0
    assert ring.rates(2) == [0.0]


def test_what_a_file_keeps_is_what_is_promised() -> None:
    assert samples_module.KEPT_S == {10: 6 * 3600, 60: 7 * 86_400}
    assert samples_module.MAX_BYTES == 2 * 1024**3


def test_closing_waits_for_a_call_whose_asker_has_gone(
    opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = opened()
    has_begun, may_end = threading.Event(), threading.Event()
    prune = file._prune  # noqa: SLF001

    def slow(now_s: int) -> None:
        has_begun.set()
        may_end.wait()
        prune(now_s)

    monkeypatch.setattr(file, "_prune", slow)
    left = threading.Thread(target=file.prune, args=(HOUR,))
    left.start()
    has_begun.wait()
    closing = threading.Thread(target=file.close)
    closing.start()
    # Closing has no way to say that it waits: a moment in which it could have ended.
    closing.join(0.05)
    is_waiting = closing.is_alive()
    may_end.set()
    closing.join()
    left.join()

    assert is_waiting
    with pytest.raises(SamplesFailed):
        file.prune(HOUR)
