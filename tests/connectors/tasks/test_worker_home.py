"""Connectors in a home that runs: end to end, and through the deaths of what runs them."""

import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from connectors.runtime.cluster_wire import ClusterWire
from connectors.sdk.records import TopicPartition
from gateway.kafka.admin import Admin
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord, NewTopic, Span
from tests.connectors.running_home import ConnectorsHome, connectors_home

pytestmark = pytest.mark.slow
PLAIN = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
RECORDS = 500
LETTERS = 1200
# Several batches: those of one run at most.
MANY_LETTERS = 10_000


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectorsHome]:
    with connectors_home(tmp_path_factory.mktemp("home"), workers=2) as running:
        yield running


def make_pair(home: ConnectorsHome, name: str, *, records: int = -1) -> None:
    """Make a source of made-up records, and a sink that writes them into a file."""
    home.create(
        f"{name}-source",
        {
            **PLAIN,
            "connector.class": "samsa.datagen",
            "topic": name,
            "records.per.second": "200",
            "iterations": str(records),
        },
    )
    admin = Admin(home.connection)
    home.wait(lambda: name in admin.find([name]), "the source to write")
    home.create(
        f"{name}-sink",
        {
            **PLAIN,
            "connector.class": "samsa.file.sink",
            "topics": name,
            "file": f"{name}.txt",
        },
    )


def lines(home: ConnectorsHome, name: str) -> int:
    file = home.folder / "files" / f"{name}.txt"
    return file.read_bytes().count(b"\n") if file.exists() else 0


def states(home: ConnectorsHome, name: str) -> list[str]:
    return [task.state for task in home.tasks(name)]


def lines_without_a_time(logs: Path) -> list[str]:
    """Return what workers and the beat have logged without its time."""
    files = [*logs.glob("connect-*.log")]
    assert len(files) > 1, "a beat and a worker have logs"
    lines = [line for file in files for line in file.read_text().splitlines()]
    told = [line for line in lines if re.search(r"\b(INFO|WARNING|ERROR) connectors\.", line)]
    return [line for line in told if not re.match(r"\d{4}-\d\d-\d\dT\S+Z [A-Z]+ ", line)]


def test_what_a_source_writes_into_a_topic_a_sink_writes_into_a_file(
    home: ConnectorsHome,
) -> None:
    make_pair(home, "whole", records=RECORDS)

    home.wait(lambda: lines(home, "whole") >= RECORDS, "all records to be in the file")

    assert lines(home, "whole") == RECORDS
    assert states(home, "whole-source") == states(home, "whole-sink") == ["RUNNING"]
    told = {row["name"] for row in home.cluster.status()["components"]}
    assert {"connect-beat", "connect-worker-1", "connect-worker-2"} <= told
    assert lines_without_a_time(home.folder / "logs") == []


def test_dead_letters_of_a_sink_arrive_once_when_it_is_mended(
    home: ConnectorsHome, unique: Callable[[str], str]
) -> None:
    # Django is set up by now.
    from connectors import redrives, services  # noqa: PLC0415

    name, dead = unique("mended"), unique("dead")
    poison = [b"no JSON %d" % number for number in range(LETTERS)]
    strict = {
        **PLAIN,
        "connector.class": "samsa.file.sink",
        "topics": name,
        "file": f"{name}.txt",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": dead,
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    Admin(home.connection).create([NewTopic(name=name, partitions=2, replication_factor=1)])
    producer = TopicWriter(home.connection, name)
    # So the target, which keeps offsets itself, knows nothing of what comes behind.
    for number, value in enumerate((b'"fine"', b'"fine"', *poison)):
        producer.send(NewRecord(value=value, partition=number % 2))
    producer.flush()
    home.create(name, strict)
    wire = ClusterWire(lambda: home.connection)

    def read() -> int:
        return sum(wire.committed(f"connect-{name}").values())

    # Letters are there before it is noted that their records were read.
    home.wait(lambda: read() == 2 + LETTERS, "all poison to be among the dead letters")
    before = lines(home, name)
    mended = strict | {"value.converter": "org.apache.kafka.connect.storage.StringConverter"}
    services.put_config(home.admin, home.cluster_id, name, mended)
    asked = redrives.Asked()
    plan = redrives.plan(home.admin, home.cluster_id, name, asked, wire=wire)
    run = redrives.start(home.admin, plan, wire=wire)
    done = lambda: redrives.run(home.cluster_id, name, run.id).state == "DONE"  # noqa: E731
    home.wait(done, "the run to be done")
    home.wait(lambda: read() == 2 + 2 * LETTERS, "all letters to be read again")

    text = (home.folder / "files" / f"{name}.txt").read_bytes().decode()
    assert (before, plan.chosen) == (2, LETTERS)
    assert sorted(text.splitlines()) == sorted(["fine", "fine", *(one.decode() for one in poison)])


def test_a_run_whose_worker_is_killed_goes_on_and_sends_no_letter_twice(
    home: ConnectorsHome, unique: Callable[[str], str], report: Callable[[str], None]
) -> None:
    # Django is set up by now.
    from connectors import models, redrives  # noqa: PLC0415

    name, dead = unique("killed-run"), unique("dead")
    Admin(home.connection).create([NewTopic(name=dead, partitions=1, replication_factor=1)])
    config = {
        **PLAIN,
        "connector.class": "samsa.file.sink",
        "topics": name,
        "file": f"{name}.txt",
        "errors.deadletterqueue.topic.name": dead,
    }
    producer = TopicWriter(home.connection, dead)
    for number in range(MANY_LETTERS):
        producer.send(NewRecord(value=b"%d" % number))
    producer.flush()
    home.create(name, config)
    wire = ClusterWire(lambda: home.connection)
    plan = redrives.plan(home.admin, home.cluster_id, name, redrives.Asked(), wire=wire)
    run = redrives.start(home.admin, plan, wire=wire)

    def row() -> models.Redrive:
        return models.Redrive.objects.get(pk=run.id)

    home.wait(lambda: row().sent > 0, "the first batch to be sent")
    worker = models.Worker.objects.get(name=row().worker)
    os.kill(worker.process_id, signal.SIGKILL)
    at = row().sent
    home.wait(lambda: row().state == "DONE", "the run to be done")

    topic = f"connect-{name}.retry"
    spans = [Span(partition=0, start=0, end=MANY_LETTERS)]
    values = [one.value for records in wire.read(topic, spans) for one in records]
    places = [TopicPartition(topic=topic, partition=0)]
    report(f"kill -9 of a run's worker after {at} of {MANY_LETTERS} letters: none twice")
    assert wire.bounds(places)[places[0]] == (0, MANY_LETTERS)
    assert values == [b"%d" % number for number in range(MANY_LETTERS)]
    assert row().sent == MANY_LETTERS


@pytest.mark.campaign
def test_the_tasks_of_a_worker_that_was_killed_run_again_within_seconds(
    home: ConnectorsHome, report: Callable[[str], None]
) -> None:
    make_pair(home, "killed")
    home.wait(lambda: lines(home, "killed") > 0, "a line in the file")

    home.kill_worker_of("killed-sink")
    again = home.has_run_since()
    # Five seconds are promised; the machine may be busy.
    took = home.wait(again, "all tasks to run again", seconds=10)
    before = lines(home, "killed")
    home.wait(lambda: lines(home, "killed") > before, "the file to grow again")

    report(f"kill -9 of a worker: all tasks ran again after {took:.1f} s")
    assert states(home, "killed-sink") == ["RUNNING"]


@pytest.mark.campaign
def test_all_tasks_run_again_after_valkey_lost_its_file(
    home: ConnectorsHome, report: Callable[[str], None]
) -> None:
    make_pair(home, "emptied")
    home.wait(lambda: lines(home, "emptied") > 0, "a line in the file")

    os.kill(home.cluster.pid("valkey"), signal.SIGSTOP)
    shutil.rmtree(home.folder / "data" / "valkey", ignore_errors=True)
    (home.folder / "data" / "valkey").mkdir(mode=0o700)
    home.cluster.kill("valkey")
    took = home.wait(home.has_run_since(), "all tasks to run again", seconds=60)
    before = lines(home, "emptied")
    home.wait(lambda: lines(home, "emptied") > before, "the file to grow again")

    report(f"kill -9 of Valkey without its file: all tasks ran again after {took:.1f} s")
