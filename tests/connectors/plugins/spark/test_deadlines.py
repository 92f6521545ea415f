"""A batch that takes too long is cancelled, and only that."""

import threading

import pytest

from connectors.plugins.spark.batch_size import BatchTooLarge
from connectors.plugins.spark.deadlines import BATCH_S, limited
from connectors.runtime.pools import SPARK, pool_of
from connectors.runtime.ports import SLICE_S


def be_cancelled(is_cancelled: threading.Event) -> None:
    assert is_cancelled.wait(30)
    raise OSError("Job 7 cancelled")


def test_a_batch_that_takes_too_long_is_ended_and_named_so() -> None:
    is_cancelled = threading.Event()

    with (
        pytest.raises(BatchTooLarge, match="did not write the batch within 0 s"),
        limited(is_cancelled.set, seconds=0.01),
    ):
        be_cancelled(is_cancelled)


def test_what_fails_in_time_fails_as_it_is() -> None:
    with pytest.raises(OSError, match="no space"), limited(lambda: None):
        raise OSError("no space")


def test_a_batch_that_is_done_in_the_last_moment_is_done() -> None:
    is_cancelled = threading.Event()

    with limited(is_cancelled.set, seconds=0.01):
        assert is_cancelled.wait(30)


def test_there_is_time_left_before_the_worker_is_ended() -> None:
    # What comes before a batch, and a minute for what follows it.
    assert pool_of(SPARK).hard_limit_s >= BATCH_S + SLICE_S + 60
