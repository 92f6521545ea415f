"""Gives pages access to the collector: a mirror of its tables, details and series.

The only module of this package that the web uses. One thread of a web server follows the collector:
it reads all rows once and then changes, and no page waits for it. If the collector is down, the
mirror keeps its data and reports their age; it is never emptied for that.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from brokers.http.address import Address
from brokers.http.client import Connection
from brokers.http.protocol import NoResponse
from brokers.key_files import KeyFile
from console.monitoring.deltas import Mirror, Row
from console.monitoring.rings import KINDS
from console.monitoring.tables import (
    FORMAT,
    BrokerRow,
    GroupRow,
    PairRow,
    TopicRow,
    pair_key,
)
from console.monitoring.verdicts import ALARMS, Verdict

FOLLOW_SECONDS: Final = 1.0
DEADLINE_SECONDS: Final = 2.0
# Older data is stale; a page says so 5 s after the collector died, which leaves one second for the
# request and the answer of the page.
STALE_SECONDS: Final = 4.0
# All tables of the largest supported cluster take some 10 MB.
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
MAX_REASON: Final = 300
# The metrics of each kind of series.
METRICS: Final = {kind.name: kind.metrics for kind in KINDS.values()}
# The index of the verdict in a group's row.
VERDICT: Final = [field.name for field in fields(GroupRow)].index("verdict")
# Verdicts that need attention, as rows have them.
HURT: Final = frozenset(verdict.value for verdict in ALARMS)
# The fields of a snapshot beside its tables.
HEAD: Final = ("cluster_id", "ms", "told_ms", "offline_partitions", "is_cut")


class CollectorFailed(Exception):
    """The collector did not answer, or refused; the message says why."""


class NotThere(CollectorFailed):
    """The collector has no such object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The collector's address: its socket, or a host and port with a key."""

    socket: Path
    address: tuple[str, int] | None = None
    keys: Callable[[], tuple[str, ...]] = tuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a page may show, and its age. `age_s` is None if nothing was ever read."""

    cluster_id: str
    age_s: float | None
    failure: str  # why the last request failed; empty if it did not
    tables: Mapping[str, Mapping[str, Row]]
    offline_partitions: int | None = None
    is_cut: bool = False
    # The collector's run and step of the tables: another one means that something changed.
    step: str = ""

    @property
    def is_there(self) -> bool:
        return self.age_s is not None

    @property
    def is_stale(self) -> bool:
        return self.age_s is not None and self.age_s > STALE_SECONDS

    # Create values on demand: a page shows few of ten thousand rows.
    def brokers(self) -> list[BrokerRow]:
        return [BrokerRow(*row) for row in self.tables.get("brokers", {}).values()]

    def topics(self) -> dict[str, TopicRow]:
        return {name: TopicRow(*row) for name, row in self.tables.get("topics", {}).items()}

    def topic(self, name: str) -> TopicRow | None:
        row = self.tables.get("topics", {}).get(name)
        return None if row is None else TopicRow(*row)

    def groups(self) -> list[GroupRow]:
        return [GroupRow(*row) for row in self.tables.get("groups", {}).values()]

    def group_names(self) -> Iterable[str]:
        return self.tables.get("groups", {})

    def groups_in_trouble(self) -> list[GroupRow]:
        """Return the groups that need attention, without creating values of the others."""
        rows = self.tables.get("groups", {}).values()
        return [GroupRow(*row) for row in rows if row[VERDICT] in HURT]

    def group(self, name: str) -> GroupRow | None:
        row = self.tables.get("groups", {}).get(name)
        return None if row is None else GroupRow(*row)

    def pair(self, group: str, topic: str) -> PairRow | None:
        row = self.tables.get("pairs", {}).get(pair_key(group, topic))
        return None if row is None else PairRow(*row)

    def verdicts(self) -> Mapping[str, int]:
        """Return how many groups have each verdict, without creating values of the groups."""
        return Counter(row[VERDICT] for row in self.tables.get("groups", {}).values())

    def verdicts_of(self, names: Container[str]) -> Iterator[Verdict]:
        """Return the verdict of each group whose name is in the set."""
        rows = self.tables.get("groups", {}).items()
        return (Verdict(row[VERDICT]) for name, row in rows if name in names)

    def pairs_of(self, group: str) -> list[PairRow]:
        """Return a group in each of its topics."""
        pairs, first = self.tables.get("pairs", {}), pair_key(group, "")
        return [PairRow(*pairs[key]) for key in pairs if key.startswith(first)]

    def silent_brokers(self) -> list[BrokerRow]:
        """Return brokers that did not answer the last request, so their partitions are stale."""
        return [broker for broker in self.brokers() if broker.failure]


class Line:
    """One connection to the collector. Not thread-safe."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        if reach.address is None:
            address = Address(path=reach.socket)
        else:
            host, port = reach.address
            address = Address(host=host, port=port)
        self._connection = Connection(
            address, wait_seconds=DEADLINE_SECONDS, max_bytes=MAX_ANSWER_BYTES
        )

    def close(self) -> None:
        self._connection.close()

    def ask(self, path: str, **query: str | int) -> Mapping[str, Any]:
        """Return an answer's JSON. Raises NotThere or CollectorFailed."""
        target = f"{path}?{urlencode(query)}"
        keys = self._reach.keys()
        headers = {"Authorization": f"Bearer {keys[0]}"} if keys else {}
        try:
            response = self._connection.exchange("GET", target, headers=headers)
            if response.status == 200:
                answer: Mapping[str, Any] = json.loads(response.body)
                return answer
        except (NoResponse, ValueError) as error:
            raise CollectorFailed(f"the collector does not answer: {error}"[:MAX_REASON]) from error
        sentence = response.body.decode("utf-8", "replace").strip()[:MAX_REASON]
        raise (NotThere if response.status == 404 else CollectorFailed)(sentence)


class Follower:
    """The mirror of one process, and the thread that keeps it current. Thread-safe."""

    def __init__(self, reach: Reach, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._reach = reach
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._mirror = Mirror()
        self._head: Mapping[str, Any] = {}
        self._read_at: float | None = None
        self._failure = "the collector has not been asked yet"
        self._line = Line(reach)
        self._asking = threading.Lock()  # held while the line is in use
        self._followed = threading.Condition()  # notified after each request
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    def snapshot(self) -> Snapshot:
        """Return the present mirror, without waiting."""
        with self._lock:
            self._begin()
            tables = {name: dict(rows) for name, rows in self._mirror.tables.items()}
            head, failure, read_at = self._head, self._failure, self._read_at
            step = f"{self._mirror.run}:{self._mirror.number}"
        age = None if read_at is None else max(0.0, self._monotonic() - read_at)
        # A collector that answers but hears from no broker has no fresh data.
        told_age = (head["ms"] - head["told_ms"]) / 1000 if head.get("told_ms") else 0.0
        return Snapshot(
            cluster_id=str(head.get("cluster_id", "")),
            age_s=None if age is None else age + max(0.0, told_age),
            failure=failure,
            tables=tables,
            offline_partitions=head.get("offline_partitions"),
            is_cut=bool(head.get("is_cut")),
            step=step,
        )

    def ask(self, path: str, **query: str | int) -> Mapping[str, Any]:
        """Request what is not mirrored; wait for `DEADLINE_SECONDS` at most."""
        line = Line(self._reach)
        try:
            return line.ask(path, **query)
        finally:
            line.close()

    def wait(self, is_new: Callable[[Snapshot], bool], *, seconds: float) -> bool:
        """Wait until a snapshot is new, for so long at most; return whether one was."""
        with self._followed:
            return self._followed.wait_for(lambda: is_new(self.snapshot()), timeout=seconds)

    def follow_once(self) -> None:
        """Read changes; on a failure, note it and keep the mirror."""
        with self._asking:
            if not self._ended.is_set():
                self._follow_once()
        with self._followed:
            self._followed.notify_all()

    def _follow_once(self) -> None:
        with self._lock:
            run, number = self._mirror.run, self._mirror.number
        try:
            changes = self._line.ask("/snapshot", run=run, since=number)
            if changes["format"] != FORMAT:
                self._fail(f"the collector is of another release (format {changes['format']})")
                return
            with self._lock:
                self._mirror.take(changes)
                self._head = {key: changes.get(key) for key in HEAD}
                self._read_at, self._failure = self._monotonic(), ""
        except CollectorFailed as error:
            self._fail(str(error))
        except (KeyError, TypeError, AttributeError) as error:
            self._fail(f"the collector sent a snapshot that cannot be read: {error!r}")
            # Read all rows next time.
            with self._lock:
                self._mirror.run = ""

    def close(self) -> None:
        """Stop following; the mirrored data stays."""
        self._ended.set()
        with self._asking:
            self._line.close()
        if self._thread is not None:
            self._thread.join()

    def _fail(self, failure: str) -> None:
        with self._lock:
            self._failure = failure

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._follow, name="collector-follower", daemon=True
            )
            self._thread.start()

    def _follow(self) -> None:
        while not self._ended.is_set():
            self.follow_once()
            self._ended.wait(FOLLOW_SECONDS)


def reach_of(socket_path: Path, address: tuple[str, int] | None, metrics_keys: Path) -> Reach:
    """Return how a web server reaches the collector of its home."""
    if address is None:
        return Reach(socket=socket_path)
    keys = KeyFile(metrics_keys, monotonic=time.monotonic)
    return Reach(socket=socket_path, address=address, keys=keys.keys)
