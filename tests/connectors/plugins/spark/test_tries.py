"""Which failures of a job count, and when counting begins again."""

import pytest

from connectors.plugins.spark import engine, tries
from connectors.plugins.spark.tries import MAX_TRIES, Tries
from connectors.sdk.errors import ConnectorError, RetriableError
from tests.connectors.plugins.spark.test_engine import Py4JJavaError

pytestmark = pytest.mark.usefixtures("working")
AWAY = "wire.errors.Unreachable: no broker answers"


@pytest.fixture
def working(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that works, of a worker that has begun."""
    monkeypatch.setattr(tries, "FAILED", {})
    monkeypatch.setattr(engine, "spark", lambda: None)
    monkeypatch.setattr(engine, "has_session", lambda: True)
    monkeypatch.setattr(engine, "is_alive", lambda: True)


def fail(said: str, *, retries: int, times: int = 1) -> None:
    """Fail as a task does whose failures the framework counts from `retries` on."""
    for done in range(times):
        with pytest.raises(RetriableError), engine.batch(Tries("job", retries + done)):
            raise Py4JJavaError(said)


def test_failures_that_waiting_may_mend_bring_no_task_nearer_to_its_end() -> None:
    fail(AWAY, retries=0, times=3 * MAX_TRIES)

    fail("a failure", retries=3 * MAX_TRIES, times=MAX_TRIES)
    with pytest.raises(ConnectorError, match="Spark cannot do it") as ended:
        fail("a failure", retries=4 * MAX_TRIES)

    assert not isinstance(ended.value, RetriableError)


def test_a_batch_that_is_done_has_counting_begin_again() -> None:
    fail("a failure", retries=0, times=MAX_TRIES)

    # Within one slice, whose number of failures stands.
    with engine.batch(Tries("job", MAX_TRIES)):
        pass

    fail("a failure", retries=MAX_TRIES)


def test_a_restarted_task_begins_to_count_at_zero() -> None:
    fail("a failure", retries=0, times=MAX_TRIES)

    fail("a failure", retries=0, times=MAX_TRIES)


def test_jobs_are_counted_apart() -> None:
    fail("a failure", retries=0, times=MAX_TRIES)

    with pytest.raises(RetriableError), engine.batch(Tries("other", MAX_TRIES)):
        raise Py4JJavaError("a failure")
