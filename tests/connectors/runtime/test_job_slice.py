"""A slice of a job, whose engine is a list of what each call of `run` does."""

from collections.abc import Callable, Sequence
from typing import Any

from connectors.runtime import slice as runtime_slice
from connectors.runtime.ports import Ending, SliceEnd, TaskSpec, Verdict
from connectors.sdk.configs import Definition
from connectors.sdk.connector import JobConnector, JobContext, JobTask, Parsed
from connectors.sdk.errors import RetriableError
from connectors.sdk.records import JobBatch, TopicPartition
from gateway.kafka.errors import failure
from tests.fakes.slice_ports import FakePorts

PLACE = TopicPartition(topic="orders", partition=0)
Step = Callable[[JobContext], bool]


def job(*steps: Step) -> type[JobConnector]:
    """Return a connector whose task does these one after the other, and then finds nothing."""
    left = list(steps)

    class Task(JobTask):
        def start(self, context: JobContext, parsed: Parsed) -> None:
            del parsed
            self._context = context

        def run(self) -> bool:
            return left.pop(0)(self._context) if left else False

        def stop(self) -> None:
            stops.append(len(left))

    class Job(JobConnector):
        name = "samsa.test.job"
        title = summary = "A job."
        pool = "spark"

        @classmethod
        def definition(cls) -> Definition:
            return Definition(())

        def task_configs(self, parsed: Parsed, *, max_tasks: int) -> list[dict[str, str]]:
            del parsed, max_tasks
            return [{}]

        def task(self) -> JobTask:
            return Task()

    stops: list[int] = []
    Job.stops = stops  # type: ignore[attr-defined]
    return Job


def run(plugin: type[JobConnector], fakes: FakePorts, **spec: Any) -> SliceEnd:
    return runtime_slice.run(TaskSpec(connector="c", plugin=plugin, **spec), fakes.ports)


def batch(offset: int, **counts: int) -> Step:
    def work(context: JobContext) -> bool:
        context.count(**counts)
        context.commit({PLACE: offset})
        return True

    return work


def fails(error: Exception) -> Step:
    def work(_context: JobContext) -> bool:
        raise error

    return work


def test_a_job_works_until_there_is_nothing_more_and_tells_its_group() -> None:
    fakes = FakePorts(Verdict.YIELD, orders=1)
    plugin = job(batch(10, read=10, written=9, dead=1))

    end = run(plugin, fakes)

    assert end.ending is Ending.IDLE
    assert fakes.wire.groups == {"connect-c": {PLACE: 10}}
    assert (end.figures["records_read"], end.figures["records_written"]) == (10, 9)
    assert (end.figures["dead_letters"], end.figures["commits"]) == (1, 1)
    assert end.topics == {"orders"}
    assert plugin.stops == [0]  # type: ignore[attr-defined]
    assert fakes.wire.closed == 1


def test_a_job_that_finds_nothing_looks_again_until_its_slice_is_over() -> None:
    fakes = FakePorts(orders=1)
    before = fakes.clock.monotonic()

    end = run(job(), fakes)

    assert end.ending is Ending.IDLE
    assert fakes.clock.monotonic() - before >= 29


def test_a_job_that_fails_for_now_is_tried_again_and_others_fail_with_the_trace() -> None:
    retried = run(job(batch(3), fails(RetriableError("the JVM has ended"))), FakePorts(orders=1))
    failed = run(job(fails(ValueError("no such column: x"))), FakePorts(orders=1))

    assert retried.ending is Ending.RETRY
    assert retried.wait_s > 0
    assert failed.ending is Ending.FAILED
    assert "no such column: x" in failed.trace


def test_nothing_is_told_to_the_group_by_a_task_with_another_owner() -> None:
    fakes = FakePorts(Verdict.KEEP, Verdict.LOST, orders=1)

    end = run(job(batch(10)), fakes)

    assert end.ending is Ending.LOST
    assert fakes.wire.groups == {}


def test_a_group_that_cannot_be_told_fails_no_job(monkeypatch: Any) -> None:
    fakes = FakePorts(Verdict.YIELD, orders=1)

    def refuse(*_: object) -> None:
        raise failure("REQUEST_TIMED_OUT", "group connect-c", "no answer")

    monkeypatch.setattr("tests.fakes.slice_ports.FakeInlet.commit", refuse)
    end = run(job(batch(10)), fakes)

    assert end.ending is Ending.IDLE
    assert lines(fakes)[0].startswith("the offsets could not be committed")


def lines(fakes: FakePorts) -> Sequence[str]:
    return [str(line[-1]) for line in fakes.log.lines]


def test_a_note_is_there_for_the_next_worker_and_not_for_a_former_owner() -> None:
    fakes = FakePorts(orders=1)
    notes = []

    def look(context: JobContext) -> bool:
        notes.append(context.note())
        context.keep_note({"most": 7})
        return False

    run(job(look), fakes)
    run(job(look), fakes)
    fakes.lease.verdicts = [Verdict.KEEP, Verdict.LOST]
    lost = run(job(look), fakes)

    assert notes[:2] == [None, {"most": 7}]
    assert lost.ending is Ending.LOST


def test_a_job_is_told_its_partitions_and_the_ids_of_topics_that_are_there() -> None:
    fakes = FakePorts(orders=2, other=1)
    found: list[Any] = []

    def look(context: JobContext) -> bool:
        found.extend([context.places(), context.topic_ids({"orders", "gone"})])
        return False

    run(job(look), fakes, config={"topics": "orders"})

    second = TopicPartition(topic="orders", partition=1)
    assert found[:2] == [[PLACE, second], {"orders": "orders"}]


def test_a_job_tells_its_last_batch() -> None:
    done = JobBatch(
        records=5, rows=4, read_s=0.1, write_s=0.2, waited_s=1.0, newest_ms=7, ended_ms=9
    )

    def work(context: JobContext) -> bool:
        context.note_batch(done)
        return False

    ports = FakePorts(Verdict.YIELD, orders=1).ports
    runtime_slice.run(TaskSpec(connector="c", plugin=job(work)), ports)

    assert ports.figures.batch() == done


def test_a_job_is_told_of_a_stop_and_not_of_the_end_of_its_slice() -> None:
    told = []

    def work(context: JobContext) -> bool:
        told.append(context.is_stopping)
        fakes.lease.verdicts = [Verdict.STOP]
        told.append(context.is_stopping)
        return True

    fakes = FakePorts(Verdict.YIELD, orders=1)
    end = run(job(work), fakes)

    assert told == [False, True]
    assert end.ending is Ending.STOPPED
