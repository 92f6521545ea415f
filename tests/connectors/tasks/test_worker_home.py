"""Connectors in a home that runs: end to end, and through the deaths of what runs them."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator

import pytest
from django.utils import timezone

from gateway.kafka.admin import Admin
from tests.connectors.running_home import ConnectorsHome, connectors_home

pytestmark = [pytest.mark.slow, pytest.mark.alone]
PLAIN = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
RECORDS = 500


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
    # What a task has counted is told at the end of its slice, which may take half a minute.
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


def has_run_since(home: ConnectorsHome, name: str) -> Callable[[], bool]:
    """Return whether every task has begun, or ended, a slice since now."""
    now = timezone.now()

    def has_run() -> bool:
        return all(
            (task.served_at and task.served_at > now)
            or (task.slice_ended_at and task.slice_ended_at > now)
            for task in home.tasks(name)
        )

    return has_run


def test_what_a_source_writes_into_a_topic_a_sink_writes_into_a_file(
    home: ConnectorsHome,
) -> None:
    make_pair(home, "whole", records=RECORDS)

    home.wait(lambda: lines(home, "whole") >= RECORDS, "all records to be in the file")

    assert lines(home, "whole") == RECORDS
    assert states(home, "whole-source") == states(home, "whole-sink") == ["RUNNING"]
    told = {row["name"] for row in home.cluster.status()["components"]}
    assert {"connect-beat", "connect-worker-1", "connect-worker-2"} <= told


def test_the_tasks_of_a_worker_that_was_killed_run_again_within_seconds(
    home: ConnectorsHome, report: Callable[[str], None]
) -> None:
    make_pair(home, "killed")
    home.wait(lambda: lines(home, "killed") > 0, "a line in the file")

    home.kill_worker_of("killed-sink")
    again = has_run_since(home, "")
    # Five seconds are promised; the machine may be busy.
    took = home.wait(again, "all tasks to run again", seconds=10)
    before = lines(home, "killed")
    home.wait(lambda: lines(home, "killed") > before, "the file to grow again")

    report(f"kill -9 of a worker: all tasks ran again after {took:.1f} s")
    assert states(home, "killed-sink") == ["RUNNING"]


def test_all_tasks_run_again_after_valkey_lost_its_file(
    home: ConnectorsHome, report: Callable[[str], None]
) -> None:
    make_pair(home, "emptied")
    home.wait(lambda: lines(home, "emptied") > 0, "a line in the file")

    os.kill(home.cluster.pid("valkey"), signal.SIGSTOP)
    shutil.rmtree(home.folder / "data" / "valkey", ignore_errors=True)
    (home.folder / "data" / "valkey").mkdir(mode=0o700)
    home.cluster.kill("valkey")
    took = home.wait(has_run_since(home, ""), "all tasks to run again", seconds=60)
    before = lines(home, "emptied")
    home.wait(lambda: lines(home, "emptied") > before, "the file to grow again")

    report(f"kill -9 of Valkey without its file: all tasks ran again after {took:.1f} s")
