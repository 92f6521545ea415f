"""Adds traffic to the feed: requests by API, bytes by topic, and both by client id.

Knows neither watchers nor stored steps. All numbers are sums since this broker started. A sum that
is lower than before has restarted: of a topic that was removed and came back, or of a client id
that was counted with the rest in between.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from brokers.replication.partition import Partition
from brokers.server.client_ledger import ClientRow
from brokers.server.json_pieces import array
from brokers.server.metrics import BOUNDS, Metrics
from brokers.slices import Slices

BUCKET_BOUNDS_MS: Final = tuple(bound * 1000 for bound in BOUNDS)
# api, requests, answers with an error in them, requests by how long they took
ApiRow = tuple[str, int, int, tuple[int, ...]]
API_COLUMNS: Final = ("api", "requests", "errors", "buckets")
TopicRow = tuple[str, int, int]
TOPIC_COLUMNS: Final = ("topic", "bytes_in", "bytes_out")

R = TypeVar("R", bound=tuple[Any, ...])


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficChanges:
    """The changes in one sample, or all rows."""

    apis: tuple[ApiRow, ...] = ()
    topics: tuple[TopicRow, ...] = ()
    clients: tuple[ClientRow, ...] = ()
    gone_topics: tuple[str, ...] = ()
    gone_clients: tuple[str | None, ...] = ()

    def __len__(self) -> int:
        rows = len(self.apis) + len(self.topics) + len(self.clients)
        return rows + len(self.gone_topics) + len(self.gone_clients)

    def json(self) -> Iterator[str]:
        """Write the changes as members of a JSON object."""
        yield from self.json_of_rows()
        yield ", "
        yield from array("gone_topics", self.gone_topics)
        yield ", "
        yield from array("gone_clients", self.gone_clients)

    def json_of_rows(self) -> Iterator[str]:
        """Write the rows without the removed keys, which a snapshot does not have."""
        yield from array("apis", self.apis)
        yield ", "
        yield from array("topics", self.topics)
        yield ", "
        yield from array("clients", self.clients)


class TrafficFeed:
    """Belongs to the event loop. One sample at a time; `note` and `lose` come before it."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        # The counts of each partition when it was last read, and the sums by topic.
        self._seen: dict[tuple[str, int], tuple[int, int]] = {}
        self._sums: dict[str, tuple[int, int]] = {}
        self._partitions: dict[str, int] = {}
        self._apis = _Rows[ApiRow]()
        self._topics = _Rows[TopicRow]()
        self._clients = _Rows[ClientRow]()

    def note(self, partition: Partition) -> None:
        """Add a partition's counts since the last call to the sums of its topic."""
        topic, key = partition.topic, (partition.topic, partition.index)
        now = (partition.appended_bytes, partition.sent_bytes)
        before = self._seen.get(key)
        if before == now:
            return
        if before is None:
            self._partitions[topic] = self._partitions.get(topic, 0) + 1
        if before is None or now[0] < before[0] or now[1] < before[1]:
            before = (0, 0)  # another run of the partition, which counts from zero
        self._seen[key] = now
        bytes_in, bytes_out = self._sums.get(topic, (0, 0))
        self._sums[topic] = (bytes_in + now[0] - before[0], bytes_out + now[1] - before[1])

    def lose(self, key: tuple[str, int]) -> None:
        """Forget a partition, and with the last one its topic."""
        if self._seen.pop(key, None) is None:
            return
        topic = key[0]
        self._partitions[topic] -= 1
        if not self._partitions[topic]:
            del self._partitions[topic], self._sums[topic]

    async def sample(self, slices: Slices) -> TrafficChanges:
        """Find what has changed since the last sample."""
        apis, _gone = await self._apis.take(self._api_rows(), slices)
        topics, gone_topics = await self._topics.take(
            ((topic, *sums) for topic, sums in list(self._sums.items())), slices
        )
        rows = await self._metrics.clients.rows(slices)
        clients, gone_clients = await self._clients.take(rows, slices)
        return TrafficChanges(
            apis=apis,
            topics=topics,
            clients=clients,
            gone_topics=gone_topics,
            gone_clients=gone_clients,
        )

    def snapshot(self) -> TrafficChanges:
        """Return all rows of the last sample."""
        return TrafficChanges(
            apis=tuple(self._apis.rows.values()),
            topics=tuple(self._topics.rows.values()),
            clients=tuple(self._clients.rows.values()),
        )

    def _api_rows(self) -> Iterator[ApiRow]:
        errors = self._metrics.request_errors
        for api, histogram in list(self._metrics.requests.items()):
            counts = tuple(histogram.counts)
            yield api, sum(counts), errors.get(api, 0), counts


class _Rows(Generic[R]):
    """The rows of one kind as the last sample found them, each under its first column."""

    def __init__(self) -> None:
        self.rows: dict[Any, R] = {}

    async def take(
        self, rows: Iterable[R], slices: Slices
    ) -> tuple[tuple[R, ...], tuple[Any, ...]]:
        """Replace all rows; return those that differ, and the keys that are gone."""
        before, after, changed = self.rows, {}, []
        for row in rows:
            after[row[0]] = row
            if before.get(row[0]) != row:
                changed.append(row)
            await slices.breathe()
        self.rows = after
        return tuple(changed), tuple(key for key in before if key not in after)
