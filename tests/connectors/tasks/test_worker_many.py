"""Two hundred light connectors on one worker: each has its turn, and is called what it is."""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.kafka.admin import Admin
from gateway.kafka.producer import Producer
from gateway.kafka.values import NewRecord, NewTopic
from tests.connectors.running_home import ConnectorsHome, connectors_home
from tests.scale import IS_LONG

pytestmark = [
    pytest.mark.slow,
    pytest.mark.alone,
    pytest.mark.skipif(not IS_LONG, reason="two hundred connectors are for a long run"),
]
MANY = 200
# Each is read by ten connectors, and one of them gets a record at a time: what is light has little
# to do at once.
TOPICS = 20
ROUNDS = 10
# Fifteen seconds are promised; the machine may be busy.
P95_S = 30.0
STRING = "org.apache.kafka.connect.storage.StringConverter"


def test_each_of_two_hundred_connectors_sees_a_record_within_its_turn(
    tmp_path: Path, report: Callable[[str], None]
) -> None:
    with connectors_home(tmp_path, workers=1) as home:
        topics = [NewTopic(name=f"light-{number}", partitions=1) for number in range(TOPICS)]
        Admin(home.connection).create(topics)
        for number in range(MANY):
            make_sink(home, number)
        home.wait(lambda: has_begun(home), "all tasks to begin", seconds=300)
        took: list[float] = []
        seen: Counter[str] = Counter()
        for round_number in range(ROUNDS):
            readers = range(round_number, MANY, TOPICS)
            before = {number: size_of(home, number) for number in readers}
            producer = Producer(home.connection, f"light-{round_number}")
            producer.send(NewRecord(value=b"x"))
            producer.flush()
            took += arrivals(home, before, seen)

    took.sort()
    p95 = took[int(len(took) * 0.95)]
    report(f"{MANY} light connectors: p50 {took[len(took) // 2]:.1f} s, p95 {p95:.1f} s")
    assert p95 <= P95_S
    # Polled all the while: a task that waits for its turn is a task that runs.
    assert set(seen) == {"RUNNING"}


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


def arrivals(home: ConnectorsHome, before: dict[int, int], seen: Counter[str]) -> list[float]:
    """Return after how long each file has grown."""
    began = time.monotonic()
    found: dict[int, float] = {}

    def have_all_grown() -> bool:
        for number in before.keys() - found.keys():
            if size_of(home, number) > before[number]:
                found[number] = time.monotonic() - began
        seen.update(task.state for task in home.tasks())
        return len(found) == len(before)

    home.wait(have_all_grown, "all files to grow", seconds=4 * P95_S)
    return list(found.values())
