"""Reads the list of topics: filtered by name and facet, sorted by any column, page by page."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from django.utils.safestring import SafeString

from brokers.controlplane.selectors import NameSet
from console import group_names, quantities
from console.queries.frame import Frame
from console.queries.lag import MARKS, Mark
from console.queries.reading import Reading, State
from console.queries.recent import Samples, recent
from console.queries.sparks import spark
from console.queries.topic_facets import BITS, FACETS, INTERNAL, Facet, Topic, fits
from console.queries.topic_table import (
    Stored,
    joined,
    stored_topics,
    visible_names,
    without_database,
)
from gateway.access.grants import Names, Rights
from gateway.access.operations import Kind, Operation
from gateway.kafka import shown_names

PAGE_ROWS: Final = 100
# The length limit of a topic name.
MAX_FILTER: Final = 249
# No cluster has so many pages; longer numbers are ignored.
MAX_PAGE_DIGITS: Final = 6
BY_NAME: Final = "name"


def _told(field: str) -> Callable[[Topic], float | None]:
    return lambda topic: None if topic.told is None else getattr(topic.told, field)


def _partitions(topic: Topic) -> int | None:
    if topic.stored is not None:
        return topic.stored.partitions
    return None if topic.told is None else topic.told.partitions


def _replication(topic: Topic) -> int | None:
    return None if topic.stored is None else topic.stored.replication_factor


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    key: str
    title: str
    # The sort key; None sorts last in either direction.
    value: Callable[[Topic], float | str | None]
    unit: str = ""
    is_number: bool = True


COLUMNS: Final = (
    Column(key=BY_NAME, title="Name", value=lambda topic: topic.name, is_number=False),
    Column(key="health", title="Health", value=lambda topic: topic.badness, is_number=False),
    Column(key="partitions", title="Partitions", value=_partitions),
    Column(key="replication", title="Replicas", value=_replication),
    Column(key="size", title="Size", value=_told("size_bytes")),
    Column(key="records", title="Records", value=_told("records_per_s"), unit="/s"),
    Column(key="in", title="In", value=_told("bytes_in_per_s"), unit="/s"),
    Column(key="out", title="Out", value=_told("bytes_out_per_s"), unit="/s"),
    Column(key="lag", title="Worst lag", value=_told("lag"), is_number=False),
)
SORTS: Final = {column.key: column for column in COLUMNS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The valid part of a request."""

    contains: str = ""
    facets: frozenset[str] = frozenset()
    sort: str = BY_NAME
    is_descending: bool = False
    page: int = 1

    @property
    def is_narrowed(self) -> bool:
        return bool(self.contains or self.facets)

    def address(self, cluster_id: str) -> str:
        """Return the query string for the same list."""
        pairs = [("q", self.contains)] if self.contains else []
        pairs += [("facet", key) for key in FACETS if key in self.facets]
        if self.sort != BY_NAME or self.is_descending:
            pairs.append(("sort", f"-{self.sort}" if self.is_descending else self.sort))
        pairs.append(("cluster", cluster_id))
        if self.page > 1:
            pairs.append(("page", str(self.page)))
        return f"?{urlencode(pairs)}"

    def sorted_by(self, key: str) -> "Asked":
        """Return the list in the order that a click on a column selects: worst or most first."""
        is_same = self.sort == key
        is_descending = not self.is_descending if is_same else key != BY_NAME
        return replace(self, sort=key, is_descending=is_descending, page=1)

    def toggled(self, facet: Facet) -> "Asked":
        rest = {key for key in self.facets if key != facet.key}
        if facet.family:
            rest = {key for key in rest if FACETS[key].family != facet.family}
        chosen = rest if facet.key in self.facets else rest | {facet.key}
        return replace(self, facets=frozenset(chosen), page=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    word: str
    meaning: str
    count: int
    link: str
    is_chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The head of a column. `order` is its aria-sort value; empty if it is not the sort column."""

    title: str
    unit: str
    link: str
    order: str
    is_number: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A topic in the list; numbers are preformatted, since a page shows a thousand of them."""

    name: str
    state: str
    word: str
    meaning: str  # of the word; empty if the word is clear
    partitions: str
    replication: str
    size: str
    records: str
    bytes_in: str
    bytes_out: str
    spark: SafeString
    lag: str = ""
    mark: Mark | None = None  # of the worst lag; None if no group reads the topic
    group: str = ""
    group_link: str = ""
    is_compacted: bool = False
    is_internal: bool = False
    overrides: tuple[Override, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    frame: Frame
    asked: Asked = Asked()
    # False if the user may see only some topics; numbers of the cluster cover more than the rows.
    is_whole: bool = True
    # Only the brokers' part is available.
    is_without_database: bool = False
    told_at: datetime | None = None  # when the collector reported the data; None: it never did
    heads: tuple[Head, ...] = ()
    chips: tuple[Chip, ...] = ()
    rows: tuple[Row, ...] = ()
    total: int = 0  # that match the request
    every: int = 0  # that the user may see, without internal ones
    hidden: int = 0  # internal ones, which this list leaves out
    first: int = 0  # the number of the first row shown, from 1
    last: int = 0
    previous_page: str = ""
    next_page: str = ""
    all_page: str = ""


def asked_of(
    *, contains: str = "", facets: Sequence[str] = (), sort: str = "", page: str = ""
) -> Asked:
    """Return the valid part of a request; invalid values are ignored."""
    key = sort.removeprefix("-")
    chosen: dict[str, str] = {}
    for facet in facets:
        if facet in FACETS:
            # Of one family, the last facet wins.
            chosen[FACETS[facet].family or facet] = facet
    is_number = page.isascii() and page.isdigit() and len(page) <= MAX_PAGE_DIGITS
    return Asked(
        # No name holds a NUL.
        contains=contains.replace("\0", "").strip()[:MAX_FILTER],
        facets=frozenset(chosen.values()),
        sort=key if key in SORTS else BY_NAME,
        is_descending=sort.startswith("-") and key in SORTS,
        page=max(1, int(page)) if is_number else 1,
    )


def topics(cluster_id: str | None, asked: Asked, rights: Rights) -> Reading[Topics]:
    stored = stored_topics(cluster_id, rights)
    is_alone = stored.is_failed
    if is_alone:
        stored = without_database(cluster_id, rights, stored)
    data, state = None, stored.state
    if stored.data is not None:
        data = _listed(stored.data, asked, rights, is_old=stored.is_stale)
        data = replace(data, is_without_database=is_alone)
        if not stored.is_stale:
            state = State.LOADED if data.rows else State.EMPTY
    return Reading(
        state=state,
        data=data,
        read_at=stored.read_at,
        age_s=stored.age_s,
        reason=stored.reason,
    )


def _listed(stored: Stored, asked: Asked, rights: Rights, *, is_old: bool) -> Topics:
    around = stored.frame
    if around.shown is None or around.live is None:
        return Topics(frame=around, asked=asked)
    shown = around.shown.cluster_id
    names = visible_names(rights, shown)
    groups = rights.names(Operation.VIEW, cluster=shown, kind=Kind.GROUP)
    every = joined(stored, around.live, names, is_old=is_old)
    looked_for = asked.contains.lower()
    named = [topic for topic in every if looked_for in topic.name.lower()] if looked_for else every
    wanted = sum(BITS[key] for key in asked.facets)
    found = [topic for topic in named if fits(topic.kinds, wanted)]
    found.sort(key=lambda topic: topic.name)
    found = _in_order(found, asked)
    counts = Counter(topic.kinds for topic in named)
    pages = max(1, -(-len(found) // PAGE_ROWS))
    page = min(asked.page, pages)
    offset = (page - 1) * PAGE_ROWS
    rows = found[offset : offset + PAGE_ROWS]
    # A collector that does not answer would keep the page waiting for pictures.
    is_answering = not around.live.snapshot.failure
    samples = recent("topic", [topic.name for topic in rows]) if is_answering else {}
    return Topics(
        frame=around,
        asked=asked,
        is_whole=names.is_all,
        told_at=around.live.told_at,
        heads=tuple(_head(column, asked, shown) for column in COLUMNS),
        chips=tuple(_chip(facet, asked, counts, shown) for facet in FACETS.values()),
        rows=tuple(
            _with_lag(_row(topic, samples.get(topic.name, ())), topic, shown, groups)
            for topic in rows
        ),
        total=len(found),
        every=sum(not topic.is_internal for topic in every),
        hidden=0 if INTERNAL in asked.facets else sum(topic.is_internal for topic in every),
        first=offset + 1 if rows else 0,
        last=offset + len(rows),
        previous_page=replace(asked, page=page - 1).address(shown) if page > 1 else "",
        next_page=replace(asked, page=page + 1).address(shown) if page < pages else "",
        all_page=Asked().address(shown),
    )


def _in_order(topics: list[Topic], asked: Asked) -> list[Topic]:
    """Sort, unknown values last; equal topics stay in the order of their names."""
    value = SORTS[asked.sort].value
    known = [(value(topic), topic) for topic in topics]
    there = [pair for pair in known if pair[0] is not None]
    there.sort(key=lambda pair: pair[0], reverse=asked.is_descending)  # type: ignore[arg-type,return-value]
    return [topic for _, topic in there] + [topic for found, topic in known if found is None]


def _head(column: Column, asked: Asked, cluster_id: str) -> Head:
    order = ""
    if column.key == asked.sort:
        order = "descending" if asked.is_descending else "ascending"
    return Head(
        title=column.title,
        unit=column.unit,
        link=asked.sorted_by(column.key).address(cluster_id),
        order=order,
        is_number=column.is_number,
    )


def _chip(facet: Facet, asked: Asked, counts: Mapping[int, int], cluster_id: str) -> Chip:
    """Return a facet with the number of topics that match it and the other chosen ones."""
    toggled = asked.toggled(facet)
    wanted = sum(BITS[key] for key in toggled.facets | {facet.key})
    return Chip(
        word=facet.word,
        meaning=facet.meaning,
        count=sum(count for kinds, count in counts.items() if fits(kinds, wanted)),
        link=toggled.address(cluster_id),
        is_chosen=facet.key in asked.facets,
    )


def _row(topic: Topic, samples: Samples) -> Row:
    state, word = topic.health
    is_lag = topic.is_lagging and not topic.is_leaderless
    told = topic.told
    configs = {} if topic.stored is None else topic.stored.configs
    return Row(
        name=topic.name,
        state=state,
        word=word,
        meaning=MARKS[topic.verdict].meaning if topic.verdict and is_lag else "",
        partitions=quantities.count(_partitions(topic)),
        replication=quantities.count(_replication(topic)),
        size=quantities.size(None if told is None else told.size_bytes),
        records=quantities.short(None if told is None else told.records_per_s),
        bytes_in=quantities.size(None if told is None else told.bytes_in_per_s),
        bytes_out=quantities.size(None if told is None else told.bytes_out_per_s),
        spark=_spark(samples),
        is_compacted=topic.is_compacted,
        is_internal=topic.is_internal,
        overrides=tuple(Override(key=k, value=v) for k, v in sorted(configs.items())),
    )


def _spark(samples: Samples) -> SafeString:
    """Draw the incoming bytes; a flat line at zero is left out."""
    most = max((sample for sample in samples if sample is not None), default=0)
    return spark(samples, f"up to {quantities.bytes_rate(most)}") if most else SafeString()


def _with_lag(row: Row, topic: Topic, cluster_id: str, groups: Names) -> Row:
    told, verdict = topic.told, topic.verdict
    if told is None or verdict is None:
        return row
    row = replace(row, lag=quantities.short(told.lag), mark=MARKS[verdict])
    if told.worst_group not in groups:
        return row
    return replace(
        row,
        group=shown_names.shown(told.worst_group),
        group_link=group_names.link(cluster_id, told.worst_group),
    )


def visible(rights: Rights, cluster_id: str) -> NameSet | None:
    """Return the topics that a user may see; None for all."""
    names = visible_names(rights, cluster_id)
    if names.is_all:
        return None
    return NameSet(literals=names.literals, prefixes=names.prefixes)
