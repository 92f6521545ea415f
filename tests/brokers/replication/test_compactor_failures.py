"""What fails in a cleaning costs the log nothing, and keeps no other log waiting."""

import asyncio
import errno
from pathlib import Path

import pytest

from brokers.disk_room import MIB, Room
from brokers.protocol.errors import KafkaError
from brokers.replication.compactor import MAX_FAILURES, Compactor, WorkerFailed
from brokers.storage.errors import StorageCorrupt
from tests.brokers.replication.compaction_bench import COMPACT, ROWS, bench, cleaning_under_way
from tests.brokers.replication.parts import image, topic, until
from tests.builders.cleaning import keyed, rows_of
from tests.builders.logs import NOW_MS
from tests.fakes.faulty_files import Fault, FaultyFiles


@pytest.mark.parametrize("is_refused", [True, False], ids=["refused", "failed"])
def test_a_log_that_cannot_be_cleaned_keeps_no_other_waiting(
    tmp_path: Path, *, is_refused: bool
) -> None:
    async def run() -> None:
        async with bench(tmp_path, {"t": COMPACT, "u": COMPACT}) as made:
            await made.fill()
            await made.fill(name="u")
            # There is room enough for one of them.
            first = WorkerFailed("no space left", is_refused=is_refused)
            made.worker.failures["t-0"] = made.worker.failures["u-0"] = first
            assert not await made.compactor.clean_next()
            (job,) = made.worker.jobs
            refused = Path(job.folder).name
            other = "u" if refused == "t-0" else "t"
            del made.worker.failures[f"{other}-0"]

            assert await made.compactor.clean_next()

            assert made.first_dirty(other) > 0
            # Its turn comes again.
            made.broker.manual.advance(15_000)
            assert not await made.compactor.clean_next()
            made.worker.failures.clear()
            made.broker.manual.advance(30_000)
            assert await made.compactor.clean_next()
            assert made.first_dirty(refused[0]) > 0

    asyncio.run(run())


def test_a_log_that_fails_three_times_is_left_alone(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path, {"t": COMPACT, "u": COMPACT}) as made:
            await made.fill()
            made.worker.failure = WorkerFailed("it ended with 1: a bad CRC")
            for _ in range(MAX_FAILURES):
                assert not await made.compactor.clean_next()
            assert made.counted.uncleanable_logs == 1
            events = [event for event, _error in made.broker.troubles]
            assert events == ["log.not_cleaned"] * MAX_FAILURES + ["log.uncleanable"]
            assert "3 times" in str(made.broker.troubles[-1][1])

            made.worker.failure = None
            assert not await made.compactor.clean_next()
            await made.fill(name="u")
            assert await made.compactor.clean_next()
            assert {Path(job.folder).name for job in made.worker.jobs[:-1]} == {"t-0"}

            # A log that is gone is not counted any more.
            await made.broker.apply(image(topic("u", id=2), version=2, configs={"u": COMPACT}))
            await made.compactor.clean_next()
            assert made.counted.uncleanable_logs == 0

    asyncio.run(run())


def test_a_success_forgets_failures(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as made:
            for _ in range(3):
                await made.fill(ROWS * 2)
                made.worker.failure = WorkerFailed("it ended with 1")
                assert not await made.compactor.clean_next()
                assert not await made.compactor.clean_next()
                made.worker.failure = None
                assert await made.compactor.clean_next()

    asyncio.run(run())


def test_a_worker_for_which_the_disk_was_full_may_come_again_for_ever(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as made:
            await made.fill()
            made.worker.failure = WorkerFailed("no space left", is_refused=True)
            for rest_ms in (100, 200, 400, 800, 1_600, 3_200):
                assert not await made.compactor.clean_next()
                tries = len(made.worker.jobs)
                made.broker.manual.advance(rest_ms - 1)
                assert not await made.compactor.clean_next()
                assert len(made.worker.jobs) == tries, "it rests"
                made.broker.manual.advance(2)
            assert made.counted.uncleanable_logs == 0

            made.worker.failure = None
            assert await made.compactor.clean_next()

    asyncio.run(run())


def test_nothing_is_cleaned_while_the_disk_is_full(tmp_path: Path) -> None:
    async def run() -> None:
        files = FaultyFiles()
        async with bench(tmp_path, files=files) as made:
            await made.fill()
            files.disk_room = Room(device=1, size_bytes=MIB, used_bytes=MIB, free_bytes=0)
            made.broker.replicas.log_dir.measure()

            assert not await made.compactor.clean_next()

            assert made.worker.jobs == []
            files.disk_room = None
            made.broker.replicas.log_dir.measure()
            assert await made.compactor.clean_next()

    asyncio.run(run())


def test_a_cleaning_of_a_part_of_a_log_goes_on_at_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as made:
            await made.fill()
            truth = made.values()
            made.worker.has_room_for_one = True
            assert await made.compactor.clean_next()
            assert made.first_dirty() == 0
            made.worker.has_room_for_one = False

            assert await made.compactor.clean_next()

            assert made.first_dirty() > 0
            assert made.values() == truth

    asyncio.run(run())


def test_a_result_that_is_none_is_a_failure_of_the_log(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as made:
            await made.fill()

            async def babble(_job: bytes) -> bytes:
                return b"{"

            babbling = Compactor(
                made.broker.replicas,
                clock=made.broker.clock,
                run_worker=babble,
                counts=made.counted,
            )
            for _ in range(MAX_FAILURES):
                assert not await babbling.clean_next()
            assert made.counted.uncleanable_logs == 1

    asyncio.run(run())


@pytest.mark.parametrize("at", range(12))
def test_a_disk_that_is_full_at_any_rename_of_a_swap_costs_nothing(tmp_path: Path, at: int) -> None:
    async def run() -> None:
        files = FaultyFiles()
        async with bench(tmp_path, files=files) as made:
            await made.fill()
            before = made.values()
            task = await cleaning_under_way(made)
            renames = frozenset({"rename"})
            files.plan(Fault(at=at, error=errno.ENOSPC, kinds=renames))
            made.worker.gate.set()
            assert not await task
            files.heal()
            assert made.values() == before
            made.broker.manual.advance(15_000)

            while await made.compactor.clean_next():
                pass

            assert made.values() == before
            assert made.counted.uncleanable_logs == 0
            assert made.broker.failures == []
            assert len(rows_of(made.leader().log)) < len(ROWS)

    asyncio.run(run())


def test_a_disk_that_fails_in_a_swap_ends_the_broker(tmp_path: Path) -> None:
    async def run() -> None:
        files = FaultyFiles()
        async with bench(tmp_path, files=files) as made:
            await made.fill()
            made.worker.gate.clear()
            task = asyncio.ensure_future(made.compactor.run())
            await until(lambda: len(made.worker.jobs) > 0)
            files.plan(Fault(at=0, error=errno.EIO, is_lasting=True))
            made.worker.gate.set()

            await task

            assert made.broker.failures
            with pytest.raises(KafkaError):
                made.leader().append(keyed(ROWS[0]), NOW_MS)

    asyncio.run(run())


def test_a_damaged_index_of_one_log_does_not_keep_others_from_being_cleaned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with bench(tmp_path, {"t": COMPACT, "u": COMPACT}) as made:
            await made.fill()
            await made.fill(name="u")
            broken = made.leader().log

            def refuse(_log: object, _now_ms: int) -> bool:
                if _log is broken:
                    raise StorageCorrupt("a path", 1, "a reason")
                return False

            monkeypatch.setattr(type(broken), "roll_overdue", refuse)

            assert await made.compactor.clean_next()

            assert [Path(job.folder).name for job in made.worker.jobs] == ["u-0"]
            assert [event for event, _ in made.broker.troubles] == ["log.not_cleaned"]

    asyncio.run(run())
