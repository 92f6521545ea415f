"""Many light connectors on one worker: each runs, and its state is reported correctly."""

import time
from collections import Counter
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest

from bench.processes import Process
from gateway.kafka.admin import Admin
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord, NewTopic
from tests.connectors.running_home import ConnectorsHome, connectors_home
from tests.scale import IS_LONG

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.slow,
    pytest.mark.alone,
    # The long form begins 200 connectors, and then asks for their states for five minutes.
    pytest.mark.timeout(900 if IS_LONG else 300),
]
MANY = 200 if IS_LONG else 12
# Each is read by one connector, or by ten, and one at a time gets a record: what is light has
# little to do at once.
TOPICS = 20 if IS_LONG else 12
# Statuses are asked for so long.
POLL_S = 300.0 if IS_LONG else 15.0
# Fifteen seconds are promised: one that is idle looks each ten; the machine may be busy.
P95_S = 30.0
# Of a core, for the process that plans: a twentieth is promised.
BEAT_SHARE = 0.1
STRING = "org.apache.kafka.connect.storage.StringConverter"


def test_each_of_many_connectors_sees_a_record_within_its_turn(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    with connectors_home(tmp_path, workers=1) as home:
        topics = [NewTopic(name=f"light-{number}", partitions=1) for number in range(TOPICS)]
        Admin(home.connection).create(topics)
        for number in range(MANY):
            make_sink(home, number)
        home.wait(lambda: has_begun(home), "all tasks to begin", seconds=300)
        beat = Process(home.cluster.pid("connect-beat"))
        began, spent = time.monotonic(), beat.cpu_seconds()
        took: list[float] = []
        seen: Counter[tuple[str, ...]] = Counter()
        for topic in cycle(range(TOPICS)):
            if time.monotonic() > began + POLL_S:
                break
            readers = range(topic, MANY, TOPICS)
            before = {number: size_of(home, number) for number in readers}
            producer = TopicWriter(home.connection, f"light-{topic}")
            producer.send(NewRecord(value=b"x"))
            producer.flush()
            took += arrivals(home, before, seen)
        share = (beat.cpu_seconds() - spent) / (time.monotonic() - began)

    took.sort()
    p95 = took[int(len(took) * 0.95)]
    report(
        f"{MANY} light connectors: p50 {took[len(took) // 2]:.1f} s, p95 {p95:.1f} s,"
        f" the planner {share:.1%} of a core, {seen.total()} states asked for"
    )
    assert p95 <= P95_S
    assert share <= BEAT_SHARE
    # Polled throughout: a task that waits for its turn counts as running.
    assert set(seen) == {("RUNNING", "RUNNING")}


def make_sink(home: ConnectorsHome, number: int) -> None:
    home.create(
        f"light-{number}",
        {
            "connector.class": "samsa.file.sink",
            "topics": f"light-{number % TOPICS}",
            "file": f"{number}.txt",
            "key.converter": STRING,
            "value.converter": STRING,
        },
    )


def has_begun(home: ConnectorsHome) -> bool:
    tasks = home.tasks()
    return len(tasks) == MANY and all(task.slice_ended_at for task in tasks)


def size_of(home: ConnectorsHome, number: int) -> int:
    file = home.folder / "files" / f"{number}.txt"
    return file.stat().st_size if file.exists() else 0


def arrivals(
    home: ConnectorsHome, before: dict[int, int], seen: Counter[tuple[str, ...]]
) -> list[float]:
    """Return after how long each file has grown."""
    began = time.monotonic()
    found: dict[int, float] = {}

    def have_all_grown() -> bool:
        for number in before.keys() - found.keys():
            if size_of(home, number) > before[number]:
                found[number] = time.monotonic() - began
        seen.update(
            (status.state, *(task.state for task in status.tasks)) for status in home.statuses()
        )
        return len(found) == len(before)

    home.wait(have_all_grown, "all files to grow", seconds=120)
    return list(found.values())
