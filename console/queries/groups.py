"""Reads the list of groups: worst first, filtered by name and facets, a hundred at a time."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.utils.safestring import SafeString

from console import durations, group_names
from console.monitoring.tables import GroupRow
from console.queries.connector_states import Owner, owners_of
from console.queries.frame import Frame, frame
from console.queries.group_table import (
    Asked,
    Choice,
    Column,
    columns_of,
    facets_of,
    in_order,
    narrowed,
)
from console.queries.kept import Kept
from console.queries.lag import Mark, eta_words, lag_seconds, lag_words, mark_of, since_of
from console.queries.live import Live
from console.queries.reading import Reading, last_good
from console.queries.recent import Samples, recent, trend
from console.queries.sparks import spark
from gateway.access.grants import Names, Rights
from gateway.access.operations import Kind, Operation
from gateway.kafka import shown_names

PAGE_ROWS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLine:
    name: str  # for display
    link: str
    mark: Mark
    since: datetime | None  # of the verdict
    lag: str
    unknown: int
    lag_time: str  # empty if unknown
    eta: str
    members: int
    state: str
    type: str
    topics: int
    rebalances: int
    spark: SafeString
    # The connector of the group, if it is one's and the user may see that.
    owner: Owner | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    frame: Frame
    asked: Asked
    # False if the user may see only some groups.
    is_whole: bool = True
    told_at: datetime | None = None
    columns: tuple[Column, ...] = ()
    facets: tuple[tuple[Choice, ...], ...] = ()
    rows: tuple[GroupLine, ...] = ()
    total: int = 0  # that match the filter
    known: int = 0  # that the user may see
    first: int = 0  # the number of the first row shown, from 1
    last: int = 0
    previous_link: str = ""
    next_link: str = ""
    all_link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """The whole list as one visitor selects it, which stays valid until a table changes."""

    left: tuple[GroupRow, ...]
    facets: tuple[tuple[Choice, ...], ...]
    known: int


_weighed: Final = Kept[Weighed]()


def groups(
    cluster_id: str | None,
    asked: Asked,
    rights: Rights,
    *,
    now: Callable[[], float] = time.time,
) -> Reading[Groups]:
    return last_good.read(
        # Key by the rights too, so that no user gets what was read for another one.
        ("groups", cluster_id, asked, rights.grants),
        lambda: _read(cluster_id, asked, rights, now()),
        is_empty=lambda data: not data.rows,
    )


def visible(rights: Rights, cluster_id: str) -> Names:
    """Return the groups that a user may see."""
    return rights.names(Operation.VIEW, cluster=cluster_id, kind=Kind.GROUP)


def aged_at_ms(live: Live, now_s: float) -> int:
    """Return the moment that ages refer to: now if data is fresh, since records keep ageing.

    For stale data, ages refer to the last report.
    """
    since_s = 0.0 if live.is_fresh else live.snapshot.age_s or 0.0
    return int(1000 * (now_s - since_s))


def _read(cluster_id: str | None, asked: Asked, rights: Rights, now_s: float) -> Groups:
    around = frame(cluster_id, rights)
    if around.shown is None or around.live is None:
        return Groups(frame=around, asked=asked)
    shown, live = around.shown.cluster_id, around.live
    names = visible(rights, shown)
    # Sort up to fifteen thousand rows once for all pages and visitors, until they change.
    whole = replace(asked, page=1)
    weighed = _weighed.read(
        live.snapshot.step, (shown, whole, names), lambda: _weigh(live, whole, names)
    )
    left = weighed.left
    pages = max(1, -(-len(left) // PAGE_ROWS))
    page = min(asked.page, pages)
    offset = (page - 1) * PAGE_ROWS
    rows = left[offset : offset + PAGE_ROWS]
    samples = recent("group", [row.name for row in rows])
    at_ms = aged_at_ms(live, now_s)
    owners = owners_of(shown, (row.name for row in rows), rights)
    return Groups(
        frame=around,
        asked=asked,
        is_whole=names.is_all,
        told_at=live.told_at,
        columns=columns_of(asked, shown),
        facets=weighed.facets,
        rows=tuple(
            _line(row, at_ms, shown, samples.get(row.name, ()), owners.get(row.name))
            for row in rows
        ),
        total=len(left),
        known=weighed.known,
        first=offset + 1 if rows else 0,
        last=offset + len(rows),
        previous_link=asked.link(shown, page=page - 1) if page > 1 else "",
        next_link=asked.link(shown, page=page + 1) if page < pages else "",
        all_link=Asked().link(shown),
    )


def _weigh(live: Live, asked: Asked, names: Names) -> Weighed:
    known = [row for row in live.snapshot.groups() if row.name in names]
    return Weighed(
        left=tuple(in_order(narrowed(known, asked), asked)),
        facets=facets_of(known, asked, live.snapshot.cluster_id),
        known=len(known),
    )


def _line(
    row: GroupRow, at_ms: int, cluster_id: str, samples: Samples, owner: Owner | None
) -> GroupLine:
    seconds = lag_seconds(row, at_ms)
    return GroupLine(
        name=shown_names.shown(row.name),
        link=group_names.link(cluster_id, row.name),
        mark=mark_of(row),
        since=since_of(row),
        lag=lag_words(row),
        unknown=row.unknown,
        lag_time="" if seconds is None else durations.span(seconds),
        eta=eta_words(row, seconds),
        members=row.members,
        state=row.state,
        type=row.type,
        topics=row.topics,
        rebalances=row.rebalances,
        spark=spark(samples, trend(samples)) if any(samples) else SafeString(),
        owner=owner,
    )
