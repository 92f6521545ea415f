"""Which log is cleaned when, and that only a result for the log as it is now counts."""

import asyncio
import errno
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from brokers.clock import SystemClock
from brokers.protocol.errors import KafkaError
from brokers.replication.compactor import MAX_FAILURES, Compactor, WorkerFailed
from brokers.replication.partition import Partition
from brokers.server.metrics import Metrics
from brokers.storage.clean_worker import decode_job, encode_result
from brokers.storage.cleaning import Job, clean
from brokers.storage.errors import StorageCorrupt, StorageError
from brokers.storage.files import Files, LocalFiles
from brokers.storage.log import PartitionLog
from brokers.storage.segment import NOT_READ
from tests.brokers.replication.parts import OTHER, Rig, image, rig, topic, until
from tests.builders.cleaning import keyed, latest, rows_of
from tests.builders.logs import NOW_MS, files_of
from tests.fakes.faulty_files import Fault, FaultyFiles

HOUR = 3_600_000
COMPACT = {"cleanup.policy": "compact", "internal.segment.bytes": "600"}
ROWS = [(b"k%d" % (number % 5), b"%d" % number + b"v" * 40) for number in range(40)]


class Worker:
    """A process that cleans, without the process: held back or failing when a test says so."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: WorkerFailed | None = None
        self.failures: dict[str, WorkerFailed] = {}  # by folder
        self.cancelled = 0

    async def run(self, job: bytes) -> bytes:
        self.jobs.append(decode_job(job))
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if failure := self.failures.get(Path(self.jobs[-1].folder).name, self.failure):
            raise failure
        try:
            return encode_result(clean(LocalFiles(), self.jobs[-1]))
        except (OSError, StorageError) as error:
            raise WorkerFailed(f"it ended with 1: {error}") from error


@dataclass
class Bench:
    """A broker's logs with a compactor over them."""

    broker: Rig
    worker: Worker
    counted: Metrics
    compactor: Compactor

    def leader(self, name: str = "t") -> Partition:
        return self.broker.leader(name)

    async def fill(
        self, rows: Sequence[tuple[bytes, bytes | None]] = ROWS, name: str = "t"
    ) -> None:
        partition = self.leader(name)
        for row in rows:
            partition.append(keyed(row, timestamp=self.broker.clock.now_ms()), NOW_MS)
        end = partition.log.end_offset
        await until(lambda: partition.high_watermark == end)

    def first_dirty(self, name: str = "t") -> int:
        return self.broker.replicas.log_dir.first_dirty((name, 0))

    def values(self, name: str = "t") -> dict[bytes | None, bytes]:
        return latest(rows_of(self.leader(name).log))


@asynccontextmanager
async def bench(
    folder: Path,
    configs: dict[str, dict[str, str]] | None = None,
    files: Files | None = None,
) -> AsyncIterator[Bench]:
    configs = configs or {"t": COMPACT}
    topics = [topic(name, id=number) for number, name in enumerate(configs, 1)]
    async with rig(folder, image(*topics, configs=configs), files=files) as broker:
        worker, counted = Worker(), Metrics()
        compactor = Compactor(
            broker.replicas,
            clock=broker.clock,
            run_worker=worker.run,
            counts=counted,
            backoff_seconds=0,
        )
        yield Bench(broker, worker, counted, compactor)


def test_a_dirty_log_is_cleaned_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as made:
            await made.fill()
            before, size = made.values(), made.leader().log.size_bytes

            assert await made.compactor.clean_next()
            assert not await made.compactor.clean_next()

            log = made.leader().log
            assert made.values() == before
            assert log.size_bytes < size / 2
            assert made.counted.cleaned_bytes == size - log.size_bytes
            assert made.first_dirty() == log.segments.active.base_offset
            assert not [name for name in files_of(log) if "cleaned" in name or "swap" in name]
            assert len(made.worker.jobs) == 1
            assert made.broker.troubles == []

    asyncio.run(run())


@pytest.mark.parametrize(
    "configs",
    [
        {"cleanup.policy": "delete"},
        {"cleanup.policy": "compact,delete"},
        {"cleanup.policy": ""},
        {"cleanup.policy": "compact", "min.compaction.lag.ms": str(HOUR)},
    ],
)
def test_nothing_is_due_where_nothing_asks_for_it(tmp_path: Path, configs: dict[str, str]) -> None:
    async def run() -> None:
        async with bench(tmp_path, {"t": {**COMPACT, **configs}}) as made:
            await made.fill()

            assert not await made.compactor.clean_next()

            assert made.worker.jobs == []

    asyncio.run(run())


def test_a_log_waits_until_enough_of_it_is_dirty_and_the_dirtiest_is_first(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path, {"t": COMPACT, "u": COMPACT}) as made:
            await made.fill()
            await made.fill(name="u")
            assert await made.compactor.clean_next()
            assert await made.compactor.clean_next()
            await made.fill(ROWS[:12])
            await made.fill(ROWS * 3, name="u")

            assert await made.compactor.clean_next()
            assert await made.compactor.clean_next()

            assert [Path(job.folder).name for job in made.worker.jobs[2:]] == ["u-0", "t-0"]

    asyncio.run(run())


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
            assert not await made.compactor.clean_next()
            made.worker.failures.clear()
            assert await made.compactor.clean_next()
            assert made.first_dirty(refused[0]) > 0

    asyncio.run(run())


def test_a_plan_reads_nothing_that_could_be_read_in_slices_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        configs = {"t": {**COMPACT, "min.compaction.lag.ms": "1000"}}
        async with bench(tmp_path, configs) as made:
            await made.fill()
            made.broker.manual.advance(HOUR)
            segments = made.leader().log.segments
            for segment in list(segments)[:-1]:
                segment.max_timestamp = NOT_READ  # as after a start
            unread: list[int] = []

            def planned(_log: PartitionLog, **_how: object) -> None:
                unread.append(sum(one.max_timestamp == NOT_READ for one in segments))

            monkeypatch.setattr(PartitionLog, "cleaning", planned)
            assert not await made.compactor.clean_next()

            assert unread == [0]

    asyncio.run(run())


def test_a_little_dirt_waits_for_more(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path, {"t": {**COMPACT, "min.cleanable.dirty.ratio": "0.9"}}) as made:
            await made.fill()
            assert await made.compactor.clean_next()
            await made.fill(ROWS[:20])

            assert not await made.compactor.clean_next()

            await made.fill(ROWS * 4)
            assert await made.compactor.clean_next()

    asyncio.run(run())


def test_old_records_are_cleaned_though_the_segment_was_never_full(tmp_path: Path) -> None:
    async def run() -> None:
        lag = {"max.compaction.lag.ms": str(HOUR), "internal.segment.bytes": "1000000"}
        async with bench(tmp_path, {"t": {**COMPACT, **lag}}) as made:
            await made.fill()
            made.broker.manual.advance(HOUR)
            assert not await made.compactor.clean_next()
            made.broker.manual.advance(1)

            assert await made.compactor.clean_next()

            assert made.first_dirty() == len(ROWS)
            assert len(rows_of(made.leader().log)) == 5
            # Not even an hour later is there anything to do.
            made.broker.manual.advance(2 * HOUR)
            assert not await made.compactor.clean_next()

    asyncio.run(run())


def test_a_tombstone_goes_when_its_time_is_over_without_a_further_write(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path, {"t": {**COMPACT, "delete.retention.ms": str(HOUR)}}) as made:
            await made.fill([(b"gone", b"v"), (b"gone", None), *ROWS])
            assert await made.compactor.clean_next()
            assert any(row.key == b"gone" for row in rows_of(made.leader().log))
            made.broker.manual.advance(HOUR - 1)
            assert not await made.compactor.clean_next()
            made.broker.manual.advance(1)

            assert await made.compactor.clean_next()

            assert not any(row.key == b"gone" for row in rows_of(made.leader().log))
            assert not await made.compactor.clean_next()

    asyncio.run(run())


async def cleaning_under_way(made: Bench) -> "asyncio.Task[bool]":
    made.worker.gate.clear()
    task = asyncio.ensure_future(made.compactor.clean_next())
    await until(lambda: len(made.worker.jobs) > 0)
    return task


def leftovers(folder: Path) -> list[Path]:
    return [*folder.rglob("*.cleaned"), *folder.rglob("*.swap")]


def test_the_worker_of_a_deleted_topic_is_stopped(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as made:
            await made.fill()
            task = await cleaning_under_way(made)

            await made.broker.apply(image(version=2, deleted=[1]))

            assert not await task
            assert made.worker.cancelled == 1
            assert made.broker.troubles == []

    asyncio.run(run())


def test_a_topic_made_anew_under_the_same_name_gets_nothing_of_the_old_one(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as made:
            await made.fill()
            task = await cleaning_under_way(made)

            again = image(topic(id=2), version=2, deleted=[1], configs={"t": COMPACT})
            await made.broker.apply(again)
            made.worker.gate.set()

            assert not await task
            await made.fill(ROWS[:3])
            assert len(rows_of(made.leader().log)) == 3
            assert not leftovers(tmp_path)

    asyncio.run(run())


def test_a_partition_that_is_led_elsewhere_is_left_as_it_was(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as made:
            await made.fill()
            log, size = made.leader().log, made.leader().log.size_bytes
            task = await cleaning_under_way(made)

            await made.broker.apply(image(topic(leader=OTHER), version=2, configs={"t": COMPACT}))

            assert not await task
            assert log.size_bytes == size
            assert not leftovers(tmp_path)

    asyncio.run(run())


def test_a_topic_that_is_not_compacted_any_more_keeps_what_it_has(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as made:
            await made.fill()
            size = made.leader().log.size_bytes
            task = await cleaning_under_way(made)

            await made.broker.apply(image(topic(), version=2))
            made.worker.gate.set()

            assert not await task
            assert made.leader().log.size_bytes == size
            assert not leftovers(tmp_path)

    asyncio.run(run())


def test_a_log_that_was_cut_meanwhile_forgets_the_result(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as made:
            await made.fill()
            task = await cleaning_under_way(made)

            made.broker.replicas.log_dir.truncate_to({("t", 0): 30})
            left = made.values()
            made.worker.gate.set()

            assert not await task
            assert made.values() == left
            assert made.first_dirty() == 0
            assert not leftovers(tmp_path)

    asyncio.run(run())


def test_a_log_whose_segments_went_away_meanwhile_forgets_the_result(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as made:
            await made.fill()
            task = await cleaning_under_way(made)

            made.leader().delete_before(20)
            assert made.leader().log.delete_old_segments(NOW_MS)
            served = rows_of(made.leader().log)
            made.worker.gate.set()

            assert not await task
            assert rows_of(made.leader().log) == served
            assert not leftovers(tmp_path)
            assert made.broker.troubles == []
            assert await made.compactor.clean_next()

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
            for _ in range(2 * MAX_FAILURES):
                assert not await made.compactor.clean_next()
            assert made.counted.uncleanable_logs == 0

            made.worker.failure = None
            assert await made.compactor.clean_next()

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


def test_stopped_in_the_middle_it_stops_the_worker_and_the_log_can_be_closed(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with bench(tmp_path) as made:
            await made.fill()
            before, task = made.values(), await cleaning_under_way(made)

            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

            assert made.worker.cancelled == 1
            assert made.values() == before
            assert await made.broker.replicas.close(broker_epoch=1)

    asyncio.run(run())


def test_stopped_within_a_swap_the_swap_is_finished_before_the_log_closes(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as made:
            await made.fill()
            task = await cleaning_under_way(made)
            made.worker.gate.set()
            await until(lambda: made.broker.replicas.flusher.running > 0)

            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

            assert await made.broker.replicas.close(broker_epoch=1)
            # Groups that were not begun are dropped by the next start.
            assert not [path for path in leftovers(tmp_path) if path.suffix == ".swap"]

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


def test_cleanings_outlive_a_broker_that_nobody_writes_to(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as made:
            await made.fill()
            assert await made.compactor.clean_next()

            made.broker.replicas.log_dir.write_cleaned()

            said = (tmp_path / "cleaner-offset-checkpoint").read_text()
            assert f"t 0 {made.first_dirty()}" in said

    asyncio.run(run())


def test_readers_go_on_before_within_and_after_a_swap(tmp_path: Path) -> None:
    async def run() -> None:
        async with bench(tmp_path) as made:
            await made.fill()
            partition = made.leader()
            task = await cleaning_under_way(made)
            held = partition.read(0, 500, min_one_batch=True)
            expected = held.read(partition.log.handles.files)
            made.worker.gate.set()

            while not task.done():
                for offset in (0, 13, partition.log.end_offset - 1):
                    piece = partition.read(offset, 300, min_one_batch=True)
                    assert partition.content(piece)
                    piece.release()
                await asyncio.sleep(0)

            assert await task
            assert held.read(partition.log.handles.files) == expected
            held.release()

    asyncio.run(run())


def test_the_clock_of_a_broker_counts_the_time_of_workers(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(
            tmp_path, image(topic(), configs={"t": COMPACT}), clock=SystemClock()
        ) as broker:
            counted, worker = Metrics(), Worker()
            compactor = Compactor(
                broker.replicas, clock=broker.clock, run_worker=worker.run, counts=counted
            )
            made = Bench(broker, worker, counted, compactor)
            for row in ROWS:
                made.leader().append(keyed(row), NOW_MS)
            await until(lambda: made.leader().high_watermark == len(ROWS))
            await compactor.clean_next()

            assert 0 < counted.cleaner_seconds < 60

    asyncio.run(run())
