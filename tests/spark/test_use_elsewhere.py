"""docs/howto/use-from-your-spark.md, done: the package serves Sparks that know nothing of Samsa.

The job of the page runs on a Spark of its own in an empty environment, on a Connect server and on
a standalone cluster with two workers.
"""

import importlib.util
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.spark import spark as spark_command
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.consumer import Reader
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord, NewTopic, Record, Span
from tests.cluster import ROOT
from tests.extras import requires
from tests.spark.processes import (
    HOST,
    connect_server,
    empty_environment,
    spark_environment,
    standalone_cluster,
    stored_classes,
)
from tests.suite.services import shared_home

pytestmark = [requires("java", "spark"), pytest.mark.slow]

PAGE = ROOT / "docs" / "howto" / "use-from-your-spark.md"
SETTINGS = {
    "spark.driver.bindAddress": HOST,
    "spark.driver.host": HOST,
    "spark.driver.memory": "1g",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
HEADERS = (("trace", b"1"),)
SECRET = "of-this-test"  # noqa: S105 (it is none)
AUTHENTICATED = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": SECRET,
    "spark.network.crypto.enabled": "true",
}
# What the programs of the page begin and end with here.
ALONE = """\
from importlib.util import find_spec

assert find_spec("spark_integration") is None
"""
STOP = "\nspark.stop()\n"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    done = CliRunner().invoke(spark_command, ["package", "--out", str(folder)])
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has Spark, and neither Samsa nor the package."""
    return empty_environment(tmp_path_factory.mktemp("empty"))


@pytest.fixture(scope="module")
def bootstrap() -> str:
    return shared_home().bootstrap


@pytest.fixture
def topics(bootstrap: str, unique: Callable[[str], str]) -> dict[str, str]:
    """The topics of the page by names of their own; orders has 300 records of three keys."""
    connection = Connection(bootstrap=bootstrap)
    names = {name: unique(name) for name in ("orders", "counts", "copies")}
    Admin(connection).create([NewTopic(name=name, partitions=2) for name in names.values()])
    producer = TopicWriter(connection, names["orders"], codec="zstd")
    for number in range(300):
        producer.send(NewRecord(key=b"k%d" % (number % 3), value=b"%d" % number, headers=HEADERS))
    producer.flush()
    return names


def blocks() -> tuple[str, str, str, str]:
    """Return the programs of the page: a batch, a stream, and the beginnings of the two others."""
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    batch, stream, connect, standalone = found
    return batch, stream, connect, standalone


def with_batch(beginning: str) -> str:
    """Return a program that makes its session like a beginning, and continues like the batch."""
    return beginning + blocks()[0].partition("getOrCreate()\n")[2]


def run(
    folder: Path,
    program: str,
    *,
    python: Path,
    places: Mapping[str, str],
    master: str = "local[2]",
    more_settings: Mapping[str, str] | None = None,
) -> None:
    """Run a program of the page with other places in it than the page names."""
    for written, meant in places.items():
        program = program.replace(written, meant)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "job.py").write_text(ALONE + program + STOP, encoding="utf-8")
    classes = {"spark.driver.defaultJavaOptions": stored_classes() or "-Xshare:auto"}
    settings = (
        f"--conf {name}={value}"
        for name, value in {**SETTINGS, **classes, **(more_settings or {})}.items()
    )
    environment = {
        **spark_environment(folder, python),
        "PYSPARK_SUBMIT_ARGS": f"--master {master} {' '.join(settings)} pyspark-shell",
    }
    done = subprocess.run(
        [python, "job.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    lines = [line for line in done.stderr.splitlines() if not line.lstrip().startswith("at ")]
    assert done.returncode == 0, "\n".join(lines[-60:])


def places(bootstrap: str, topics: Mapping[str, str]) -> dict[str, str]:
    quoted = {f'"{name}"': f'"{own}"' for name, own in topics.items()}
    return {"127.0.0.1:9092": bootstrap, **quoted}


def read(bootstrap: str, topic: str) -> list[Record]:
    found = []
    for partition in range(2):
        spans = [Span(partition=partition, start=0)]
        with Reader(Connection(bootstrap=bootstrap), topic, spans, stops_at_end=True) as reader:
            found += [record for batch in reader.batches() for record in batch]
    return found


def expect_the_batch_done(bootstrap: str, topics: Mapping[str, str]) -> None:
    counted = {record.key: record.value for record in read(bootstrap, topics["counts"])}
    assert counted == {b"k0": b"100", b"k1": b"100", b"k2": b"100"}


def expect_both_jobs_done(bootstrap: str, topics: Mapping[str, str]) -> None:
    expect_the_batch_done(bootstrap, topics)
    copies = read(bootstrap, topics["copies"])
    assert sorted(int(record.value or b"-1") for record in copies) == list(range(300))
    assert {record.headers for record in copies} == {HEADERS}


def install(python: Path, wheel: Path) -> None:
    """Install a wheel with pip; where there is none, unpack it, which pip would do as well."""
    if importlib.util.find_spec("pip") is not None:
        options = ["--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]
        pip: list[str | Path] = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            python,
            "install",
            *options,
            wheel,
        ]
        subprocess.run(pip, check=True, capture_output=True, text=True)
        return
    (own,) = python.parents[1].glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(own)


def test_a_spark_in_an_empty_environment_finds_the_wheel_by_itself(
    tmp_path: Path, dist: Path, bootstrap: str, topics: dict[str, str]
) -> None:
    python = empty_environment(tmp_path / "empty")
    (wheel,) = dist.glob("*.whl")
    install(python, wheel)

    run(tmp_path / "job", blocks()[0], python=python, places=places(bootstrap, topics))

    # The stream of the page runs on a cluster, below.
    expect_the_batch_done(bootstrap, topics)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def test_a_connect_server_takes_the_zip_from_its_client(
    tmp_path: Path,
    dist: Path,
    empty: Path,
    bootstrap: str,
    topics: dict[str, str],
    stack: ExitStack,
) -> None:
    server = stack.enter_context(connect_server(tmp_path / "server", empty))
    own = {"sc://localhost:15002": server, '"dist/': f'"{dist}/'}

    run(
        tmp_path / "job",
        with_batch(blocks()[2]),
        python=empty,
        places={**places(bootstrap, topics), **own},
    )

    expect_the_batch_done(bootstrap, topics)


def test_a_standalone_cluster_takes_the_zip_from_its_driver(
    tmp_path: Path,
    dist: Path,
    empty: Path,
    bootstrap: str,
    topics: dict[str, str],
    stack: ExitStack,
) -> None:
    master = stack.enter_context(
        standalone_cluster(tmp_path / "cluster", empty, workers=2, secret=SECRET)
    )
    own = {"spark://127.0.0.1:7077": master, '"dist/': f'"{dist}/'}

    run(
        tmp_path / "job",
        with_batch(blocks()[3]) + blocks()[1],
        python=empty,
        places={**places(bootstrap, topics), **own},
        master=master,
        more_settings=AUTHENTICATED,
    )

    expect_both_jobs_done(bootstrap, topics)
    # Both workers ran an executor of it; Spark replaces one that is lost on a busy machine.
    ran = (tmp_path / "cluster").glob("worker-*/jobs/app-*/*/stdout")
    assert len({path.relative_to(tmp_path / "cluster").parts[0] for path in ran}) == 2
