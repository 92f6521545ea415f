"""Serves the changes of partitions, groups and traffic to watchers, in numbered steps.

A watcher requests all changes after a number. It gets the steps since then, or a snapshot if they
are gone or the watcher is new. Without requests no samples are taken: the first request in a second
takes a sample, in slices, and all requests within that second share it.
"""

import asyncio
import json
import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from brokers.disk_room import Room, room_at
from brokers.replication.partition import Partition
from brokers.server.client_ledger import CLIENT_COLUMNS
from brokers.server.context import Context
from brokers.server.footprint import memory_bytes
from brokers.server.group_feed import (
    COMMIT_COLUMNS,
    GROUP_COLUMNS,
    GroupChanges,
    GroupFeed,
)
from brokers.server.json_pieces import array
from brokers.server.member_feed import MEMBER_COLUMNS
from brokers.server.traffic_feed import (
    API_COLUMNS,
    BUCKET_BOUNDS_MS,
    TOPIC_COLUMNS,
    TrafficChanges,
    TrafficFeed,
)
from brokers.slices import Slices

# A sample counts as current for this long.
FRESH_SECONDS: Final = 0.9
# Rows of all steps that are kept: a watcher that comes every second or two needs one or two steps,
# and 50,000 rows take some 10 MB.
MAX_ROWS: Final = 50_000
# Steps that are kept, whatever their size: some minutes of an idle broker with a watcher.
MAX_STEPS: Final = 300

# topic, index, log start, high watermark, end, bytes on the disk
Row = tuple[str, int, int, int, int, int]
COLUMNS: Final = ("topic", "index", "log_start", "high_watermark", "end", "bytes")
# None: the system does not provide it.
Totals: TypeAlias = dict[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The changes between one sample and the one before."""

    number: int
    ms: int
    rows: tuple[Row, ...]
    gone: tuple[tuple[str, int], ...]
    totals: Totals
    group_changes: GroupChanges
    traffic: TrafficChanges

    def __len__(self) -> int:
        own = len(self.rows) + len(self.gone)
        return own + len(self.group_changes) + len(self.traffic)


class Feed:
    """Belongs to the event loop."""

    def __init__(self, context: Context) -> None:
        self.run = os.urandom(8).hex()  # numbers of another run are meaningless
        self.number = 0
        self._context = context
        self._groups = GroupFeed(context)
        self._traffic = TrafficFeed(context.metrics)
        self._started_ms = context.clock.now_ms()
        self._rows: dict[tuple[str, int], Row] = {}
        self._steps: deque[Step] = deque()
        self._kept_rows = 0
        self._sampled = float("-inf")
        self._sampling: asyncio.Future[None] | None = None
        self._is_torn = False
        self._ms = 0
        self._totals: Totals = {}
        self._counts: tuple[float, int, int, int] | None = None
        self._delays: list[int] = []  # of the loop, as counted when the last sample was taken

    async def read(self, run: str, since: int) -> Iterator[str]:
        """Yield JSON in pieces: the steps after `since`, or a snapshot if those are gone."""
        await self._refresh()
        first = self._steps[0].number if self._steps else self.number + 1
        if run == self.run and first - 1 <= since <= self.number:
            return self._deltas([step for step in self._steps if step.number > since])
        return self._snapshot()

    def close(self) -> None:
        self._groups.close()

    async def _refresh(self) -> None:
        """Make sure that the sample is fresh; the first caller takes a new one."""
        clock = self._context.clock
        # The caller that takes the sample may be cancelled; the next one takes another.
        while self._sampling is not None:
            await asyncio.shield(self._sampling)
        if clock.monotonic() - self._sampled < FRESH_SECONDS:
            return
        self._sampling = self._context.loop.create_future()
        self._is_torn = True
        try:
            await self._sample()
            self._sampled = clock.monotonic()
        finally:
            if self._is_torn:
                # The caller that took it was cancelled, and part of its findings is lost.
                self._begin_anew()
            self._sampling.set_result(None)
            self._sampling = None

    async def _sample(self) -> None:
        context = self._context
        slices = Slices(context.clock)
        changed: list[Row] = []
        here, log_bytes = set(), 0
        for partition in list(context.replicas.partitions()):
            row = _row(partition)
            key = row[:2]
            here.add(key)
            log_bytes += row[5]
            if self._rows.get(key) != row:
                self._rows[key] = row
                changed.append(row)
            self._traffic.note(partition)
            await slices.breathe()
        gone = tuple(key for key in self._rows if key not in here)
        for key in gone:
            del self._rows[key]
            self._traffic.lose(key)
        traffic = await self._traffic.sample(slices)
        group_changes = await self._groups.sample(slices)
        self._ms = context.clock.now_ms()
        self._totals = {**self._rates(), **self._sizes(log_bytes)}
        if group_changes is None:
            group_changes = GroupChanges()
            self._begin_anew()
        self._keep(changed, gone, group_changes, traffic)
        self._is_torn = False

    def _begin_anew(self) -> None:
        """Skip a number, so that no watcher can continue from earlier steps."""
        self._steps.clear()
        self._kept_rows = 0
        self.number += 1

    def _keep(
        self,
        changed: list[Row],
        gone: tuple[tuple[str, int], ...],
        group_changes: GroupChanges,
        traffic: TrafficChanges,
    ) -> None:
        self.number += 1
        step = Step(
            number=self.number,
            ms=self._ms,
            rows=tuple(changed),
            gone=gone,
            totals=self._totals,
            group_changes=group_changes,
            traffic=traffic,
        )
        self._steps.append(step)
        self._kept_rows += len(step)
        while len(self._steps) > MAX_STEPS or self._kept_rows > MAX_ROWS:
            self._kept_rows -= len(self._steps.popleft())
            if not self._steps:
                break

    def _rates(self) -> Totals:
        """Return rates per second since the sample before."""
        metrics, now = self._context.metrics, self._context.clock.monotonic()
        requests = sum(histogram.count for histogram in metrics.requests.values())
        counts = (now, metrics.bytes_in, metrics.bytes_out, requests)
        before, self._counts = self._counts or counts, counts
        seconds = now - before[0] or 1.0
        names = ("bytes_in_per_s", "bytes_out_per_s", "requests_per_s")
        rates = {
            name: round((new - old) / seconds, 1)
            for name, new, old in zip(names, counts[1:], before[1:], strict=True)
        }
        return {**rates, "connections": metrics.connections, "partitions": len(self._rows)}

    def _sizes(self, log_bytes: int) -> Totals:
        """Return the broker's memory and disk use, and its loop delay since the sample before."""
        room = self._room()
        counts = self._context.metrics.loop_delay.counts
        before, self._delays = self._delays or [0] * len(counts), list(counts)
        return {
            "memory_bytes": memory_bytes(),
            "disk_size_bytes": room.size_bytes if room else None,
            "disk_used_bytes": room.used_bytes if room else None,
            "disk_free_bytes": room.free_bytes if room else None,
            "disk_device": room.device if room else None,
            "log_bytes": log_bytes,
            "folders_aside": len(self._context.replicas.log_dir.set_aside),
            "loop_delay_p99_ms": _p99_ms([a - b for a, b in zip(counts, before, strict=True)]),
            "started_ms": self._started_ms,
        }

    def _room(self) -> Room | None:
        """Return the room on the disk of the log dir; None if it cannot be measured."""
        with suppress(OSError):
            return room_at(self._context.config.log_dir)
        return None

    def _head(self, kind: str) -> str:
        head = {
            "run": self.run,
            "number": self.number,
            "ms": self._ms,
            "kind": kind,
            "columns": COLUMNS,
            "group_columns": GROUP_COLUMNS,
            "commit_columns": COMMIT_COLUMNS,
            "member_columns": MEMBER_COLUMNS,
            "api_columns": API_COLUMNS,
            "topic_columns": TOPIC_COLUMNS,
            "client_columns": CLIENT_COLUMNS,
            "bucket_bounds_ms": BUCKET_BOUNDS_MS,
            "totals": self._totals,
        }
        return json.dumps(head)[:-1]

    def _snapshot(self) -> Iterator[str]:
        """Take a snapshot of the current state; its parts may be of slightly different moments."""
        rows, groups = list(self._rows.values()), self._groups.snapshot()
        return self._told(rows, self._traffic.snapshot(), groups)

    def _told(
        self, rows: list[Row], traffic: TrafficChanges, groups: Iterator[str]
    ) -> Iterator[str]:
        yield self._head("snapshot") + ", "
        yield from array("rows", rows)
        yield ", "
        yield from traffic.json_of_rows()
        yield ", "
        yield from groups
        yield "}\n"

    def _deltas(self, steps: list[Step]) -> Iterator[str]:
        yield self._head("steps") + ', "steps": ['
        for place, step in enumerate(steps):
            head = {"number": step.number, "ms": step.ms, "totals": step.totals, "gone": step.gone}
            yield (", " if place else "") + json.dumps(head)[:-1] + ", "
            yield from array("rows", step.rows)
            yield ", "
            yield from step.traffic.json()
            yield ", "
            yield from step.group_changes.json()
            yield "}"
        yield "]}\n"


def _p99_ms(counts: list[int]) -> float | None:
    """Return the bound of the bucket with the 99th percentile; None if all are empty."""
    left = sum(counts) * 99 / 100
    if not left:
        return None
    for bound, count in zip(BUCKET_BOUNDS_MS, counts, strict=False):
        left -= count
        if left <= 0:
            return bound
    return BUCKET_BOUNDS_MS[-1]  # the bucket beyond it has no bound


def _row(partition: Partition) -> Row:
    log = partition.log
    return (
        partition.topic,
        partition.index,
        log.start_offset,
        partition.high_watermark,
        log.end_offset,
        log.size_bytes,
    )
