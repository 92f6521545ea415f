"""Which log is cleaned when, and that only a result for the log as it is now counts."""

import asyncio
from pathlib import Path

import pytest

from brokers.clock import SystemClock
from brokers.replication.compactor import Compactor
from brokers.server.metrics import Metrics
from brokers.storage.log import PartitionLog
from brokers.storage.segment import NOT_READ
from tests.brokers.replication.compaction_bench import (
    COMPACT,
    HOUR,
    ROWS,
    Bench,
    Worker,
    bench,
    cleaning_under_way,
)
from tests.brokers.replication.parts import OTHER, image, rig, topic, until
from tests.builders.cleaning import keyed, rows_of
from tests.builders.logs import NOW_MS, files_of


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
