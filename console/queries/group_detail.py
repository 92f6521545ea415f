"""Builds what a group's page shows from the collector's detail: partitions, members, causes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, Final

from console.monitoring.tables import GroupRow, PairRow
from console.monitoring.verdicts import SINCE, Verdict
from console.queries.lag import MARKS, REASONS, Mark
from console.queries.reading import moment
from gateway.access.grants import Names
from gateway.kafka.shown_names import shown

PAGE_ROWS: Final = 100
# Partitions without an owner that a sentence names.
NAMED_PARTITIONS: Final = 24
# Columns that fit side by side: up to this many partitions are shown as a grid of members.
MAX_GRID: Final = 24
UNSEEN: Final = "a topic that you may not see"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The shown rows of a table of many."""

    first: int
    last: int
    total: int
    previous_link: str = ""
    next_link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLine:
    topic: str
    partition: int
    committed: int | None  # None if nothing was committed
    end: int | None
    lag: int | None
    at_most: int  # records in the partition
    committed_at: datetime | None
    mark: Mark
    owner: str  # the client id of the owner, or empty
    owner_id: str
    rate: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    topic: str
    partitions: str  # 0–3, 7
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A partition of the grid, in the row of a member or of the unowned partitions."""

    is_owned: bool
    lag: int | None = None  # None if nothing is committed
    at_most: int = 0  # records in the partition
    mark: Mark | None = None


NOT_OWNED: Final = Cell(is_owned=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberLine:
    id: str
    instance: str
    client: str
    host: str
    lag: int
    owned: tuple[Owned, ...]
    unseen: int  # topics that the user may not see
    cells: tuple[Cell, ...] = ()  # one for each column of the grid


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The columns of one topic in the grid."""

    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Records per second in one topic, averages of the last minutes; None: not known."""

    consumed: float | None
    produced: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The reason of the verdict: the worst partition, and since when."""

    place: str
    words: str
    since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """The collector's live detail, which the mirror does not hold."""

    coordinator: int
    partitions: tuple[PartitionLine, ...]
    partition_pages: Pages
    members: tuple[MemberLine, ...]
    member_pages: Pages
    unowned: tuple[Owned, ...]  # partitions without a member
    unowned_count: int
    grid: tuple[Head, ...]  # empty if there are too many columns
    rates: Mapping[str, Rates]  # by topic
    causes: Mapping[str, Cause]  # by topic that is not OK
    is_cut: bool
    row: GroupRow | None
    pairs: tuple[PairRow, ...]


Link = Callable[..., str]
Place = tuple[str, int]


def detail_of(
    told: Mapping[str, Any], seen: Names, *, page: int, members_page: int, link: Link
) -> Detail:
    """Return the detail that a page shows of an answer; `link` makes addresses of other pages."""
    total = told["partition_count"]
    clients = {member[0]: member[2] for member in told["members"]}
    lines = tuple(_partition(row, clients) for row in told["partitions"] if row[0] in seen)
    heads = _heads(told, seen)
    cells = _cells(told) if heads else {}
    members = told["members"]
    first = (members_page - 1) * PAGE_ROWS
    listed = members[first : first + PAGE_ROWS]
    return Detail(
        coordinator=told["coordinator"],
        partitions=lines,
        partition_pages=_pages("page", page, len(told["partitions"]), total, link),
        members=tuple(_member(row, seen, heads, cells) for row in listed),
        member_pages=_pages("members", members_page, len(listed), len(members), link),
        unowned=_unowned(told["unowned"], seen),
        unowned_count=told["unowned_count"],
        grid=heads,
        rates={row[0]: Rates(consumed=row[2], produced=row[3]) for row in told["topics"]},
        causes={row[0]: _cause(row, seen) for row in told["topics"] if row[4] >= 0},
        is_cut=told["is_cut"],
        row=None if told["row"] is None else GroupRow(*told["row"]),
        pairs=tuple(PairRow(*pair) for pair in told["pairs"]),
    )


def _pages(key: str, page: int, shown: int, total: int, link: Link) -> Pages:
    before = (page - 1) * PAGE_ROWS
    return Pages(
        first=before + 1 if shown else 0,
        last=before + shown,
        total=total,
        previous_link=link(**{key: page - 1}) if page > 1 else "",
        next_link=link(**{key: page + 1}) if before + shown < total else "",
    )


def _partition(row: Sequence[Any], clients: Mapping[str, str]) -> PartitionLine:
    topic, partition, committed, end, lag, commit_ms, verdict, owner, rate, rule, at_most = row
    return PartitionLine(
        topic=topic,
        partition=partition,
        committed=committed,
        end=end,
        lag=lag,
        at_most=at_most,
        committed_at=None if commit_ms is None else moment(commit_ms / 1000),
        mark=REASONS.get(rule, MARKS[Verdict(verdict)]),
        owner=shown(clients.get(owner, "")),
        owner_id=shown(owner) if owner else "",
        rate=rate,
    )


def _cause(row: Sequence[Any], seen: Names) -> Cause:
    topic, _partitions, _consumed, _produced, worst, since_ms, rule = row
    return Cause(
        place=f"{topic}-{worst}" if topic in seen else UNSEEN,
        words=SINCE.get(rule) or "since",
        since=moment(since_ms / 1000) if since_ms else None,
    )


# --- members ---------------------------------------------------------------------------------


def _member(
    row: Sequence[Any], seen: Names, heads: tuple[Head, ...], cells: Mapping[Place, Cell]
) -> MemberLine:
    member_id, instance, client, host, owned, lag = row
    mine = {(topic, partition) for topic, partitions in owned for partition in partitions}
    places = [(head.topic, partition) for head in heads for partition in head.partitions]
    return MemberLine(
        id=shown(member_id),
        instance=shown(instance) if instance else "",
        client=shown(client),
        host=shown(host.lstrip("/")),
        lag=lag,
        owned=tuple(
            Owned(topic=topic, partitions=span_of(partitions), count=len(partitions))
            for topic, partitions in owned
            if topic in seen
        ),
        unseen=sum(topic not in seen for topic, _partitions in owned),
        cells=tuple(
            cells.get(place, Cell(is_owned=True)) if place in mine else NOT_OWNED
            for place in places
        ),
    )


def _heads(told: Mapping[str, Any], seen: Names) -> tuple[Head, ...]:
    """Return the columns of a grid; none if there are too many, or some are not reported."""
    if not told["members"] or told["partition_count"] != len(told["partitions"]):
        return ()
    places = {(row[0], row[1]) for row in told["partitions"]}
    places.update((topic, partition) for topic, partition in told["unowned"])
    for member in told["members"][:PAGE_ROWS]:
        places.update((topic, partition) for topic, rest in member[4] for partition in rest)
    found = sorted(place for place in places if place[0] in seen)
    if len(found) > MAX_GRID:
        return ()
    return tuple(
        Head(topic=topic, partitions=tuple(partition for _topic, partition in group))
        for topic, group in groupby(found, key=lambda place: place[0])
    )


def _cells(told: Mapping[str, Any]) -> dict[Place, Cell]:
    return {
        (row[0], row[1]): Cell(
            is_owned=True, lag=row[4], at_most=row[10], mark=MARKS[Verdict(row[6])]
        )
        for row in told["partitions"]
    }


def _unowned(places: Iterable[Sequence[Any]], seen: Names) -> tuple[Owned, ...]:
    """Return unowned partitions by topic, as many as a sentence can name."""
    named = [(topic, partition) for topic, partition in places if topic in seen]
    found = []
    for topic, group in groupby(named[:NAMED_PARTITIONS], key=lambda place: place[0]):
        numbers = [partition for _topic, partition in group]
        found.append(Owned(topic=topic, partitions=span_of(numbers), count=len(numbers)))
    return tuple(found)


def span_of(numbers: Iterable[int]) -> str:
    """Return partition numbers in ascending order as ranges, as in "0–3, 7"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{low}" if low == high else f"{low}–{high}" for low, high in runs)
