"""What errors of Spark mean for a batch, here and on a server, without a Spark."""

from pathlib import Path
from typing import Any, NoReturn

import pytest

from connectors.plugins.spark import engine
from connectors.plugins.spark.batch_size import BatchTooLarge
from connectors.plugins.spark.tries import FAILED, MAX_TRIES, Tries
from connectors.sdk.errors import ConnectorError, RetriableError
from spark_integration.jobs.errors import SparkNotStarted, SparkRefused
from tests.spark_integration.jobs.test_faults import Code, SparkError

TOKEN = "of-this-test"  # noqa: S105 (it is none)


class Py4JJavaError(Exception):
    """As the bridge's, by its place and name."""


class Py4JNetworkError(Exception):
    """As what the bridge raises when Java does not answer."""


Py4JJavaError.__module__ = Py4JNetworkError.__module__ = "py4j.protocol"


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A session that works; how often it was closed."""
    found: list[bool] = []
    monkeypatch.setattr(engine, "spark", lambda: None)
    monkeypatch.setattr(engine, "has_session", lambda: True)
    monkeypatch.setattr(engine, "is_alive", lambda: True)
    monkeypatch.setattr(engine, "exit_code", lambda _: None)
    monkeypatch.setattr(engine, "close_session", lambda: found.append(True))
    return found


def tried(times: int) -> Tries:
    """Return the tries of a job that has failed so often."""
    FAILED["test"] = times
    return Tries("test", times)


def end(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    monkeypatch.setattr(engine, "is_alive", lambda: False)
    monkeypatch.setattr(engine, "exit_code", lambda _: code)


@pytest.mark.usefixtures("closed")
def test_a_java_process_that_ran_out_of_memory_is_told_by_that_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    end(monkeypatch, 52)

    with (
        pytest.raises(BatchTooLarge, match=r"ran out of memory \(java\.lang\.OutOfMemoryError\)"),
        engine.batch(tried(0)),
    ):
        raise Py4JJavaError("Error while sending or receiving")


def test_a_java_process_that_is_about_to_end_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, closed: list[bool]
) -> None:
    monkeypatch.setattr(engine, "exit_code", lambda wait_s: 52 if wait_s else None)

    with pytest.raises(BatchTooLarge, match="OutOfMemoryError"), engine.batch(tried(0)):
        raise Py4JNetworkError("Error while sending or receiving")

    assert closed == [True]


def test_lack_of_memory_on_the_driver_has_the_session_replaced(closed: list[bool]) -> None:
    with pytest.raises(BatchTooLarge, match="SAMSA_SPARK_MEMORY"), engine.batch(tried(0)):
        raise Py4JJavaError(": java.lang.OutOfMemoryError: Java heap space")

    assert closed == [True]


def test_any_other_error_of_spark_is_tried_again_as_it_is(closed: list[bool]) -> None:
    with pytest.raises(RetriableError, match="Spark failed") as failed, engine.batch(tried(0)):
        raise Py4JJavaError("a broker is away")

    assert not isinstance(failed.value, BatchTooLarge)
    assert closed == []


@pytest.mark.usefixtures("closed")
def test_a_batch_goes_on_to_shrink_however_often_it_has_ended_spark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    end(monkeypatch, -9)

    with pytest.raises(BatchTooLarge, match="killed"), engine.batch(tried(MAX_TRIES + 1)):
        raise Py4JJavaError("Error while sending or receiving")


@pytest.mark.usefixtures("closed")
def test_a_session_that_cannot_be_made_is_no_matter_of_the_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> Any:
        raise Py4JJavaError("Java gateway process exited before sending its port number")

    monkeypatch.setattr(engine, "spark", fail)
    end(monkeypatch, 1)

    with pytest.raises(RetriableError) as failed, engine.batch(tried(0)):
        pass
    assert not isinstance(failed.value, BatchTooLarge)
    with pytest.raises(ConnectorError, match="SAMSA_SPARK_MEMORY"), engine.batch(tried(MAX_TRIES)):
        pass


def test_without_a_session_no_java_process_is_said_to_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "has_session", lambda: False)

    found = meaning(Py4JJavaError("Invalid master"))
    lost = meaning(Py4JNetworkError("no answer"))
    other = OSError("no space left")

    assert isinstance(found, RetriableError)
    assert str(found) == "Spark failed: Py4JJavaError: Invalid master"
    assert str(lost) == "Spark failed: Py4JNetworkError: no answer"
    assert meaning(other) is other


# The message of Spark 4.3 for a Python source that fails while it plans.
OF_SOURCE = (
    "[PYTHON_DATA_SOURCE_ERROR] Failed to generate Python data source read partitions: Traceback"
    " (most recent call last):\nspark_integration.datasource.{} SQLSTATE: 38000"
)


class AnalysisException(Exception):
    """As Spark's, by its place and name."""


AnalysisException.__module__ = "pyspark.errors.exceptions.captured"


@pytest.mark.usefixtures("closed")
def test_brokers_that_are_away_end_no_task_however_long() -> None:
    away = OF_SOURCE.format("wire.errors.Unreachable: no broker answers")

    with pytest.raises(RetriableError, match="no broker answers"), engine.batch(tried(MAX_TRIES)):
        raise AnalysisException(away)


@pytest.mark.usefixtures("closed")
def test_what_the_source_refuses_is_tried_again_and_then_ends_the_task() -> None:
    lost = OF_SOURCE.format("errors.DataLost: topic orders was deleted and recreated")

    with pytest.raises(RetriableError), engine.batch(tried(0)):
        raise AnalysisException(lost)
    with pytest.raises(ConnectorError, match="Spark cannot do it"), engine.batch(tried(MAX_TRIES)):
        raise AnalysisException(lost)


@pytest.mark.usefixtures("closed")
def test_a_query_that_cannot_work_ends_the_task_at_once() -> None:
    with pytest.raises(ConnectorError, match="Spark cannot do it"), engine.batch(tried(0)):
        raise AnalysisException("[UNRESOLVED_COLUMN] x")


class OfSpark(SparkError):
    __module__ = "pyspark.errors"


class Session:
    """What the worker has of Spark."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAMSA_SPARK", "sc://localhost")
    monkeypatch.setenv("SAMSA_SPARK_TOKEN", TOKEN)


def fail(error: Exception) -> NoReturn:
    raise error


def meaning(error: Exception, *, tries: int = 0) -> BaseException:
    try:
        with engine.errors(tried(tries)):
            fail(error)
    except Exception as found:  # noqa: BLE001 - what is looked at
        return found
    raise AssertionError("it raises something")


@pytest.mark.usefixtures("server")
def test_an_error_that_says_the_token_does_not_show_it_and_not_where_it_comes_from() -> None:
    found = meaning(OfSpark(f"no session for {TOKEN}", Code.INTERNAL))

    assert isinstance(found, RetriableError)
    assert "no session for …" in str(found)
    assert found.__cause__ is None
    assert found.__suppress_context__


@pytest.mark.usefixtures("server")
def test_a_folder_of_an_attempt_before_is_no_reason_to_give_up() -> None:
    there = OfSpark("AnalysisException: [PATH_ALREADY_EXISTS] x", Code.INTERNAL)
    wrong = OfSpark("AnalysisException: [UNRESOLVED_COLUMN] x", Code.INTERNAL)

    assert isinstance(meaning(there), RetriableError)
    assert not isinstance(meaning(wrong), RetriableError)


@pytest.mark.usefixtures("server")
def test_what_is_not_of_spark_stays_what_it_is() -> None:
    error = SparkError("x", Code.UNAVAILABLE)

    assert meaning(error) is error


def test_a_spark_that_does_not_start_is_tried_again_and_then_ends_the_task() -> None:
    found = meaning(SparkNotStarted("no memory"))

    assert isinstance(found, RetriableError)
    assert type(meaning(SparkNotStarted("no memory"), tries=MAX_TRIES)) is ConnectorError


def test_a_target_that_is_refused_ends_the_task_with_the_reason() -> None:
    found = meaning(SparkRefused("set SAMSA_SPARK_TOKEN"))

    assert type(found) is ConnectorError
    assert str(found) == "set SAMSA_SPARK_TOKEN"


def test_a_target_that_is_refused_shows_no_secret() -> None:
    found = meaning(SparkRefused("SAMSA_SPARK is 'sc://ann:sesame@h/;Authorization=sesame'"))

    assert str(found) == "SAMSA_SPARK is 'sc://…@h/;Authorization=…'"
    assert found.__cause__ is None


@pytest.mark.usefixtures("server")
def test_a_folder_is_proved_once_for_each_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    sessions: list[Any] = [Session()]
    monkeypatch.setattr(engine, "spark", lambda: sessions[-1])
    monkeypatch.setattr(engine, "require_shared", lambda *given: asked.append(given[2]))
    kept: dict[str, Any] = {}

    for _ in range(2):
        engine.require_folder(tmp_path, kept)
    sessions.append(Session())
    engine.require_folder(tmp_path, kept)

    assert asked == ["sc://localhost:15002/"] * 2


@pytest.mark.usefixtures("server")
def test_a_query_is_refused_on_a_server_with_what_to_do() -> None:
    with pytest.raises(ConnectorError, match=r"samsa\.spark\.sql does not run .* set SAMSA_SPARK"):
        engine.require_own_process("samsa.spark.sql")
