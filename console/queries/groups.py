"""The list of groups: worst first, narrowed by name and facets, a hundred at a time."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.utils.safestring import SafeString

from console import durations, group_names
from console.monitoring.tables import GroupRow
from console.monitoring.verdicts import SEVERITY, Verdict
from console.queries.frame import Frame, frame
from console.queries.lag import MARKS, Mark, eta_words, lag_seconds
from console.queries.live import Live
from console.queries.reading import Reading, last_good, moment
from console.queries.recent import Samples, recent, trend
from console.queries.sparks import spark
from gateway.access.grants import Names, Rights
from gateway.access.operations import Kind, Operation

PAGE_ROWS: Final = 100
# The longest name of a topic; nobody filters groups by more.
MAX_FILTER: Final = 249
# More digits than a number of a page ever has.
MAX_DIGITS: Final = 6
WORST: Final = "worst"
VERDICTS: Final = frozenset(verdict.value for verdict in Verdict)

Key = Callable[[GroupRow], Any]


def _age(row: GroupRow) -> float:
    """Order by the age of the oldest record: one that nobody has told yet is younger than all."""
    if not row.lag:
        return math.inf
    return row.oldest_ms or 1e15


def _catches_up(row: GroupRow) -> tuple[float, float]:
    """Order by the time to catch up; never is longer than every time."""
    if not row.lag:
        return (0.0, 0.0)
    low = math.inf if row.eta_low_s is None else row.eta_low_s
    return (math.inf if row.eta_high_s is None else row.eta_high_s, low)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One way to sort: what is smallest comes first, unless the address says otherwise."""

    title: str
    key: Key
    unit: str = ""
    is_falling_first: bool = False  # what one wants to see first is the largest


# By the name that stands in addresses; the order of the columns.
ORDERS: Final[Mapping[str, Order]] = {
    WORST: Order(
        title="Verdict",
        key=lambda row: (SEVERITY[row.verdict_value], -_age(row), row.lag),
        is_falling_first=True,
    ),
    "name": Order(title="Group", key=lambda row: row.name),
    "lag": Order(title="Lag", unit="records", key=lambda row: row.lag, is_falling_first=True),
    "time": Order(title="Lag", unit="time", key=lambda row: -_age(row), is_falling_first=True),
    "eta": Order(title="Catches up", unit="in", key=_catches_up, is_falling_first=True),
    "members": Order(title="Members", key=lambda row: row.members, is_falling_first=True),
    "state": Order(title="State", key=lambda row: row.state),
    "type": Order(title="Type", key=lambda row: row.type),
    "topics": Order(title="Topics", key=lambda row: row.topics, is_falling_first=True),
    "rebalances": Order(title="Rebalances", key=lambda row: row.rebalances, is_falling_first=True),
}
NUMBERS: Final = frozenset({"lag", "time", "members", "topics", "rebalances"})
# What rows are narrowed by, beside a part of the name.
FACETS: Final[Mapping[str, Callable[[GroupRow], str]]] = {
    "verdict": lambda row: row.verdict,
    "state": lambda row: row.state,
    "type": lambda row: row.type,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a visitor wants to see, as it goes back into links and fields."""

    q: str = ""
    verdict: str = ""
    state: str = ""
    type: str = ""
    sort: str = WORST
    down: str = ""  # "1" turns the order round
    page: int = 1

    @property
    def is_narrowed(self) -> bool:
        return bool(self.q or self.verdict or self.state or self.type)

    def link(self, cluster_id: str, **changed: str | int) -> str:
        """Return the address of the same list with something changed, from its first page."""
        wanted = {**asdict(self), "page": 1, **changed}
        plain = asdict(Asked())
        written = {key: value for key, value in wanted.items() if value != plain[key]}
        return f"?{urlencode({**written, 'cluster': cluster_id})}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    title: str
    unit: str
    is_number: bool
    sorted: str  # as aria-sort has it, or empty
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One value of a facet, with how many rows it would leave."""

    word: str
    count: int
    link: str
    is_chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLine:
    name: str  # as it can be shown
    link: str
    mark: Mark
    lag: int
    unknown: int
    lag_time: str  # empty where nobody has told it
    eta: str
    members: int
    state: str
    type: str
    topics: int
    rebalances: int
    spark: SafeString


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    frame: Frame
    asked: Asked
    # False where the user may see some groups only.
    is_whole: bool = True
    told_at: datetime | None = None
    columns: tuple[Column, ...] = ()
    facets: tuple[tuple[Choice, ...], ...] = ()
    rows: tuple[GroupLine, ...] = ()
    total: int = 0  # that the filter leaves
    known: int = 0  # that the user may see
    first: int = 0  # the number of the first row shown, from 1
    last: int = 0
    previous_link: str = ""
    next_link: str = ""
    all_link: str = ""


def asked_of(query: Mapping[str, str]) -> Asked:
    """Return what an address asks for; what means nothing is as if it were not there."""
    page = query.get("page", "1")
    is_page = page.isascii() and page.isdigit() and len(page) <= MAX_DIGITS
    sort, verdict = query.get("sort", WORST), query.get("verdict", "")
    return Asked(
        q=query.get("q", "").strip()[:MAX_FILTER],
        verdict=verdict if verdict in VERDICTS else "",
        state=query.get("state", "")[:MAX_FILTER],
        type=query.get("type", "")[:MAX_FILTER],
        sort=sort if sort in ORDERS else WORST,
        down="1" if query.get("down") == "1" else "",
        page=max(1, int(page)) if is_page else 1,
    )


def groups(
    cluster_id: str | None,
    asked: Asked,
    rights: Rights,
    *,
    now: Callable[[], float] = time.time,
) -> Reading[Groups]:
    return last_good.read(
        # With the rights, so that nobody is shown what was read for somebody else.
        ("groups", cluster_id, asked, rights.grants),
        lambda: _read(cluster_id, asked, rights, now()),
        is_empty=lambda data: not data.rows,
    )


def visible(rights: Rights, cluster_id: str) -> Names:
    """Return the groups that a user may see."""
    return rights.names(Operation.VIEW, cluster=cluster_id, kind=Kind.GROUP)


def told_at(live: Live, now_s: float) -> datetime | None:
    """Return when the collector told what is shown; None where it never did."""
    age_s = live.snapshot.age_s
    return None if age_s is None else moment(now_s - age_s)


def aged_at_ms(live: Live, now_s: float) -> int:
    """Return the moment for which ages are told: what is fresh goes on waiting, second by second.

    Where nobody tells any more, ages are of when somebody did.
    """
    since_s = 0.0 if live.is_fresh else live.snapshot.age_s or 0.0
    return int(1000 * (now_s - since_s))


def _read(cluster_id: str | None, asked: Asked, rights: Rights, now_s: float) -> Groups:
    around = frame(cluster_id, rights)
    if around.shown is None or around.live is None:
        return Groups(frame=around, asked=asked)
    shown, live = around.shown.cluster_id, around.live
    names = visible(rights, shown)
    known = [row for row in live.snapshot.groups() if row.name in names]
    left = _sorted(_narrowed(known, asked), asked)
    pages = max(1, -(-len(left) // PAGE_ROWS))
    page = min(asked.page, pages)
    offset = (page - 1) * PAGE_ROWS
    rows = left[offset : offset + PAGE_ROWS]
    samples = recent("group", [row.name for row in rows])
    at_ms = aged_at_ms(live, now_s)
    return Groups(
        frame=around,
        asked=asked,
        is_whole=names.is_all,
        told_at=told_at(live, now_s),
        columns=tuple(_column(key, asked, shown) for key in ORDERS),
        facets=tuple(_choices(facet, known, asked, shown) for facet in FACETS),
        rows=tuple(_line(row, at_ms, shown, samples.get(row.name, ())) for row in rows),
        total=len(left),
        known=len(known),
        first=offset + 1 if rows else 0,
        last=offset + len(rows),
        previous_link=asked.link(shown, page=page - 1) if page > 1 else "",
        next_link=asked.link(shown, page=page + 1) if page < pages else "",
        all_link=Asked().link(shown),
    )


def _narrowed(rows: Iterable[GroupRow], asked: Asked, *, but: str = "") -> list[GroupRow]:
    """Return the rows that fit what is asked, but for one facet."""
    wanted = asked.q.casefold()
    if wanted:
        rows = [row for row in rows if wanted in row.name.casefold()]
    for facet, value_of in FACETS.items():
        value = getattr(asked, facet)
        if value and facet != but:
            rows = [row for row in rows if value_of(row) == value]
    return list(rows)


def _sorted(rows: list[GroupRow], asked: Asked) -> list[GroupRow]:
    order = ORDERS[asked.sort]
    # What is equal stands by name, whichever way the order goes.
    rows.sort(key=lambda row: row.name)
    rows.sort(key=order.key, reverse=order.is_falling_first != bool(asked.down))
    return rows


def _column(key: str, asked: Asked, cluster_id: str) -> Column:
    order = ORDERS[key]
    is_sorted = key == asked.sort
    is_falling = order.is_falling_first != bool(asked.down)
    turned = "" if asked.down or not is_sorted else "1"
    return Column(
        title=order.title,
        unit=order.unit,
        is_number=key in NUMBERS,
        sorted=("descending" if is_falling else "ascending") if is_sorted else "",
        link=asked.link(cluster_id, sort=key, down=turned),
    )


def _choices(
    facet: str, known: list[GroupRow], asked: Asked, cluster_id: str
) -> tuple[Choice, ...]:
    """Return the values of a facet among the rows that the other ones leave."""
    chosen = getattr(asked, facet)
    counts = Counter(map(FACETS[facet], _narrowed(known, asked, but=facet)))
    if chosen:
        counts.setdefault(chosen, 0)
    values = sorted(counts, key=_worst_first if facet == "verdict" else str)
    return tuple(
        Choice(
            word=MARKS[Verdict(value)].word if facet == "verdict" else value,
            count=counts[value],
            link=asked.link(cluster_id, **{facet: "" if value == chosen else value}),
            is_chosen=value == chosen,
        )
        for value in values
    )


def _worst_first(verdict: str) -> int:
    return -SEVERITY[Verdict(verdict)]


def _line(row: GroupRow, at_ms: int, cluster_id: str, samples: Samples) -> GroupLine:
    seconds = lag_seconds(row, at_ms)
    return GroupLine(
        name=group_names.shown(row.name),
        link=group_names.link(cluster_id, row.name),
        mark=MARKS[row.verdict_value],
        lag=row.lag,
        unknown=row.unknown,
        lag_time="" if seconds is None else durations.span(seconds),
        eta=eta_words(row, seconds),
        members=row.members,
        state=row.state,
        type=row.type,
        topics=row.topics,
        rebalances=row.rebalances,
        spark=spark(samples, trend(samples)) if any(samples) else SafeString(),
    )
