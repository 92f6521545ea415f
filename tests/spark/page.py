"""The programs of docs/howto/use-from-your-spark.md, and what their jobs do to topics."""

import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from click.testing import CliRunner

from cli.spark import spark as spark_command
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.consumer import Reader
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord, NewTopic, Record, Span
from tests.cluster import ROOT
from tests.spark.processes import HOST, spark_environment, stored_classes

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
# What the programs of the page begin and end with here.
ALONE = """\
from importlib.util import find_spec

assert find_spec("spark_integration") is None
"""
STOP = "\nspark.stop()\n"


def make_package(folder: Path) -> Path:
    """Make the wheel and the zip in a folder, as the page does; return the folder."""
    done = CliRunner().invoke(spark_command, ["package", "--out", str(folder)])
    assert done.exit_code == 0, done.output
    return folder


def make_topics(bootstrap: str, unique: Callable[[str], str]) -> dict[str, str]:
    """Make the topics of the page by names of their own; orders has 300 records of three keys."""
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
