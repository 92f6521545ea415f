"""Runs the collector: follows the brokers, evaluates, samples and serves until it is stopped.

The composition root of this package. The `Directory` argument locates the cluster's brokers;
nothing here knows a database of Django's.
"""

import asyncio
import gc
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from brokers import beats
from brokers.clock import Clock
from brokers.cluster.image import Broker
from brokers.inspection.client import Inspection, InspectionFailed
from brokers.key_files import KeyFile
from console.monitoring.collector import Collector
from console.monitoring.groups import Pair
from console.monitoring.lags import Place
from console.monitoring.metric_records import Moments, Published
from console.monitoring.pages import Pages
from console.monitoring.rings import STEP_S, Name
from console.monitoring.sample_writer import Log, SampleWriter, run_to_end
from console.monitoring.samples import Samples, Series
from console.monitoring.server import make_server

T = TypeVar("T")

FEED_SECONDS: Final = 1.0
# A broker that hangs blocks one thread for this long.
DEADLINE_SECONDS: Final = 3.0
# How often groups are evaluated without news: silence has a verdict too.
LOOK_SECONDS: Final = 3.0
# News of groups or topics is evaluated at once: in a small cluster this long after the last look,
# in a large one within this share of a core. A commit is then on a page after one feed, one request
# of the web server and one refresh, 5 s at most.
NEWS_SECONDS: Final = 0.2
LOOK_SHARE: Final = 0.05
# A look of half a second would block every page that requests a series.
TURN_SECONDS: Final = 0.005
# Less than a second, so that the age of the oldest record is accurate to a second.
TIMES_SECONDS: Final = 0.8
# How soon a new broker is followed.
DIRECTORY_SECONDS: Final = 5.0
GARBAGE_THRESHOLD: Final = 100_000
# Brokers that are asked at the same time: each takes a thread while it answers.
MAX_AT_ONCE: Final = 4


class DirectoryFailed(Exception):
    """The brokers cannot be located now; the message says why."""


class NoClusterYet(DirectoryFailed):
    """The home is new, and its agent will create the cluster shortly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The control plane's data about the cluster."""

    id: str
    brokers: Sequence[Broker] = ()
    offline_partitions: int = 0
    # `retention.ms` by topic, and the default of the others; -1 is unlimited.
    retention_ms: Mapping[str, int] = field(default_factory=dict)
    default_retention_ms: int | None = None


class Directory(Protocol):
    def read(self) -> Cluster:
        """Return the present state of the cluster. Blocks. Raises DirectoryFailed."""
        ...


class Outlet(Protocol):
    """An additional destination of the samples. Only `close` may block."""

    published: Published

    def set_brokers(self, addresses: Sequence[str]) -> None: ...

    def offer(self, moments: Moments) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    socket: Path
    samples: Path
    inspection_keys: Path
    metrics_keys: Path
    address: tuple[str, int] | None = None


class BrokerReader:
    """Reads the feed of one broker, one request at a time, in a thread."""

    def __init__(self, broker: Broker, keys: KeyFile, limit: asyncio.Semaphore) -> None:
        self.broker = broker
        self._limit = limit
        self._one = asyncio.Lock()
        self._inspection = Inspection(
            broker.host,
            broker.inspection_port,
            lambda: next(iter(keys.keys()), ""),
            deadline_seconds=DEADLINE_SECONDS,
        )

    def is_for(self, broker: Broker) -> bool:
        return _place(broker) == _place(self.broker)

    async def feed(self) -> Mapping[str, Any]:
        async with self._limit, self._one:
            return await run_to_end(self._inspection.feed)

    async def times(self, places: Sequence[Place]) -> list[int | str | None]:
        async with self._limit, self._one:
            return await run_to_end(lambda: self._inspection.times(places))

    def close(self) -> None:
        self._inspection.close()


class Daemon:
    """The collector's loops. Runs once, on one event loop."""

    def __init__(
        self,
        settings: Settings,
        *,
        directory: Directory,
        clock: Clock,
        log: Log,
        outlet: Outlet | None = None,
    ) -> None:
        self.collector = Collector(os.urandom(8).hex())
        self._outlet = outlet
        if outlet is not None:
            self.collector.published = outlet.published
        self.cluster_id = ""
        # The inspection address of each broker.
        self.targets: Mapping[int, str] = {}
        self.not_ready = "the collector has not found its cluster yet"
        self._settings = settings
        self._directory = directory
        self._clock = clock
        self._log = log
        self._keys = KeyFile(settings.inspection_keys, monotonic=clock.monotonic)
        metrics_keys = KeyFile(settings.metrics_keys, monotonic=clock.monotonic)
        self._server = make_server(Pages(self).answer, metrics_keys.keys, clock)
        self._readers: dict[int, tuple[BrokerReader, asyncio.Task[None]]] = {}
        self._limit = asyncio.Semaphore(MAX_AT_ONCE)
        self._news = asyncio.Event()  # news that no look has seen yet
        self._asked: set[int] = set()  # brokers that answered or failed at least once
        self._samples = SampleWriter(
            Samples(settings.samples), self.collector.rings, now_ms=clock.now_ms, log=log
        )
        self.port = 0  # of the TCP address, if one is set

    def now_ms(self) -> int:
        return self._clock.now_ms()

    async def open(self) -> None:
        """Start serving. Raises OSError if a socket or an address is not available."""
        await self._samples.open()
        await self._server.open_socket(self._settings.socket)
        if self._settings.address is not None:
            host, port = self._settings.address
            self.port = await self._server.open_address(host, port)

    async def run(self) -> None:
        """Follow the cluster until cancelled, then write the remaining samples."""
        own = (self._follow, self._look, self._ask_times, self._sample)
        loops = (*own, self._samples.write, self._samples.prune)
        try:
            async with asyncio.TaskGroup() as tasks:
                for loop in loops:
                    tasks.create_task(loop())
        finally:
            await self._close()

    # --- loops ---------------------------------------------------------------------------------

    async def _follow(self) -> None:
        """Keep one reader for each broker of the cluster."""
        while True:
            try:
                cluster = await run_to_end(self._directory.read)
            except DirectoryFailed as error:
                # Known brokers are still read meanwhile.
                if not isinstance(error, NoClusterYet):
                    self._log.limited("directory.failed", reason=str(error))
                if not self.cluster_id:
                    self.not_ready = f"the collector does not know the brokers yet: {error}"
            else:
                self._take_cluster(cluster)
            await asyncio.sleep(DIRECTORY_SECONDS if self.cluster_id else FEED_SECONDS)

    def _take_cluster(self, cluster: Cluster) -> None:
        self.cluster_id = cluster.id
        self.collector.offline_partitions = cluster.offline_partitions
        self.collector.lags.set_retention(cluster.retention_ms, cluster.default_retention_ms)
        wanted = {broker.id: broker for broker in cluster.brokers if broker.inspection_port}
        addresses = {broker.id: f"{broker.host}:{broker.port}" for broker in cluster.brokers}
        self.collector.set_brokers(addresses)
        if self._outlet is not None:
            self._outlet.set_brokers(list(addresses.values()))
        self.targets = {
            broker.id: f"{broker.host}:{broker.inspection_port}" for broker in wanted.values()
        }
        for broker_id, (reader, task) in list(self._readers.items()):
            if broker_id not in wanted or not reader.is_for(wanted[broker_id]):
                task.cancel()
                del self._readers[broker_id]
        for broker in wanted.values():
            if broker.id not in self._readers:
                reader = BrokerReader(broker, self._keys, self._limit)
                task = asyncio.create_task(self._read(reader))
                self._readers[broker.id] = (reader, task)
        self._judge_ready()

    def _judge_ready(self) -> None:
        """Mark the collector as ready, permanently, once every broker was asked."""
        if self.not_ready and self.cluster_id and self._readers.keys() <= self._asked:
            self.collector.look_at_once(self.now_ms())
            self.not_ready = ""

    async def _read(self, reader: BrokerReader) -> None:
        """Read the feed of one broker again and again."""
        broker_id = reader.broker.id
        try:
            while True:
                began = self._clock.monotonic()
                try:
                    told = await reader.feed()
                    if self.collector.take(broker_id, told, now_ms=self.now_ms()):
                        self._news.set()
                except InspectionFailed as error:
                    self.collector.observed.fail(broker_id, str(error))
                except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
                    # Attribute a malformed feed to its broker alone.
                    reason = f"{reader.broker.host} sent a feed that cannot be read: {error!r}"
                    self.collector.observed.fail(broker_id, reason)
                    self._log.limited("feed.unreadable", broker=broker_id, error=repr(error))
                self._asked.add(broker_id)
                self._judge_ready()
                spent = self._clock.monotonic() - began
                await asyncio.sleep(max(0.1, FEED_SECONDS - spent))
        finally:
            reader.close()

    async def _look(self) -> None:
        pause = LOOK_SECONDS
        while True:
            await asyncio.sleep(pause)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, LOOK_SECONDS - pause)):
                    await self._news.wait()
            if self.not_ready:
                continue
            self._news.clear()
            spent = await self._look_in_turns()
            pause = min(LOOK_SECONDS, max(NEWS_SECONDS, spent / LOOK_SHARE))

    async def _look_in_turns(self) -> float:
        """Look, yielding to other tasks in between; return the seconds of work."""
        monotonic = self._clock.monotonic
        spent, began = 0.0, monotonic()
        for _pause in self.collector.look(self.now_ms()):
            if monotonic() - began >= TURN_SECONDS:
                spent += monotonic() - began
                await asyncio.sleep(0)
                began = monotonic()
        return spent + monotonic() - began

    async def _ask_times(self) -> None:
        while True:
            await asyncio.sleep(TIMES_SECONDS)
            for broker_id, asked in self.collector.lags.questions().items():
                await self._ask_broker(broker_id, asked)

    async def _ask_broker(self, broker_id: int, asked: list[tuple[Pair, Place]]) -> None:
        found = self._readers.get(broker_id)
        if found is None:
            return
        with suppress(InspectionFailed):
            times = await found[0].times([place for _pair, place in asked])
            self.collector.lags.answer(asked, times)

    async def _sample(self) -> None:
        while True:
            # Sample at full ten seconds, so that the samples of every run share one grid.
            await asyncio.sleep(STEP_S - self.now_ms() / 1000 % STEP_S)
            if self.not_ready:
                continue
            self._samples.put(self.collector.sample(self.now_ms()))
            if self._outlet is not None:
                self._outlet.offer(self.collector.moments(self.now_ms(), self.cluster_id))

    async def series(
        self, kind: str, name: Name, metric: str, *, start_s: int, end_s: int
    ) -> Series:
        return await self._samples.read(kind, name, metric, start_s=start_s, end_s=end_s)

    async def _close(self) -> None:
        for _reader, task in self._readers.values():
            task.cancel()
        tasks = [task for _reader, task in self._readers.values()]
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._server.close()
        self._settings.socket.unlink(missing_ok=True)
        if self._outlet is not None:
            await run_to_end(self._outlet.close)
        self._samples.close(self.collector.end_blocks())


def _place(broker: Broker) -> tuple[str, int, int]:
    return broker.host, broker.inspection_port, broker.epoch


def run(daemon: Daemon, ready_pipe: int) -> None:
    """Run until SIGTERM or SIGINT, and tell the process at the pipe, if any, that it serves."""
    # Thousands of rows are replaced each second and form no cycles: with the default thresholds,
    # the garbage collector would traverse all of them several times a second.
    gc.set_threshold(GARBAGE_THRESHOLD, *gc.get_threshold()[1:])
    asyncio.run(_serve(daemon, ready_pipe))


async def _serve(daemon: Daemon, ready_pipe: int) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    await daemon.open()
    beats.say_ready(ready_pipe, {"ready": True})
    async with asyncio.TaskGroup() as tasks:
        living = tasks.create_task(daemon.run())
        beating = tasks.create_task(beats.keep_beating(ready_pipe))
        await stopped.wait()
        beating.cancel()
        living.cancel()
