"""Brokers that search records in memory, as `Inspection.search` tells of it."""

import base64
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from brokers.cluster.image import Broker
from brokers.inspection.client import InspectionFailed
from brokers.protocol.records.reader import Record as Found
from brokers.search.predicate import condition_of
from gateway.kafka.values import Record


@dataclass
class SearchingBrokers:
    """`refusals` are raised first, one for each question; `holds` keeps searches from ending."""

    partitions: dict[int, list[Record]]
    refusals: list[InspectionFailed] = field(default_factory=list)
    verdicts: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    holds: bool = False
    asked: list[Mapping[str, Any]] = field(default_factory=list)
    running: int = 0
    most_running: int = 0
    begun: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(
        self,
        broker: Broker,
        question: Mapping[str, Any],
        *,
        on_open: Callable[[Callable[[], None]], None],
    ) -> Iterator[Mapping[str, Any]]:
        stopped = threading.Event()
        on_open(stopped.set)
        with self._lock:
            self.asked.append(question)
            refusal = self.refusals.pop(0) if self.refusals else None
            self.running += 1
            self.most_running = max(self.most_running, self.running)
        try:
            if refusal is not None:
                raise refusal
            yield from self._lines(question, stopped)
        finally:
            with self._lock:
                self.running -= 1

    def _lines(
        self, question: Mapping[str, Any], stopped: threading.Event
    ) -> Iterator[Mapping[str, Any]]:
        first, end = question["from"]["offset"], question["to"]["offset"]
        matches = condition_of(question["where"]).matches
        counts = {"next_offset": first, "hits": 0, "records": 0, "bytes": 0}
        verdict = "complete"
        yield {"kind": "progress", **counts}
        self.begun.set()
        if self.holds:
            stopped.wait()
        for one in self.partitions[question["partition"]]:
            if stopped.is_set():
                raise InspectionFailed("the broker ended a search without a verdict")
            if not first <= one.offset < end:
                continue
            counts["records"] += 1
            counts["next_offset"] = one.offset + 1
            found = Found(one.offset, one.timestamp_ms or 0, one.key, one.value, ())
            if matches(found):
                counts["hits"] += 1
                yield hit(one, question["max_shown_bytes"])
                if counts["hits"] == question["max_hits"]:
                    verdict = "limit"
                    break
        if verdict == "complete":
            counts["next_offset"] = end
        told = {"kind": "done", "verdict": verdict, **counts, "damaged": [], "removed": []}
        yield {**told, **self.verdicts.get(question["partition"], {})}


def hit(one: Record, most: int) -> Mapping[str, Any]:
    def shown(data: bytes | None) -> str | None:
        return None if data is None else base64.b64encode(data[:most]).decode()

    return {
        "kind": "hit",
        "offset": one.offset,
        "timestamp": one.timestamp_ms,
        "is_append_time": False,
        "key": shown(one.key),
        "value": shown(one.value),
        "headers": [],
        "header_count": len(one.headers),
        "key_bytes": len(one.key or b""),
        "value_bytes": len(one.value or b""),
        "is_cut": False,
    }
