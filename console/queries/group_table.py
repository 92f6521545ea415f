"""Filters and sorts the list of groups, and builds the links that do so.

Pure: rows in, rows and links out.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final
from urllib.parse import urlencode

from console.monitoring.tables import GroupRow
from console.monitoring.verdicts import SEVERITY, Verdict
from console.queries.lag import MARKS

# The length limit of a topic name; longer filters make no sense.
MAX_FILTER: Final = 249
# No page number has more digits.
MAX_DIGITS: Final = 6
WORST: Final = "worst"
VERDICTS: Final = frozenset(verdict.value for verdict in Verdict)

Key = Callable[[GroupRow], Any]


def _age(row: GroupRow) -> float:
    """Order by the age of the oldest record: an unknown one sorts as the youngest."""
    if not row.lag:
        return math.inf
    return row.oldest_ms or 1e15


def _catches_up(row: GroupRow) -> tuple[float, float]:
    """Order by the time to catch up; never sorts after every time."""
    if not row.lag:
        return (0.0, 0.0)
    low = math.inf if row.eta_low_s is None else row.eta_low_s
    return (math.inf if row.eta_high_s is None else row.eta_high_s, low)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A sort order: ascending, unless the address reverses it."""

    title: str
    key: Key
    unit: str = ""
    is_falling_first: bool = False  # the largest values are shown first


# By the name in addresses, in the order of the columns.
ORDERS: Final[Mapping[str, Order]] = {
    WORST: Order(
        title="Verdict",
        unit="since",
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
# What rows are filtered by, besides a part of the name.
FACETS: Final[Mapping[str, Callable[[GroupRow], str]]] = {
    "verdict": lambda row: row.verdict,
    "state": lambda row: row.state,
    "type": lambda row: row.type,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The list that a visitor selects, as links and fields repeat it."""

    q: str = ""
    verdict: str = ""
    state: str = ""
    type: str = ""
    sort: str = WORST
    down: str = ""  # "1" reverses the order
    page: int = 1

    @property
    def is_narrowed(self) -> bool:
        return bool(self.q or self.verdict or self.state or self.type)

    def link(self, cluster_id: str, **changed: str | int) -> str:
        """Return the address of the same list with some fields changed, from its first page."""
        wanted = {**asdict(self), "page": 1, **changed}
        plain = asdict(Asked())
        written = {key: value for key, value in wanted.items() if value != plain[key]}
        return f"?{urlencode({**written, 'cluster': cluster_id})}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    title: str
    unit: str
    is_number: bool
    sorted: str  # a value of aria-sort, or empty
    link: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One value of a facet, with the number of rows that it would leave."""

    word: str
    count: int
    link: str
    is_chosen: bool


def asked_of(query: Mapping[str, str]) -> Asked:
    """Return the list that an address selects; invalid values are ignored."""
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


def columns_of(asked: Asked, cluster_id: str) -> tuple[Column, ...]:
    return tuple(_column(key, asked, cluster_id) for key in ORDERS)


def facets_of(
    known: list[GroupRow], asked: Asked, cluster_id: str
) -> tuple[tuple[Choice, ...], ...]:
    return tuple(_choices(facet, known, asked, cluster_id) for facet in FACETS)


def narrowed(rows: Iterable[GroupRow], asked: Asked, *, but: str = "") -> list[GroupRow]:
    """Return the rows that match, ignoring one facet."""
    wanted = asked.q.casefold()
    if wanted:
        rows = [row for row in rows if wanted in row.name.casefold()]
    for facet, value_of in FACETS.items():
        value = getattr(asked, facet)
        if value and facet != but:
            rows = [row for row in rows if value_of(row) == value]
    return list(rows)


def in_order(rows: list[GroupRow], asked: Asked) -> list[GroupRow]:
    order = ORDERS[asked.sort]
    # Equal rows are in order of name in either direction.
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
    """Return the values of a facet among the rows that match the other facets."""
    chosen = getattr(asked, facet)
    counts = Counter(map(FACETS[facet], narrowed(known, asked, but=facet)))
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
