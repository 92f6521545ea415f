"""The collector's process over replayed feeds: what a web server under a benchmark reads.

Everything that the real one has, less its readers of brokers: a made-up feed takes their place,
once a second. Its file begins with seven days of some series. It says on its standard output when
it serves, and ends when its standard input does.
"""

import asyncio
import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from bench.console_feeds import BROKERS, Feeds, Size, group_name, topic_name
from brokers.clock import SystemClock
from brokers.cluster.image import Broker
from console.monitoring.daemon import Cluster, Daemon, Settings
from console.monitoring.rings import BLOCK_S, BLOCK_STEPS, KINDS, Finished
from console.monitoring.samples import KEPT_S, Samples

FEED_SECONDS: Final = 1.0
# The series that have a past, by kind: a page of each is measured with its longest chart.
WITH_PAST: Final = (
    ("cluster", ("",)),
    ("broker", ("1",)),
    ("topic", (topic_name(0),)),
    ("group", (group_name(0),)),
)


class Named:
    """The cluster's brokers, of which the collector may know no inspection port."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        self._cluster = Cluster(
            id=job["cluster_id"],
            brokers=[
                Broker(id=number + 1, epoch=1, host=job["host"], port=job["port"], is_fenced=False)
                for number in range(BROKERS)
            ],
        )

    def read(self) -> Cluster:
        return self._cluster


class Quiet:
    """A log that nobody reads."""

    def info(self, event: str, /, **keys: object) -> None: ...

    def limited(self, event: str, /, **keys: object) -> None: ...


def main() -> None:
    asyncio.run(watch(json.loads(sys.stdin.readline())))


async def watch(job: Mapping[str, Any]) -> None:
    settings = settings_in(Path(job["folder"]), Path(job["socket"]))
    fill(settings.samples, now_s=int(time.time()))
    daemon = Daemon(settings, directory=Named(job), clock=SystemClock(), log=Quiet())
    names = ("topics", "partitions", "groups", "committed")
    feeds = Feeds(Size(**{name: job[name] for name in names}))
    daemon.collector.set_brokers({number + 1: job["host"] for number in range(BROKERS)})
    for number in range(BROKERS):
        take(daemon, number, feeds.snapshot(number, daemon.now_ms()))
    await daemon.open()
    living = [asyncio.create_task(daemon.run()), asyncio.create_task(feed(daemon, feeds, job))]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    for task in living:
        task.cancel()
    await asyncio.gather(*living, return_exceptions=True)


async def feed(daemon: Daemon, feeds: Feeds, job: Mapping[str, Any]) -> None:
    """Tell, each second, what moved at each broker."""
    while True:
        began = time.monotonic()
        for number in range(BROKERS):
            take(daemon, number, feeds.step(number, job["moving"], daemon.now_ms()))
            await asyncio.sleep(0)
        await asyncio.sleep(max(0.1, FEED_SECONDS - (time.monotonic() - began)))


def take(daemon: Daemon, number: int, text: str) -> None:
    daemon.collector.take(number + 1, json.loads(text), now_ms=daemon.now_ms())


def settings_in(folder: Path, socket: Path) -> Settings:
    return Settings(
        socket=socket,
        samples=folder / "samples.db",
        inspection_keys=folder / "secrets" / "inspection",
        metrics_keys=folder / "secrets" / "metrics",
    )


def fill(file: Path, *, now_s: int) -> None:
    """Write the past that a collector of seven days has."""
    samples = Samples(file)
    samples.add(past(now_s))
    samples.close()


def past(now_s: int) -> Iterator[Finished]:
    first_s = now_s - max(KEPT_S.values())
    first_s -= first_s % BLOCK_S
    for kind, name in WITH_PAST:
        metrics = tuple([float(step) for step in range(BLOCK_STEPS)] for _ in KINDS[kind].metrics)
        for start_s in range(first_s, now_s - BLOCK_S, BLOCK_S):
            yield Finished(kind, name, start_s, metrics)


if __name__ == "__main__":
    main()
