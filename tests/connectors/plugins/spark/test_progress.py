"""What a job remembers around a batch, however that ends."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from connectors.plugins.spark import attempts, engine
from connectors.plugins.spark.batch_size import MAX_ENDS, BatchTooLarge
from connectors.plugins.spark.batches import Batch, Span, State
from connectors.plugins.spark.keys import BATCH_ROWS, BATCH_WAIT
from connectors.plugins.spark.pacing import Pacing
from connectors.plugins.spark.progress import Progress
from connectors.runtime.job_slice import JobTaskContext
from connectors.runtime.ports import LeaseLost, TaskSpec, Verdict
from connectors.runtime.turn import Turn
from connectors.sdk.errors import ConnectorError, RetriableError
from connectors.sdk.records import TopicPartition
from tests.connectors.runtime.test_job_slice import job
from tests.fakes.slice_ports import FakePorts

A = TopicPartition(topic="orders", partition=0)
ROWS = 1000
PATIENCE = 20


class Job:
    """The progress of one job over a cluster in memory, and what was kept of it last."""

    def __init__(self, state: State) -> None:
        self.fakes = FakePorts(orders=1)
        self.fakes.wire.add("orders", *[b"x"] * 2000)
        spec = TaskSpec(connector="c", plugin=job(), config={"topics": "orders"})
        context = JobTaskContext(Turn(spec, self.fakes.ports))
        self.kept = state
        self.noted_stop = threading.Event()
        pacing = Pacing({}, {BATCH_ROWS: ROWS, BATCH_WAIT: 0})
        self.progress = Progress(context, pacing, state, self._keep)

    def _keep(self, state: State) -> None:
        self.kept = state
        if state.batch is not None and not state.batch.is_begun:
            self.noted_stop.set()

    def batch(self) -> Batch:
        assert self.kept.batch is not None
        return self.kept.batch

    def lines(self) -> list[str]:
        return [text for _, text in self.fakes.log.lines]


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def batch(_retries: int) -> Iterator[None]:
        yield

    monkeypatch.setattr(engine, "batch", batch)


def pending(size: int, *, is_begun: bool = False) -> State:
    return State(
        app="app",
        next={A: 0},
        topics={"orders": "orders"},
        batch=Batch(spans=(Span(place=A, start=0, end=size),), is_begun=is_begun),
    )


def test_a_batch_is_noted_as_begun_before_spark_is_asked() -> None:
    job_ = Job(pending(100))

    with job_.progress.attempt(job_.batch()):
        assert job_.batch().is_begun


@pytest.mark.parametrize("size", [1000, 4])
def test_one_that_was_too_large_is_smaller_for_whoever_goes_on(size: int) -> None:
    job_ = Job(pending(size))

    with pytest.raises(BatchTooLarge), job_.progress.attempt(job_.batch()):
        raise BatchTooLarge("Spark has run out of memory")

    assert (job_.batch().size, job_.batch().is_begun, job_.kept.most) == (
        size // 4,
        False,
        size // 4,
    )
    assert job_.lines()[-1].startswith("Spark has run out of memory: it had")


def test_one_that_ended_its_worker_is_smaller_when_the_next_one_finds_it() -> None:
    job_ = Job(pending(1000, is_begun=True))

    job_.progress.settle()

    assert job_.batch().size == 250
    assert "the worker's process ended" in job_.lines()[-1]


def test_one_that_failed_otherwise_keeps_its_size() -> None:
    job_ = Job(pending(1000))

    with pytest.raises(RetriableError), job_.progress.attempt(job_.batch()):
        raise RetriableError("a broker is away")
    job_.progress.settle()

    assert (job_.batch().size, job_.batch().is_begun) == (1000, False)


def test_a_batch_that_a_stop_of_the_home_interrupted_keeps_its_size() -> None:
    former = pending(1000, is_begun=True)
    assert former.batch is not None
    job_ = Job(replace(former, batch=replace(former.batch, begun_by="a former run")))

    job_.progress.settle()

    assert (job_.batch().size, job_.batch().is_begun, job_.batch().spared) == (1000, False, 1)
    assert "the home was stopped or lost its host" in job_.lines()[-1]


def test_three_stops_of_the_home_with_one_record_do_not_end_the_task() -> None:
    job_ = Job(pending(1))
    for run in range(MAX_ENDS + 2):
        found = replace(job_.batch(), is_begun=True, begun_by=f"run {run}")
        job_.progress.state = replace(job_.kept, batch=found)
        job_.progress.settle()

    assert (job_.kept.ends, job_.batch().is_begun) == (0, False)


def test_a_worker_that_is_told_to_stop_notes_that_the_batch_does_not_end_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attempts, "LOOK_S", 0.001)
    job_ = Job(pending(1000))

    with job_.progress.attempt(job_.batch()):
        assert job_.batch().is_begun
        job_.fakes.lease.verdicts = [Verdict.STOP]
        assert job_.noted_stop.wait(PATIENCE)

    # As the next worker finds it, had this one been killed.
    after = Job(job_.kept)
    after.progress.settle()
    assert after.batch().size == 1000


def lose_and_fail(job_: Job) -> None:
    job_.fakes.lease.verdicts = [Verdict.LOST]
    raise RetriableError("the database is away")


def test_a_worker_that_lost_its_lease_and_gets_it_back_keeps_the_size() -> None:
    job_ = Job(pending(1000))
    with pytest.raises(RetriableError), job_.progress.attempt(job_.batch()):
        lose_and_fail(job_)
    assert job_.batch().is_begun

    again = Job(job_.kept)
    again.progress.settle()

    assert (again.batch().size, again.batch().is_begun) == (1000, False)


def lose(job_: Job) -> None:
    job_.fakes.lease.verdicts = [Verdict.LOST]
    raise BatchTooLarge("Spark has run out of memory")


def test_a_worker_without_its_lease_notes_nothing() -> None:
    job_ = Job(pending(1000))

    with pytest.raises(LeaseLost), job_.progress.attempt(job_.batch()):
        lose(job_)

    assert job_.batch().size == 1000


def test_one_record_that_never_fits_fails_and_is_tried_again_after_a_restart() -> None:
    job_ = Job(pending(1))
    for _ in range(MAX_ENDS - 1):
        with pytest.raises(BatchTooLarge), job_.progress.attempt(job_.batch()):
            raise BatchTooLarge("Spark has run out of memory")

    with (
        pytest.raises(ConnectorError, match="3 times with the one record at orders"),
        job_.progress.attempt(job_.batch()),
    ):
        raise BatchTooLarge("Spark has run out of memory")
    assert (job_.kept.ends, job_.batch().is_begun) == (0, False)


def test_the_next_batch_is_as_large_as_was_learned_and_does_not_wait_to_be_larger() -> None:
    job_ = Job(replace(pending(1), batch=None, most=10))

    planned = job_.progress.plan()

    assert planned.batch is not None
    assert planned.batch.size == 10
    job_.progress.keep(planned)
    assert job_.progress.done().most == 11


def test_a_job_that_has_read_all_asks_for_no_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    job_ = Job(replace(pending(1), batch=None, next={A: 2000}))
    monkeypatch.setattr(job_.fakes.wire, "topic_ids", None)

    assert job_.progress.is_idle()
    job_.fakes.wire.add("orders", b"x")
    assert not job_.progress.is_idle()
