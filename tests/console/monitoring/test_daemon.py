"""The collector as it runs: over a real broker, on a real socket, with a mirror that follows it."""

import asyncio
import gc
import json
import math
import os
import re
import sqlite3
import stat
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, TypeVar

import pytest

from brokers.clock import SystemClock
from brokers.cluster.image import Broker
from brokers.key_files import write_keys
from console.monitoring import daemon as daemon_module
from console.monitoring import sample_writer
from console.monitoring.daemon import BrokerReader, Cluster, Daemon, DirectoryFailed, Settings
from console.monitoring.metric_records import Moments, Published
from console.monitoring.rings import Finished
from console.monitoring.samples import Samples
from console.monitoring.selectors import (
    STALE_SECONDS,
    CollectorFailed,
    Follower,
    NotThere,
    Reach,
)
from tests.fakes.broker import SECRET, running_broker
from tests.fakes.listener import HOST

T = TypeVar("T")
KEY = "1.for-metrics"
PATIENCE_S = 20.0


class Told:
    """A directory that a test fills."""

    def __init__(self, *brokers: Broker) -> None:
        self.cluster = Cluster(id="cluster-1", brokers=brokers, offline_partitions=3)
        self.failure = ""

    def read(self) -> Cluster:
        if self.failure:
            raise DirectoryFailed(self.failure)
        return self.cluster


class Quiet:
    """Keeps what was logged."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, object]]] = []

    def info(self, event: str, /, **keys: object) -> None:
        self.events.append((event, keys))

    limited = info


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FEED_SECONDS", "LOOK_SECONDS", "DIRECTORY_SECONDS"):
        monkeypatch.setattr(daemon_module, name, 0.02)
    monkeypatch.setattr(daemon_module, "TIMES_SECONDS", 0.1)
    monkeypatch.setattr(sample_writer, "PORTION_SECONDS", 0.02)


def told_settings(folder: Path, *, address: tuple[str, int] | None = None) -> Settings:
    write_keys(folder / "inspection", (SECRET,))
    write_keys(folder / "metrics", (KEY,))
    return Settings(
        socket=folder / "collector.sock",
        samples=folder / "samples.db",
        inspection_keys=folder / "inspection",
        metrics_keys=folder / "metrics",
        address=address,
    )


@asynccontextmanager
async def running(
    settings: Settings, directory: Told, *, outlet: "Outlet | None" = None
) -> AsyncIterator[Daemon]:
    daemon = Daemon(settings, directory=directory, clock=SystemClock(), log=Quiet(), outlet=outlet)
    await daemon.open()
    living = asyncio.create_task(daemon.run())
    try:
        yield daemon
    finally:
        living.cancel()
        await asyncio.gather(living, return_exceptions=True)


async def until(fact: Callable[[], T]) -> T:
    """Wait for something that a thread or a task of the collector brings about."""
    end = time.monotonic() + PATIENCE_S
    while True:
        found = await asyncio.to_thread(fact)
        if found:
            return found
        assert time.monotonic() < end, "it did not come about"
        await asyncio.sleep(0)


def at(port: int, inspection_port: int, *, broker_id: int = 1) -> Broker:
    return Broker(
        id=broker_id,
        epoch=1,
        host=HOST,
        port=port,
        inspection_port=inspection_port,
        is_fenced=False,
    )


def followed(settings: Settings) -> Follower:
    return Follower(Reach(socket=settings.socket))


@pytest.mark.slow
def test_a_mirror_shows_what_a_broker_tells_and_stays_when_the_collector_dies(
    tmp_path: Path,
) -> None:
    now = [0.0]

    async def story() -> None:
        settings = told_settings(tmp_path)
        async with running_broker(tmp_path / "b", topics={"orders": 2}) as broker:
            directory = Told(at(broker.port, broker.ready.inspection_port))
            follower = Follower(Reach(socket=settings.socket), monotonic=lambda: now[0])
            async with running(settings, directory):
                mode = stat.S_IMODE(os.stat(settings.socket).st_mode)
                assert mode & 0o077 == 0

                def is_read() -> bool:
                    follower.follow_once()
                    return "orders" in follower.snapshot().topics()

                await until(is_read)
                snapshot = follower.snapshot()
                assert snapshot.topics()["orders"].partitions == 2
                assert (snapshot.cluster_id, snapshot.offline_partitions) == ("cluster-1", 3)
                assert [each.failure for each in snapshot.brokers()] == [""]
                assert (snapshot.is_stale, snapshot.failure) == (False, "")
                detail = await asyncio.to_thread(follower.ask, "/topic", name="orders")
                assert [row[0] for row in detail["partitions"]] == [0, 1]
                with pytest.raises(NotThere, match="no broker reports a topic named 'nobody'"):
                    await asyncio.to_thread(follower.ask, "/topic", name="nobody")

            now[0] += STALE_SECONDS + 0.5
            await asyncio.to_thread(follower.follow_once)
            gone = follower.snapshot()
            assert gone.is_stale
            assert "orders" in gone.topics()
            assert "does not answer" in gone.failure

            async with running(settings, directory):

                def is_back() -> bool:
                    follower.follow_once()
                    return not follower.snapshot().failure

                await until(is_back)
                assert not follower.snapshot().is_stale
                assert "orders" in follower.snapshot().topics()
            follower.close()

    asyncio.run(story())


def test_until_it_knows_its_brokers_it_says_why_and_no_page_is_empty(tmp_path: Path) -> None:
    async def story() -> None:
        settings = told_settings(tmp_path)
        directory = Told()
        directory.failure = "the database does not answer"
        async with running(settings, directory) as daemon:
            follower = followed(settings)

            def says_why() -> bool:
                follower.follow_once()
                return "the database does not answer" in follower.snapshot().failure

            await until(says_why)
            assert not follower.snapshot().is_there
            assert daemon.cluster_id == ""
            with pytest.raises(CollectorFailed, match="database"):
                await asyncio.to_thread(follower.ask, "/health")
            follower.close()

    asyncio.run(story())


class Outlet:
    """Keeps what it was handed."""

    def __init__(self) -> None:
        self.published = Published()
        self.brokers: list[str] = []
        self.offered: list[Moments] = []
        self.is_closed = False

    def set_brokers(self, addresses: Sequence[str]) -> None:
        self.brokers = list(addresses)

    def offer(self, moments: Moments) -> None:
        self.published.written += len(moments)
        self.offered.append(moments)

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.slow
def test_each_sample_is_offered_to_the_outlet_and_its_counts_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_module, "STEP_S", 0.05)

    async def story() -> None:
        outlet = Outlet()
        settings = told_settings(tmp_path)
        async with running_broker(tmp_path / "b", topics={"orders": 2}) as broker:
            directory = Told(at(broker.port, broker.ready.inspection_port))
            async with running(settings, directory, outlet=outlet):
                await until(lambda: len(outlet.offered) > 1)
                moments = outlet.offered[-1]
                assert (moments.cluster_id, moments.partitions) == ("cluster-1", {"orders": 2})
                assert outlet.brokers == [f"{HOST}:{broker.port}"]
                told = (await raw(settings, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")).decode()
                assert "# TYPE samsa_metrics_topic_records_total counter" in told
                assert re.search(r"^samsa_metrics_topic_records_total [1-9]", told, re.MULTILINE)
                assert "\nsamsa_metrics_topic_dropped_total 0" in told
        assert outlet.is_closed

    asyncio.run(story())


def test_a_broker_that_is_away_is_named_and_the_others_are_shown(tmp_path: Path) -> None:
    async def story() -> None:
        settings = told_settings(tmp_path)
        # Port 1 is nobody's.
        async with running(settings, Told(at(9092, 1))):
            follower = followed(settings)

            def is_read() -> bool:
                follower.follow_once()
                return bool(follower.snapshot().silent_brokers())

            await until(is_read)
            (broker,) = follower.snapshot().silent_brokers()
            assert f"{HOST}:1 did not answer" in broker.failure
            follower.close()

    asyncio.run(story())


@pytest.mark.parametrize("told", [{"kind": "steps", "steps": ["x"]}, ["x"], {"kind": "snapshot"}])
def test_a_broker_whose_feed_has_another_shape_is_named_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: Any
) -> None:
    answers = [told]

    async def feed(_reader: BrokerReader) -> Any:
        return answers.pop() if answers else {"kind": "steps", "steps": []}

    monkeypatch.setattr(BrokerReader, "feed", feed)

    async def story() -> None:
        log = Quiet()
        daemon = Daemon(
            told_settings(tmp_path), directory=Told(at(9092, 1)), clock=SystemClock(), log=log
        )
        living = asyncio.create_task(daemon.run())
        try:
            await until(lambda: "feed.unreadable" in [event for event, _ in log.events])
            await until(lambda: not daemon.collector.observed.brokers[1].failure)
        finally:
            living.cancel()
            await asyncio.gather(living, return_exceptions=True)

    asyncio.run(story())


async def raw(settings: Settings, request: str) -> bytes:
    reader, writer = await asyncio.open_unix_connection(settings.socket)
    writer.write(request.encode())
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("target", "status", "words"),
    [
        ("/nothing", 404, "there is no '/nothing' here"),
        ("/series?kind=cup", 400, "kind='cup': one of cluster, broker"),
        ("/series?kind=topic&metric=size", 400, "no metric 'size': one of records"),
        ("/series?kind=topic&metric=records&from=9&to=5", 400, "from=9 to=5"),
        ("/series?kind=topic&metric=records&max_points=0", 400, "max_points=0: 1 to 2000"),
        ("/series?kind=topic&metric=records&max_points=x", 400, "max_points='x' is not a whole"),
        ("/snapshot?since=-1", 400, "since='-1' is not the number of a step"),
        ("/broker?id=x", 400, "id='x' is not a broker id"),
        ("/broker?id=7", 404, "the cluster has no broker 7"),
        ("/group?name=g&rows=x", 400, "rows='x' is not a whole number"),
        ("/recent?kind=cup", 400, "kind='cup': one of topic, group"),
        ("/recent?kind=group&names=x", 400, "names= is a JSON array of strings"),
        ("/group?name=g", 404, "no broker reports a group named 'g'"),
    ],
)
def test_a_question_that_has_no_answer_is_told_why(
    tmp_path: Path, target: str, status: int, words: str
) -> None:
    async def story() -> None:
        settings = told_settings(tmp_path)
        async with running(settings, Told()) as daemon:
            await until(lambda: not daemon.not_ready)
            answer = await raw(settings, f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n")
            assert f"HTTP/1.1 {status} ".encode() in answer
            assert words.encode() in answer

    asyncio.run(story())


@pytest.mark.parametrize(
    "request_text",
    [
        "POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: x\r\nX: " + "x" * 40_000 + "\r\n\r\n",
        "\0\0\0\0",
        "GET /health?" + "&".join("a=b" for _ in range(50)) + " HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_a_hostile_request_is_refused_and_the_next_one_served(
    tmp_path: Path, request_text: str
) -> None:
    async def story() -> None:
        settings = told_settings(tmp_path)
        async with running(settings, Told()) as daemon:
            await until(lambda: not daemon.not_ready)
            assert b" 200 " not in await raw(settings, request_text)
            assert b" 200 " in await raw(settings, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n")

    asyncio.run(story())


def test_on_an_address_it_asks_for_the_metrics_key(tmp_path: Path) -> None:
    async def story() -> None:
        settings = told_settings(tmp_path, address=(HOST, 0))
        async with running(settings, Told()) as daemon:
            await until(lambda: not daemon.not_ready)
            address = (HOST, daemon.port)
            stranger = Follower(Reach(socket=settings.socket, address=address))
            with pytest.raises(CollectorFailed, match="show the metrics key"):
                await asyncio.to_thread(stranger.ask, "/snapshot")
            wrong = Follower(Reach(socket=settings.socket, address=address, keys=lambda: ("no",)))
            with pytest.raises(CollectorFailed, match="show the metrics key"):
                await asyncio.to_thread(wrong.ask, "/group", name="x")
            known = Follower(Reach(socket=settings.socket, address=address, keys=lambda: (KEY,)))
            assert (await asyncio.to_thread(known.ask, "/snapshot"))["cluster_id"] == "cluster-1"
            assert (await asyncio.to_thread(stranger.ask, "/health"))["ready"] is True

    asyncio.run(story())


def test_prometheus_discovers_the_inspection_ports_of_brokers(tmp_path: Path) -> None:
    async def story() -> None:
        settings = told_settings(tmp_path)
        # Nobody listens there: a broker that is away is a target, too.
        brokers = Told(at(9092, 1, broker_id=1), at(9093, 2, broker_id=2))
        async with running(settings, brokers) as daemon:
            await until(lambda: len(daemon.targets) == 2)
            answer = await raw(settings, "GET /targets HTTP/1.1\r\nHost: x\r\n\r\n")
            for broker_id in (1, 2):
                target = {"targets": [f"{HOST}:{broker_id}"], "labels": {"broker": f"{broker_id}"}}
                assert json.dumps(target).encode() in answer

    asyncio.run(story())


async def series(settings: Settings, **query: str | int) -> Any:
    wanted = "&".join(f"{key}={value}" for key, value in query.items())
    answer = await raw(
        settings, f"GET /series?{wanted} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    assert b" 200 " in answer
    body = answer.split(b"\r\n\r\n", 1)[1]
    return json.loads(body[body.index(b"{") : body.rindex(b"}") + 1])


def test_a_stop_writes_what_is_only_in_memory_and_a_start_reads_it(tmp_path: Path) -> None:
    async def story() -> None:
        settings = told_settings(tmp_path)
        now_s = int(time.time())
        query: dict[str, str | int] = {"kind": "cluster", "metric": "lag", "from": now_s - 600}
        query["to"] = now_s + 60
        async with running(settings, Told()) as daemon:
            await until(lambda: not daemon.not_ready)
            daemon.collector.rings["cluster"].set(("",), (1.0, 2.0, 3.0, 4.0, 5.0, 77.0))
            daemon.collector.sample(daemon.now_ms())
            found = await series(settings, **query)
            assert 77.0 in found["samples"]
            assert found["samples"].count(None) == len(found["samples"]) - 1
        async with running(settings, Told()) as daemon:
            await until(lambda: not daemon.not_ready)
            again = await series(settings, **query)
            assert again == found
            assert not math.isnan(77.0)

    asyncio.run(story())


def test_a_stop_waits_for_the_thread_that_uses_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    entered, released = threading.Event(), threading.Event()

    def prune(_file: Samples, _now_s: int) -> None:
        entered.set()
        assert released.wait(PATIENCE_S)
        order.append("pruned")

    really_close = Samples.close

    def close(file: Samples) -> None:
        order.append("closed")
        really_close(file)

    monkeypatch.setattr(Samples, "prune", prune)
    monkeypatch.setattr(Samples, "close", close)

    async def story() -> None:
        settings = told_settings(tmp_path)
        daemon = Daemon(settings, directory=Told(), clock=SystemClock(), log=Quiet())
        await daemon.open()
        living = asyncio.create_task(daemon.run())
        await until(entered.is_set)
        living.cancel()
        for _turn in range(20):
            await asyncio.sleep(0)
        assert order == []
        released.set()
        await asyncio.gather(living, return_exceptions=True)

    asyncio.run(story())
    assert order == ["pruned", "closed"]


def test_a_stop_in_the_middle_of_a_block_writes_each_series_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sample_writer, "PORTION", 2)
    monkeypatch.setattr(sample_writer, "PORTION_SECONDS", 0.01)
    # No sample of the collector's own begins another block of the same series.
    monkeypatch.setattr(daemon_module, "STEP_S", 3600)
    written: list[tuple[str, ...]] = []

    def add(_file: Samples, blocks: Iterable[Finished]) -> int:
        # The block that has just begun has its series, and no sample.
        added = [block.name for block in blocks if block.metrics[0]]
        written.extend(added)
        return len(added)

    monkeypatch.setattr(Samples, "add", add)

    async def story() -> None:
        settings = told_settings(tmp_path)
        async with running(settings, Told()) as daemon:
            await until(lambda: not daemon.not_ready)
            ring = daemon.collector.rings["topic"]
            for number in range(9):
                ring.set((f"t-{number}",), (1.0, 1.0, 1.0, 1.0))
            ring.sample(ring.block_s)
            daemon._samples.put([ring.finish()])  # noqa: SLF001 - as a sample does
            await until(lambda: len(written) >= 4)

    asyncio.run(story())
    topics = [name for name in written if name[0].startswith("t-")]
    assert sorted(topics) == [(f"t-{number}",) for number in range(9)]


def test_a_mirror_refuses_a_collector_of_another_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        settings = told_settings(tmp_path)
        monkeypatch.setattr("console.monitoring.pages.FORMAT", 99)
        async with running(settings, Told()) as daemon:
            await until(lambda: not daemon.not_ready)
            follower = followed(settings)
            await asyncio.to_thread(follower.follow_once)
            assert "another release (format 99)" in follower.snapshot().failure
            follower.close()

    asyncio.run(story())


def test_a_file_that_another_program_holds_keeps_nothing_but_history_back(tmp_path: Path) -> None:
    async def story() -> None:
        settings = told_settings(tmp_path)
        now_s = int(time.time())
        query: dict[str, str | int] = {"kind": "cluster", "metric": "lag", "from": now_s - 600}
        query["to"] = now_s + 60
        with closing(sqlite3.connect(settings.samples, isolation_level=None)) as holder:
            # Of a file that is not in WAL mode, which also keeps readers away.
            holder.execute("BEGIN EXCLUSIVE")
            async with running(settings, Told()) as daemon:
                await until(lambda: not daemon.not_ready)
                daemon.collector.rings["cluster"].set(("",), (1.0, 2.0, 3.0, 4.0, 5.0, 77.0))
                daemon.collector.sample(daemon.now_ms())
                assert 77.0 in (await series(settings, **query))["samples"]
                holder.rollback()

    asyncio.run(story())

    assert not list(tmp_path.glob("*.damaged*"))


def test_work_that_fails_after_its_caller_was_cancelled_logs_no_traceback() -> None:
    begun, may_end = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait(PATIENCE_S)
        raise ConnectionError("the broker's former port")

    async def story() -> list[dict[str, Any]]:
        reported: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: reported.append(context))
        waiting = asyncio.create_task(sample_writer.run_to_end(work))
        await asyncio.to_thread(begun.wait, PATIENCE_S)
        waiting.cancel()
        may_end.set()
        await asyncio.gather(waiting, return_exceptions=True)
        assert waiting.cancelled()
        gc.collect()
        return reported

    assert asyncio.run(story()) == []
