"""A collector that was fed, behind the pages of a test: tables and details in their real shapes."""

import asyncio
import json
import time
from collections.abc import Coroutine, Mapping
from typing import Any, Final, TypeVar

from console.monitoring.collector import Collector
from console.monitoring.deltas import Mirror
from console.monitoring.pages import Pages
from console.monitoring.rings import Name
from console.monitoring.samples import Series
from console.monitoring.selectors import CollectorFailed, NotThere
from tests.builders.live import CLUSTER_ID, Told
from tests.fakes.broker_feed import Feed

T = TypeVar("T")

# A bucket more than bounds is what a broker counts its requests in.
BUCKET_BOUNDS_MS: Final = (1.0, 2.0)
OK: Final = 200
NOT_FOUND: Final = 404
ASKED: Final = ("/group", "/topic", "/broker", "/series", "/recent")


class Fed:
    """A collector that has read each broker's feed once."""

    cluster_id = CLUSTER_ID
    not_ready = ""
    targets: Final[Mapping[int, str]] = {}

    def __init__(self, feeds: Mapping[int, Feed], addresses: Mapping[int, str]) -> None:
        self.collector = Collector("run")
        self.collector.offline_partitions = 0
        self.collector.set_brokers(addresses)
        for broker, feed in feeds.items():
            said = {**feed.tell(), "bucket_bounds_ms": BUCKET_BOUNDS_MS}
            self.collector.take(broker, said, now_ms=self.now_ms())
        self.collector.look_at_once(self.now_ms())

    def now_ms(self) -> int:
        return int(time.time() * 1000)

    async def series(
        self, kind: str, name: Name, metric: str, *, start_s: int, end_s: int
    ) -> Series:
        """Return a line with a gap, whatever is asked for."""
        return Series(start_s=start_s, step_s=10, samples=[1.0, 2.0, float("nan"), 4.0])


def collect(told: Told, feeds: Mapping[int, Feed], addresses: Mapping[int, str]) -> None:
    """Have `told` tell what a collector makes of these feeds."""
    fed = Fed(feeds, addresses)
    pages = Pages(fed)
    text = "".join(fed.collector.deltas.since("", 0))
    mirror = Mirror()
    mirror.take({"run": "run", **json.loads(f"{{{text}}}")})
    told.tables = {name: dict(rows) for name, rows in mirror.tables.items()}

    def asker(path: str) -> Any:
        def ask(**query: str | int) -> Mapping[str, Any]:
            written = {name: str(value) for name, value in query.items()}
            answer = finished(pages.answer(path, written))
            said = "".join(answer.pieces)
            if answer.status == NOT_FOUND:
                raise NotThere(said)
            if answer.status != OK:
                raise CollectorFailed(said)
            found: Mapping[str, Any] = json.loads(said)
            return found

        return ask

    told.answers.update({path: asker(path) for path in ASKED})


def finished(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns that waits for nothing, whatever loop this thread has."""
    try:
        work.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    work.close()
    raise asyncio.InvalidStateError("it waits for something")
