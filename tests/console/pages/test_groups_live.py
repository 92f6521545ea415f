"""A group's page over a real broker and a real collector: what a consumer does is soon on it."""

import asyncio
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from brokers.clock import SystemClock
from brokers.cluster.image import Broker
from brokers.key_files import write_keys
from console.monitoring.daemon import Cluster, Daemon, Settings
from console.monitoring.selectors import Follower, Reach
from console.queries import live
from tests.console import cluster_rows
from tests.fakes.broker import SECRET, RunningBroker
from tests.fakes.broker_thread import broker_beside

pytestmark = [pytest.mark.slow, pytest.mark.interop, pytest.mark.alone]

GROUP, TOPIC = "billing", "orders"
PARTITIONS = 2
RECORDS = 100
# After so long a commit is on a page that is asked for; an open page asks every three seconds.
SHOWN_SECONDS = 3.0
PATIENCE_SECONDS = 20.0
TICK_SECONDS = 0.05
OFF_SECONDS = 1.0


class Directory:
    """Names one broker."""

    def __init__(self, running: RunningBroker) -> None:
        broker = Broker(
            id=1,
            epoch=1,
            host=running.host,
            port=running.port,
            inspection_port=running.ready.inspection_port,
            is_fenced=False,
        )
        self._cluster = Cluster(id=cluster_rows.CLUSTER_ID, brokers=(broker,))

    def read(self) -> Cluster:
        return self._cluster


class Quiet:
    def info(self, event: str, /, **keys: object) -> None:
        """Tell nobody."""

    limited = info


@contextmanager
def collector_beside(folder: Path, directory: Directory) -> Iterator[Path]:
    """Run a collector in a thread, as often as the real one reads and looks; give its socket."""
    write_keys(folder / "inspection", (SECRET,))
    settings = Settings(
        socket=folder / "collector.sock",
        samples=folder / "samples.db",
        inspection_keys=folder / "inspection",
        metrics_keys=folder / "metrics",
    )
    ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = Future()

    async def serve() -> None:
        daemon = Daemon(settings, directory=directory, clock=SystemClock(), log=Quiet())
        await daemon.open()
        living = asyncio.create_task(daemon.run())
        ready.set_result((asyncio.get_running_loop(), living))
        await asyncio.gather(living, return_exceptions=True)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="collector", daemon=True)
    thread.start()
    loop, living = ready.result(PATIENCE_SECONDS)
    try:
        yield settings.socket
    finally:
        loop.call_soon_threadsafe(living.cancel)
        thread.join(PATIENCE_SECONDS)


class Page:
    """The page of the group, as a browser gets it."""

    def __init__(self, browser: Client) -> None:
        self._browser = browser

    def fact(self, title: str) -> str:
        """Return one of the values below the verdict; empty where the page has none."""
        page = self._browser.get("/group", {"name": GROUP}).content.decode()
        found = re.search(rf"<dt>{title}</dt><dd[^>]*>([^<]*)</dd>", page)
        return "" if found is None else found.group(1)

    @property
    def lag(self) -> str:
        return self.fact("Lag in records")

    @property
    def age(self) -> str:
        return self.fact("Lag in time")

    def verdict(self) -> str:
        page = self._browser.get("/group", {"name": GROUP}).content.decode()
        found = re.search(r'id="verdict"><div><span class="st \w+">([^<]+)</span>', page)
        return "" if found is None else found.group(1)

    def wait(self, fact: Callable[[], bool]) -> float:
        """Return after how many seconds something is on the page."""
        began, pause = time.monotonic(), threading.Event()
        while not fact():
            assert time.monotonic() - began < PATIENCE_SECONDS, (self.lag, self.age)
            pause.wait(TICK_SECONDS)
        return time.monotonic() - began


def write(producer: Any, number: int, *, age_s: float) -> None:
    written_ms = int((time.time() - age_s) * 1000)
    for index in range(number):
        producer.send(TOPIC, b"x", partition=index % PARTITIONS, timestamp_ms=written_ms)
    producer.flush(PATIENCE_SECONDS)


def lag_of(consumer: Any) -> int:
    """Return the lag as the client library has it."""
    places = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    ends = consumer.end_offsets(places)
    return sum(ends[place] - (consumer.committed(place) or 0) for place in places)


def commit(consumer: Any, offset: int) -> None:
    """Commit the same offset in both partitions."""
    places = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    consumer.commit({place: OffsetAndMetadata(offset, "", -1) for place in places})


def test_lag_is_that_of_the_client_library_and_on_the_page_at_once(
    alice: Client, tmp_path: Path, report: Callable[[str], None]
) -> None:
    cluster_rows.cluster()
    page = Page(alice)
    with (
        broker_beside(tmp_path / "broker", topics={TOPIC: PARTITIONS}) as broker,
        collector_beside(tmp_path, Directory(broker.running)) as socket,
    ):
        follower = Follower(Reach(socket=socket))
        live.use(follower)
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
        consumer = KafkaConsumer(
            bootstrap_servers=broker.bootstrap, group_id=GROUP, enable_auto_commit=False
        )
        consumer.assign([TopicPartition(TOPIC, index) for index in range(PARTITIONS)])
        try:
            write(producer, RECORDS, age_s=0)
            commit(consumer, RECORDS // PARTITIONS)
            seconds = [page.wait(lambda: page.lag == "0")]
            # One commit of a client that joins no group may be a reset; the third one is a reader.
            assert page.verdict() == "No members"

            # Behind: half of it is half a minute old, half of it ten seconds.
            write(producer, RECORDS, age_s=30)
            written_at = time.time() - 30
            seconds.append(page.wait(lambda: page.lag == str(lag_of(consumer)) == str(RECORDS)))
            # Until the leader has told its time, a record is as old as it is there.
            page.wait(lambda: seconds_of(page.age) > 20)
            assert abs(seconds_of(page.age) - (time.time() - written_at)) <= OFF_SECONDS
            write(producer, 2 * RECORDS, age_s=10)
            written_at = time.time() - 10
            commit(consumer, RECORDS)
            seconds.append(page.wait(lambda: page.lag == str(lag_of(consumer)) == str(2 * RECORDS)))
            page.wait(lambda: seconds_of(page.age) < 20)
            assert abs(seconds_of(page.age) - (time.time() - written_at)) <= OFF_SECONDS

            commit(consumer, RECORDS // PARTITIONS * 4)
            seconds.append(page.wait(lambda: page.lag == "0"))
            assert (page.verdict(), lag_of(consumer)) == ("OK", 0)
        finally:
            producer.close()
            consumer.close()
            live.use(None)
            follower.close()
    report(f"from a commit to its page: {', '.join(f'{each:.1f} s' for each in seconds)}")
    assert max(seconds[1:]) <= SHOWN_SECONDS


def seconds_of(words: str) -> float:
    """Return the middle of what is shown: 12 s is said from 12.0 to 12.9."""
    found = re.fullmatch(r"(\d+)(\.\d)? s", words)
    assert found is not None, words
    return int(found.group(1)) + 0.5
