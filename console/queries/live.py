"""Reads what pages show of the brokers: the mirror of the collector, and its age.

No page asks a broker. Tables come from the mirror at once; details and series come from the
collector, with a deadline.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from typing import Any, Final, Protocol

from django.conf import settings

from console.monitoring.selectors import (
    CollectorFailed,
    Follower,
    NotThere,
    Snapshot,
    reach_of,
)
from gateway.kafka.values import Place

# A change of a group is seen within a request of the collector to the broker, one of the mirror to
# the collector, and a look between them; on a busy machine it takes longer.
SEEN_SECONDS: Final = 4.0
ASK_SECONDS: Final = 0.2
# What a page says before the first report of the collector.
UNTOLD: Final = "the collector has sent nothing yet; `./samsa status` shows whether it runs"


class LiveState(Enum):
    """Whether the tables are current."""

    FRESH = "fresh"
    STALE = "stale"  # the collector or every broker is silent: the tables keep their last state
    AWAY = "away"  # nothing was ever read


class Source(Protocol):
    """The source of tables, details and series."""

    def snapshot(self) -> Snapshot: ...
    def ask(self, path: str, **query: str | int) -> Mapping[str, Any]: ...
    def wait(self, is_new: Callable[[Snapshot], bool], *, seconds: float) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """The tables of one cluster. Empty if the mirror has another cluster, or read nothing yet."""

    snapshot: Snapshot
    state: LiveState
    reason: str = ""  # why the state is not FRESH
    told_at: datetime | None = None  # None if nothing was ever read

    def without_tables(self) -> "Live":
        """Return the same without the tables, for callers that keep it for long."""
        return replace(self, snapshot=replace(self.snapshot, tables={}))

    @property
    def is_fresh(self) -> bool:
        return self.state is LiveState.FRESH

    @property
    def is_stale(self) -> bool:
        return self.state is LiveState.STALE

    @property
    def is_away(self) -> bool:
        return self.state is LiveState.AWAY

    @property
    def age_s(self) -> int | None:
        """Return the age of the tables in whole seconds; None if nothing was ever read."""
        return None if self.snapshot.age_s is None else int(self.snapshot.age_s)


@cache
def _follower() -> Source:
    """Return the mirror of this process, whose thread starts with the first page that reads it."""
    return Follower(
        reach_of(
            settings.SAMSA_COLLECTOR_SOCKET,
            settings.SAMSA_COLLECTOR,
            settings.SAMSA_SECRETS / "metrics",
        )
    )


_chosen: Source | None = None


def source() -> Source:
    return _follower() if _chosen is None else _chosen


def use(chosen: Source | None) -> None:
    """Read from another source than the collector of this home; None restores that one."""
    global _chosen  # noqa: PLW0603 - one mirror per process, as there is one collector per home
    _chosen = chosen


def of(cluster_id: str) -> Live:
    """Return the mirrored data of a cluster, without waiting."""
    found = source().snapshot()
    if not found.is_there:
        return Live(snapshot=found, state=LiveState.AWAY, reason=found.failure or UNTOLD)
    if found.cluster_id != cluster_id:
        return Live(
            snapshot=Snapshot(cluster_id=cluster_id, age_s=None, failure="", tables={}),
            state=LiveState.AWAY,
            reason=f"the collector of this home follows another cluster, {found.cluster_id}",
        )
    told_at = datetime.fromtimestamp(time.time() - (found.age_s or 0), tz=UTC)
    if found.is_stale:
        reason = found.failure or "no broker answers the collector"
        return Live(snapshot=found, state=LiveState.STALE, reason=reason, told_at=told_at)
    return Live(snapshot=found, state=LiveState.FRESH, told_at=told_at)


def wait_for_deletion(cluster_id: str, group: str) -> bool:
    """Wait until the mirror has a group no longer, for `SEEN_SECONDS` at most."""

    def is_gone(found: Snapshot) -> bool:
        return found.cluster_id == cluster_id and found.group(group) is None

    return of(cluster_id).is_fresh and source().wait(is_gone, seconds=SEEN_SECONDS)


def wait_for_offset(cluster_id: str, group: str, place: Place, offset: int | None) -> bool:
    """Wait until the collector has seen a changed offset, None if it was deleted, and its lag.

    For `SEEN_SECONDS` at most. Offsets of a group that change in one call are seen together.
    """
    if not of(cluster_id).is_fresh:
        return False
    deadline = time.monotonic() + SEEN_SECONDS
    while not (is_seen := _has_offset(group, place, offset)) and time.monotonic() < deadline:
        time.sleep(ASK_SECONDS)
    return is_seen


def _has_offset(group: str, place: Place, offset: int | None) -> bool:
    try:
        detail = ask("/group", name=group, topic=place.topic)
    except NotThere:
        return offset is None
    except CollectorFailed:
        return False
    found = (row[2] for row in detail["partitions"] if tuple(row[:2]) == astuple(place))
    return detail["is_published"] and next(found, None) == offset


def ask(path: str, **query: str | int) -> Mapping[str, Any]:
    """Return a detail or a series. Raises CollectorFailed or NotThere."""
    return source().ask(path, **query)


__all__ = [
    "CollectorFailed",
    "Live",
    "LiveState",
    "Source",
    "ask",
    "of",
    "source",
    "use",
    "wait_for_deletion",
    "wait_for_offset",
]
