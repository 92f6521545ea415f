"""Connectors: their cost in a home without any, and how long a record takes from producer to sink.

The home is one of `./samsa up`, with three brokers, console and gateway. It is measured at rest
first; then with a sink into a file, which gets one record at a time.
"""

import http.client
import json
import math
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from bench import soak
from bench.homes import BenchHome, running_home
from bench.measure import Cell, Table
from bench.processes import Process, family
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord, NewTopic

BROKERS: Final = 3
STARTS: Final = 3
# A start causes work that is not repeated.
SETTLE_SECONDS: Final = 60.0
REST_SECONDS: Final = 60.0
WARM_SECONDS: Final = 3.0
SHARE_PERCENT: Final = 4.0
PSS_MB: Final = 600.0
# Ten a second: a record finds the sink idle, or busy with the previous record.
RECORDS: Final = 300
PAUSE_SECONDS: Final = 0.1
P95_SECONDS: Final = 1.0
# A record that takes this long is lost.
LOST_SECONDS: Final = 60.0
# The first connector starts the processes of connectors.
BEGIN_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.002
TOPIC: Final = "bench-connect"
FILE: Final = "arrived.txt"
STRING: Final = "org.apache.kafka.connect.storage.StringConverter"
CONFIG: Final = {
    "connector.class": "samsa.file.sink",
    "topics": TOPIC,
    "file": FILE,
    "key.converter": STRING,
    "value.converter": STRING,
}
MB: Final = 1e6


def run(**_options: str | int) -> Iterator[Table]:
    with running_home(brokers=BROKERS) as home:
        warm = min(started_again(home) for _ in range(STARTS))
        time.sleep(SETTLE_SECONDS)
        supervisor = home.pids()["supervisor"]
        rest = soak.watch(supervisor, REST_SECONDS)
        pss = sum(Process(pid).pss_bytes() for pid in family(supervisor)) / MB
        yield at_rest(warm, rest.percent_in_all(), pss)
        yield to_a_sink(latencies(home))


def at_rest(warm: float, share: float, pss: float) -> Table:
    return Table(
        title="a home without connectors",
        columns=("what", "figure", "limit", "met"),
        rows=[
            judged(f"warm start, best of {STARTS}, s", warm, WARM_SECONDS),
            judged(f"at rest for {REST_SECONDS:g} s, % of a core", share, SHARE_PERCENT),
            judged("at rest, MB of PSS", pss, PSS_MB),
        ],
    )


def to_a_sink(took: Sequence[float]) -> Table:
    in_order = sorted(took)
    half, p95 = (in_order[math.ceil(len(in_order) * part) - 1] for part in (0.5, 0.95))
    return Table(
        title=f"{len(took)} records, one each {PAUSE_SECONDS:g} s, from a producer to a sink",
        columns=("what", "figure", "limit", "met"),
        rows=[
            ("p50, s", half, "", ""),
            judged("p95, s", p95, P95_SECONDS),
            ("the slowest, s", in_order[-1], "", ""),
        ],
        notes=("the clock runs from before the record is sent until the file is longer",),
    )


def judged(what: str, figure: float, limit: float) -> tuple[Cell, ...]:
    return what, figure, f"≤ {limit:g}", "yes" if figure <= limit else "NO"


def started_again(home: BenchHome) -> float:
    """Return after how many seconds a home that was stopped says that all is healthy."""
    home.stop()
    began = time.perf_counter()
    home.start(brokers=BROKERS)
    return time.perf_counter() - began


def latencies(home: BenchHome) -> list[float]:
    connection = Connection(bootstrap=str(home.status()["bootstrap"]))
    Admin(connection).create([NewTopic(name=TOPIC, partitions=1)])
    make_sink(home)
    file = home.folder / "files" / FILE
    producer = TopicWriter(connection, TOPIC)
    # The first one waits for processes to start.
    arrival(producer, file, BEGIN_SECONDS)
    took = []
    for _ in range(RECORDS):
        time.sleep(PAUSE_SECONDS)
        took.append(arrival(producer, file, LOST_SECONDS))
    return took


def arrival(producer: TopicWriter, file: Path, patience: float) -> float:
    """Send a record; return after how many seconds it is in the file."""
    before, began = size_of(file), time.perf_counter()
    producer.send(NewRecord(value=b"x"))
    producer.flush()
    while size_of(file) == before:
        if time.perf_counter() - began > patience:
            raise TimeoutError(f"no record came to {file} in {patience:g} s: see the home's logs")
        time.sleep(LOOK_SECONDS)
    return time.perf_counter() - began


def size_of(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def make_sink(home: BenchHome) -> None:
    token = home.says("tokens", "create", "bench", "--admin").strip()
    place = urlsplit(str(home.status()["connect"]))
    link = http.client.HTTPConnection(place.hostname or "", place.port, timeout=BEGIN_SECONDS)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        body = json.dumps({"name": "bench", "config": CONFIG})
        link.request("POST", "/connectors", body, headers)
        answer = link.getresponse()
        assert answer.status == http.HTTPStatus.CREATED, answer.read().decode()
    finally:
        link.close()
