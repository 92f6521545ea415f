"""An example is one line: its topics are made, its job runs, and the end names the next steps."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from cli import spark_examples
from cli.spark import spark as spark_command
from cli.spark_examples import Interrupts, follow, metrics_topic_of
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.values import Position, PositionKind
from spark_integration.examples.catalog import EXAMPLES, Example, Job, Place
from spark_integration.jobs.errors import SparkMissing
from tests.cli.data_commands import Shell, shell
from tests.extras import requires
from tests.suite.services import shared_home


@pytest.fixture(scope="module")
def sh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with shell(tmp_path_factory.mktemp("broker"), mine=1) as running:
        yield running


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark is not installed, whatever this checkout has."""

    def missing(_home: Path) -> None:
        raise SparkMissing("pyspark is not installed: ./samsa extras install spark")

    monkeypatch.setattr(spark_examples, "session", missing)
    # The tests of a worker share one session, which is not the command's to end.
    monkeypatch.setattr(spark_examples, "close_session", lambda: None)


@pytest.fixture
def no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that costs nothing, and jobs that end before they begin."""

    def stop() -> Job:
        raise SparkMissing("no further")

    monkeypatch.setattr(spark_examples, "session", lambda _home: None)
    monkeypatch.setattr(spark_examples, "close_session", lambda: None)
    monkeypatch.setattr(spark_examples, "register", lambda _spark: None)
    for name, example in EXAMPLES.items():
        monkeypatch.setitem(dict_of_examples(), name, replace(example, load=stop))


def test_the_list_says_what_each_example_does_and_where_its_page_is() -> None:
    listed = CliRunner().invoke(spark_command, ["examples"]).output

    assert [line.split()[0] for line in listed.splitlines()[:3]] == [
        *("clickstream", "enrichment", "metrics")
    ]
    assert listed.count("docs/howto/") == 3


@pytest.mark.slow
def test_without_spark_the_way_to_install_it_is_told(
    sh: Shell, no_spark: None, tmp_path: Path
) -> None:
    ran = sh.run(spark_command, "example", "enrichment", "--once", "--home", str(tmp_path), code=1)

    assert "./samsa extras install spark" in ran.output
    names = {topic.name for topic in Admin(Connection(bootstrap=sh.bootstrap)).topics()}
    assert not {name for name in names if name.startswith("example-")}


@pytest.mark.slow
def test_an_example_makes_what_it_needs(sh: Shell, no_job: None, tmp_path: Path) -> None:
    sh.run(spark_command, "example", "enrichment", "--once", "--home", str(tmp_path), code=1)

    # A table with its products, orders, and where they go.
    admin = Admin(Connection(bootstrap=sh.bootstrap))
    names = {topic.name for topic in admin.topics()}
    assert {"example-orders", "example-orders-unmatched", "example-products"} <= names
    ends = admin.offsets("example-products", range(3), Position(kind=PositionKind.END))
    assert sum(ends.values()) == 4


@pytest.mark.slow
def test_products_that_are_there_stay_as_they_are(sh: Shell, no_job: None, tmp_path: Path) -> None:
    for _ in range(2):
        sh.run(spark_command, "example", "enrichment", "--home", str(tmp_path), code=1)

    admin = Admin(Connection(bootstrap=sh.bootstrap))
    ends = admin.offsets("example-products", range(3), Position(kind=PositionKind.END))
    assert sum(ends.values()) == 4


@pytest.mark.slow
def test_a_topic_of_the_user_gets_nothing_made_up_and_has_to_be_there(
    sh: Shell, no_job: None, tmp_path: Path
) -> None:
    def run(topic: str, *, code: int) -> Result:
        out = str(tmp_path / topic)
        arguments = ("--home", str(tmp_path), "--topic", topic, "--out", out)
        return sh.run(spark_command, "example", "clickstream", *arguments, code=code)

    run("mine", code=1)
    ran = run("nobodys", code=3)

    assert "nobodys" in ran.output
    admin = Admin(Connection(bootstrap=sh.bootstrap))
    ends = admin.offsets("mine", [0], Position(kind=PositionKind.END))
    assert ends == {0: 0}


@pytest.mark.slow
def test_a_checkpoint_is_of_one_topic(sh: Shell, no_job: None, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "out"))
    sh.run(spark_command, "example", "clickstream", *out, "--topic", "mine", code=1)

    ran = sh.run(spark_command, "example", "clickstream", *out, code=1)

    assert "is the checkpoint of topic mine" in ran.output
    assert "not of topic example-clicks of cluster" in ran.output


def test_a_home_without_a_metrics_topic_says_how_to_start_it(tmp_path: Path) -> None:
    with pytest.raises(click.ClickException, match="up --metrics-topic samsa-metrics"):
        metrics_topic_of(tmp_path)

    (tmp_path / "run").mkdir()
    settings = tmp_path / "run" / "settings.json"
    settings.write_text(json.dumps({"metrics_topic": None}))
    with pytest.raises(click.ClickException, match="writes no samples"):
        metrics_topic_of(tmp_path)
    settings.write_text(json.dumps({"metrics_topic": "m"}))
    assert metrics_topic_of(tmp_path) == "m"


def test_two_runs_do_not_share_a_checkpoint(tmp_path: Path) -> None:
    place = place_in(tmp_path)

    with (
        spark_examples.held(tmp_path, place),
        pytest.raises(click.ClickException, match="another run of this example"),
        spark_examples.held(tmp_path, place),
    ):
        pytest.fail("it was let in")


def test_files_whose_checkpoint_is_gone_are_not_added_to(tmp_path: Path) -> None:
    (tmp_path / "clicks" / "_spark_metadata").mkdir(parents=True)

    with pytest.raises(click.ClickException, match="Spark would write nothing there"):
        spark_examples.require_pair(place_in(tmp_path))
    (tmp_path / "checkpoint").mkdir()
    spark_examples.require_pair(place_in(tmp_path))


def place_in(folder: Path) -> Place:
    return Place(
        kafka={},
        topic="t",
        folder=str(folder),
        checkpoint=str(folder / "checkpoint"),
        every_s=None,
    )


class Query:
    """A query that ends, or fails, or has an interrupt come, in one of its waits."""

    def __init__(self, *batches: int, wait: Callable[[], bool] = lambda: True) -> None:
        self.recentProgress = [
            {"timestamp": f"2026-01-01T00:00:{number:02}.000Z", "rows": rows}
            for number, rows in enumerate(batches, start=1)
        ]
        self._wait = wait

    def awaitTermination(self, _seconds: float) -> bool:  # noqa: N802 (Spark's name)
        return self._wait()


def job() -> Job:
    return Job(
        start=lambda _spark, _place: [],
        tell=lambda progress: f"{progress['rows']} rows" if progress["rows"] else "",
        look=lambda _spark, _place: [],
    )


def test_batches_are_told_once_and_those_without_rows_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    waits = iter((False, False, True))
    query = Query(5, 0, 7, wait=lambda: next(waits))

    follow([query], job(), Interrupts(), None)

    told = capsys.readouterr().out.split("\n")
    assert told == ["  2026-01-01T00:00:01.000Z  5 rows", "  2026-01-01T00:00:03.000Z  7 rows", ""]


def test_a_query_that_fails_is_told_in_a_line_with_what_to_do() -> None:
    def fail() -> bool:
        raise RuntimeError("the topic\n was deleted\n\tat Java")

    with pytest.raises(click.ClickException, match="topic was deleted at Java\nNext: read logs"):
        follow([Query(wait=fail)], job(), Interrupts(), None)


def test_ctrl_c_ends_the_run_in_order() -> None:
    before = signal.getsignal(signal.SIGINT)

    def interrupted() -> bool:
        os.kill(os.getpid(), signal.SIGINT)
        # What Spark says of a batch that an interrupt has reached as well.
        raise RuntimeError("cancelled")

    with Interrupts() as interrupts:
        follow([Query(wait=interrupted)], job(), interrupts, None)
        assert interrupts.has_come()
        # The next one ends the process at once.
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    assert signal.getsignal(signal.SIGINT) is before


def dict_of_examples() -> dict[str, Example]:
    assert isinstance(EXAMPLES, dict)
    return EXAMPLES


@requires("java", "spark")
@pytest.mark.slow
def test_one_line_writes_hourly_parquet_and_says_where(
    spark: Any, monkeypatch: pytest.MonkeyPatch, unique: Callable[[str], str], tmp_path: Path
) -> None:
    """The whole command, in the session that all tests share."""
    monkeypatch.setattr(spark_examples, "session", lambda _home: spark)
    monkeypatch.setattr(spark_examples, "close_session", lambda: None)
    own = replace(EXAMPLES["clickstream"], topic=unique("clicks"))
    monkeypatch.setitem(dict_of_examples(), "clickstream", own)
    bootstrap = shared_home().bootstrap
    line = ["example", "clickstream", "--once", "-b", bootstrap, "--home", str(tmp_path)]

    ran = CliRunner().invoke(spark_command, line)

    assert ran.exit_code == 0, ran.output
    assert "clicks written" in ran.output
    assert list((tmp_path / "examples" / "clickstream" / "clicks").glob("date=*/hour=*/*.parquet"))
    assert "docs/howto/write-hourly-parquet.md" in ran.output
    # What the run made, and not a folder that may hold other files.
    folder = tmp_path / "examples" / "clickstream"
    made = [folder / name for name in ("checkpoint", "checkpoint.source.json", "clicks", "aside")]
    assert f"rm -r {' '.join(map(str, made))}   #" in ran.output
