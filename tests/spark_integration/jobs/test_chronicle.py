"""What a process knows of its session: stages, the last error, and no secret."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spark_integration.jobs import session
from spark_integration.jobs.chronicle import (
    MAX_CHARS,
    MAX_LAST_WORDS,
    MAX_LINES,
    Chronicle,
    EngineFacts,
    Stage,
    last_words,
    stream_of,
)
from spark_integration.jobs.errors import SparkMissing, SparkNotStarted
from spark_integration.jobs.targets import Target, parse_target

TARGET = parse_target("local[2]")


class Engine:
    """A session that is alive until a test ends it."""

    spark: Any = SimpleNamespace(version="4.3.0", streams=SimpleNamespace(active=[]))

    def __init__(self) -> None:
        self.lives = True

    def has_ended(self) -> bool:
        return not self.is_alive()

    def is_alive(self) -> bool:
        return self.lives

    def close(self) -> None:
        self.lives = False

    def facts(self) -> EngineFacts:
        return EngineFacts(version="4.3.0", cores=2)

    def cores(self) -> int:
        return 4

    def how_it_ended(self) -> str:
        return "it was killed"


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> session.Held:
    """A process that has no session yet."""
    found = session.Held()
    monkeypatch.setattr(session, "HELD", found)
    return found


def test_start_run_and_end_of_a_session_are_reported_at_once(
    held: session.Held, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    engine, stages = Engine(), [session.facts().stage]

    def make(*_: Any) -> Engine:
        # The lock of the session is held meanwhile.
        assert held.lock.locked()
        stages.append(session.facts().stage)
        return engine

    monkeypatch.setattr(session, "make_engine", make)
    session.session(tmp_path, environment={"SAMSA_SPARK": "local[2]"})
    running = session.facts()
    session.look()
    looked = session.facts()
    engine.lives = False
    ended = session.facts()

    assert stages == [Stage.NONE, Stage.STARTING]
    assert (running.stage, running.target, running.since_ms > 0) == (
        Stage.RUNNING,
        "local[2]",
        True,
    )
    assert looked.engine is not None
    assert looked.engine.cores == 4
    assert (ended.stage, ended.failure) == (Stage.ENDED, "it was killed")
    assert ended.failed_ms > 0


def test_failed_start_is_reported_until_the_next_one_fails(
    held: session.Held, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*_: Any) -> Engine:
        raise SparkMissing("there is no Java")

    monkeypatch.setattr(session, "make_engine", fail)
    with pytest.raises(SparkMissing):
        session.session(tmp_path, environment={})
    failed = session.facts()
    monkeypatch.setattr(session, "make_engine", lambda *_: Engine())
    session.session(tmp_path, environment={})
    running = session.facts()
    session.close_session()

    assert (failed.stage, failed.failure) == (Stage.ENDED, "SparkMissing: there is no Java")
    assert (running.stage, running.failure) == (Stage.RUNNING, failed.failure)
    assert session.facts().stage is Stage.ENDED
    assert held.engine is None


class Py4JJavaError(Exception):
    """As the bridge's, by its place and name."""


Py4JJavaError.__module__ = "py4j.protocol"
SECRET = "of-this-test"  # noqa: S105 (it is none)


def start_error(
    error: Exception, monkeypatch: pytest.MonkeyPatch, home: Path, *, spark: str
) -> BaseException:
    def fail(*_: Any) -> Engine:
        raise error

    monkeypatch.setattr(session, "make_engine", fail)
    environment = {"SAMSA_SPARK": spark, "SAMSA_SPARK_TOKEN": SECRET}
    try:
        session.session(home, environment=environment)
    except Exception as found:  # noqa: BLE001 - what is looked at
        return found
    raise AssertionError("it raises something")


@pytest.mark.usefixtures("held")
def test_failed_start_of_a_jvm_is_reported_by_its_first_lines_without_the_token(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    of_java = Py4JJavaError(f"no master with {SECRET}\n" + "at x\n" * 100)
    no_space = OSError(28, "No space left on device")

    found = start_error(of_java, monkeypatch, tmp_path, spark="spark://127.0.0.1")
    full = start_error(no_space, monkeypatch, tmp_path, spark="local")

    assert isinstance(found, SparkNotStarted)
    said = str(found).splitlines()
    assert said[0] == "Spark could not be started: Py4JJavaError: no master with …"
    assert (len(said), found.__cause__, found.__suppress_context__) == (MAX_LINES, None, True)
    assert isinstance(full, SparkNotStarted)
    assert "No space left on device" in session.facts().failure


@pytest.mark.usefixtures("held")
def test_errors_of_a_server_and_of_our_own_stay_what_they_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    of_server, own = Py4JJavaError("away"), KeyError("x")

    assert start_error(of_server, monkeypatch, tmp_path, spark="sc://127.0.0.1") is of_server
    assert start_error(own, monkeypatch, tmp_path, spark="local") is own


def test_report_of_another_process_is_ignored(
    held: session.Held, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(session, "make_engine", lambda *_: Engine())
    session.session(tmp_path, environment={})
    held.process += 1

    assert session.facts().stage is Stage.NONE


def test_an_error_is_cut_and_holds_no_token() -> None:
    chronicle = Chronicle()
    target = Target(kind=TARGET.kind, url="sc://h:1/;token=abc", token="shared-word")  # noqa: S106
    with chronicle.starting(target):
        pass

    chronicle.failed("refused shared-word;token=abc\n" + "line\n" * 100 + "x" * 5000)

    told = chronicle.facts
    assert "abc" not in told.target + told.failure
    assert "shared-word" not in told.failure
    assert len(told.failure.splitlines()) == MAX_LINES
    assert len(told.failure) <= MAX_CHARS


def test_last_lines_of_java_are_reported(tmp_path: Path) -> None:
    output = tmp_path / "spark.out"
    output.write_text("WARN: using incubator modules\njava.lang.OutOfMemoryError: heap\n42\n")

    assert last_words(output) == "java.lang.OutOfMemoryError: heap"
    assert last_words(tmp_path / "none") == ""


def test_only_the_last_of_many_lines_are_reported(tmp_path: Path) -> None:
    output = tmp_path / "spark.out"
    output.write_text("ValueError: x\n" * 40 + "java.lang.OutOfMemoryError: heap\n")

    told = last_words(output).splitlines()

    assert len(told) == MAX_LAST_WORDS < MAX_LINES
    assert told[-1] == "java.lang.OutOfMemoryError: heap"


def test_the_last_words_of_java_are_at_the_end_of_its_output(tmp_path: Path) -> None:
    output = tmp_path / "spark.out"
    output.write_text("a line of a task\n" * 100_000 + "java.lang.OutOfMemoryError: heap\n")

    assert last_words(output) == "java.lang.OutOfMemoryError: heap"


def test_a_stream_without_a_batch_has_a_name_only() -> None:
    progress = {
        "batchId": 3,
        "numInputRows": 9,
        "processedRowsPerSecond": 4.5,
        "durationMs": {"triggerExecution": 240},
        "eventTime": {"watermark": "2026-01-31T00:00:00.000Z"},
    }
    status = {"message": "Waiting"}
    fresh: Any = SimpleNamespace(name=None, id="a-b", status=status, lastProgress=None)
    busy: Any = SimpleNamespace(name="totals", id="a-b", status=status, lastProgress=progress)

    assert (stream_of(fresh).name, stream_of(fresh).batch) == ("a-b", None)
    told = stream_of(busy)
    assert (told.name, told.batch, told.rows, told.took_ms) == ("totals", 3, 9, 240)
    assert told.watermark == "2026-01-31T00:00:00.000Z"
