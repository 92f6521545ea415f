"""Answers the collector's requests by path: tables, details, series, metrics for Prometheus.

Knows no sockets. A request that cannot be answered gets a sentence that says why.
"""

import json
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, Protocol

from brokers.http.server import Page, refusal
from console.monitoring.collector import Collector
from console.monitoring.exposition import exposition
from console.monitoring.group_detail import MAX_DETAIL, Part
from console.monitoring.packing import thin
from console.monitoring.recent import MAX_NAMES, RECENT_STEP_S, SHOWN
from console.monitoring.rings import KINDS, Name
from console.monitoring.samples import KEPT_S, SamplesFailed, Series
from console.monitoring.tables import FORMAT

JSON: Final = "application/json"
TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
# Points of a chart: more than the pixel columns of a screen.
MAX_POINTS: Final = 2_000
LONGEST_S: Final = max(KEPT_S.values())

Query = Mapping[str, str]


class Sources(Protocol):
    """The data behind the pages."""

    @property
    def collector(self) -> Collector: ...

    @property
    def cluster_id(self) -> str: ...

    @property
    def not_ready(self) -> str: ...

    @property
    def targets(self) -> Mapping[int, str]: ...

    def now_ms(self) -> int: ...

    async def series(
        self, kind: str, name: Name, metric: str, *, start_s: int, end_s: int
    ) -> Series: ...


class Pages:
    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._pages: dict[str, Callable[[Query], Awaitable[Page]]] = {
            "/health": self._health,
            "/snapshot": self._snapshot,
            "/group": self._group,
            "/topic": self._topic,
            "/broker": self._broker,
            "/series": self._series,
            "/recent": self._recent,
            "/metrics": self._metrics,
            "/targets": self._targets,
        }

    async def answer(self, path: str, query: Query) -> Page:
        page = self._pages.get(path)
        if page is None:
            return refusal(404, f"there is no {path!r} here; try {', '.join(self._pages)}")
        return await page(query)

    async def _health(self, _query: Query) -> Page:
        why = self._sources.not_ready
        return json_page({"ready": not why, "reason": why}, status=503 if why else 200)

    async def _snapshot(self, query: Query) -> Page:
        sources = self._sources
        if sources.not_ready:
            # Incomplete tables would look like a cluster that has lost its topics.
            return refusal(503, sources.not_ready)
        since = query.get("since", "0")
        if not since.isdecimal() or len(since) > 18:
            return refusal(400, f"since={since!r} is not the number of a step")
        collector = sources.collector
        head = {
            "format": FORMAT,
            "run": collector.deltas.run,
            "ms": sources.now_ms(),
            "told_ms": collector.told_ms,
            "cluster_id": sources.cluster_id,
            "offline_partitions": collector.offline_partitions,
            "is_cut": collector.observed.is_cut,
        }
        steps = collector.deltas.since(query.get("run", ""), int(since))
        return Page(200, JSON, whole(json.dumps(head)[:-1] + ", ", steps))

    async def _group(self, query: Query) -> Page:
        name = query.get("name", "")
        try:
            part = Part(
                topic=query.get("topic", ""),
                first=_number(query, "first", 0),
                rows=_number(query, "rows", MAX_DETAIL),
            )
        except ValueError as error:
            return refusal(400, str(error))
        detail = self._sources.collector.group_detail(name, part)
        return self._detail(detail, f"no broker reports a group named {name!r}")

    async def _topic(self, query: Query) -> Page:
        name = query.get("name", "")
        try:
            first, rows = _number(query, "first", 0), _number(query, "rows", MAX_DETAIL)
        except ValueError as error:
            return refusal(400, str(error))
        detail = self._sources.collector.topic_detail(name, first=first, rows=rows)
        return self._detail(detail, f"no broker reports a topic named {name!r}")

    async def _broker(self, query: Query) -> Page:
        written = query.get("id", "")
        if not written.isdecimal() or len(written) > 10:
            return refusal(400, f"id={written!r} is not a broker id")
        detail = self._sources.collector.broker_detail(int(written))
        return self._detail(detail, f"the cluster has no broker {written}")

    def _detail(self, detail: dict[str, Any] | None, missing: str) -> Page:
        if self._sources.not_ready:
            return refusal(503, self._sources.not_ready)
        if detail is None:
            return refusal(404, missing)
        return json_page({"ms": self._sources.now_ms(), **detail})

    async def _series(self, query: Query) -> Page:
        kind = KINDS.get(query.get("kind", ""))
        if kind is None:
            return refusal(400, f"kind={query.get('kind', '')!r}: one of {', '.join(KINDS)}")
        metric = query.get("metric", "")
        if metric not in kind.metrics:
            known = ", ".join(kind.metrics)
            return refusal(400, f"a {kind.name} has no metric {metric!r}: one of {known}")
        name = (query.get("name", ""), query.get("topic", ""))[: 2 if kind.name == "pair" else 1]
        try:
            start_s, end_s = _times(query, self._sources.now_ms() // 1000)
            points = _number(query, "max_points", MAX_POINTS)
        except ValueError as error:
            return refusal(400, str(error))
        if not 0 < points <= MAX_POINTS:
            return refusal(400, f"max_points={points}: 1 to {MAX_POINTS}")
        try:
            found = await self._sources.series(
                kind.name, name, metric, start_s=start_s, end_s=end_s
            )
        except SamplesFailed as error:
            return refusal(503, str(error))
        ratio, samples = thin(found.samples, points)
        return json_page(
            {
                "start_s": found.start_s,
                "step_s": found.step_s * ratio,
                # JSON has no NaN; a gap is null.
                "samples": [None if math.isnan(each) else each for each in samples],
            }
        )

    async def _recent(self, query: Query) -> Page:
        kind = query.get("kind", "")
        if kind not in SHOWN:
            return refusal(400, f"kind={kind!r}: one of {', '.join(SHOWN)}")
        try:
            names = json.loads(query.get("names", "[]"))
        except ValueError:
            names = None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return refusal(400, 'names= is a JSON array of strings, as ["payments"]')
        if len(names) > MAX_NAMES:
            return refusal(400, f"{len(names)} names asked for, at most {MAX_NAMES} at once")
        samples = self._sources.collector.recent[kind].of(names)
        return json_page({"step_s": RECENT_STEP_S, "metric": SHOWN[kind], "samples": samples})

    async def _metrics(self, _query: Query) -> Page:
        return Page(200, TEXT, exposition(self._sources.collector, self._sources.now_ms()))

    async def _targets(self, _query: Query) -> Page:
        """Answer Prometheus's HTTP service discovery: brokers get other ports at each start."""
        found = [
            {"targets": [address], "labels": {"broker": str(broker_id)}}
            for broker_id, address in sorted(self._sources.targets.items())
        ]
        return Page(200, JSON, iter([json.dumps(found)]))


def _times(query: Query, now_s: int) -> tuple[int, int]:
    end_s = _number(query, "to", now_s)
    start_s = _number(query, "from", end_s - 3600)
    if not 0 <= start_s < end_s <= start_s + LONGEST_S + 3600:
        raise ValueError(
            f"from={start_s} to={end_s}: give seconds, the earlier one first, at most"
            f" {LONGEST_S // 86_400} days apart"
        )
    return start_s, end_s


def _number(query: Query, name: str, default: int) -> int:
    written = query.get(name)
    if written is None:
        return default
    if not written.isdecimal() or len(written) > 12:
        raise ValueError(f"{name}={written!r} is not a whole number")
    return int(written)


def json_page(value: Mapping[str, Any], *, status: int = 200) -> Page:
    return Page(status, JSON, iter([json.dumps(value)]))


def whole(head: str, pieces: Iterator[str]) -> Iterator[str]:
    yield head
    yield from pieces
    yield "}"
