"""Reads the page of one topic: its head, partitions, consumer groups and configs.

Settings come from the database and live data from the collector; either may be missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final

from django.utils.safestring import SafeString

from brokers.cluster.image import Broker, PartitionState, ResourceType, written_id
from brokers.cluster.image import Topic as TopicImage
from brokers.cluster.topic_names import KEPT_INSIDE
from brokers.controlplane import selectors
from console import durations, group_names
from console.monitoring.selectors import NotThere
from console.monitoring.tables import GroupRow, PairRow, TopicRow
from console.monitoring.verdicts import SEVERITY, Verdict
from console.queries import live
from console.queries.charts import Chart
from console.queries.frame import Frame, frame
from console.queries.lag import MARKS, Mark, eta_words, lag_seconds, lag_words, mark_of
from console.queries.live import Live
from console.queries.reading import Reading, last_good
from console.queries.sparks import spark
from console.queries.topic_values import Interaction, Value, interactions_of, values_of
from gateway.access.grants import Resource, Rights
from gateway.access.operations import Kind, Operation
from gateway.kafka import shown_names

PAGE_ROWS: Final = 100


class Tab(Enum):
    PARTITIONS = "partitions"
    CONSUMERS = "consumers"
    CONFIGS = "configs"
    CHARTS = "charts"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRow:
    """A partition. `state` and `word` say whether it has a leader; unknown numbers are None."""

    index: int
    state: str
    word: str
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    start: int | None = None
    end: int | None = None
    records: int | None = None
    size: int | None = None
    rate: float | None = None
    spark: SafeString = field(default_factory=SafeString)  # of the last ten minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerRow:
    group: str
    link: str
    mark: Mark
    lag: str
    behind: str  # the age of the oldest unread record, in words
    eta: str
    state: str
    members: int | None
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pages:
    """The rows of a page and of its neighbours; 0 if there is no such page."""

    total: int = 0
    first: int = 0
    last: int = 0
    previous: int = 0
    next: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The part above every tab of a topic."""

    name: str
    id: str
    partitions: int
    replication: int
    leaderless: int
    is_internal: bool
    keeps: str = ""
    may_produce: bool = False
    told: TopicRow | None = None
    mark: Mark | None = None  # of the worst group; None if no group reads the topic
    group: str = ""  # that group, if the user may see it
    group_link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPage:
    frame: Frame
    # None if the topic does not exist or the user may not see it: both look the same.
    head: Head | None = None
    name: str = ""
    tab: str = Tab.PARTITIONS.value
    # Why the collector has no details; empty if it has.
    untold: str = ""
    # No broker has reported the topic yet, as happens to a new one.
    is_unheard: bool = False
    partitions: tuple[PartitionRow, ...] = ()
    consumers: tuple[ConsumerRow, ...] = ()
    hidden_consumers: int = 0
    pages: Pages = Pages()
    values: tuple[Value, ...] = ()
    interactions: tuple[Interaction, ...] = ()
    charts: tuple[Chart, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A topic that exists and that the user may see."""

    cluster_id: str
    live: Live
    topic: TopicImage
    brokers: tuple[Broker, ...]
    configs: Mapping[str, str]  # set for the topic
    wide: Mapping[str, str]  # set for all brokers

    @property
    def serving(self) -> set[int]:
        return {broker.id for broker in self.brokers if not broker.is_fenced}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTopic:
    """What the database holds of one topic."""

    frame: Frame
    found: Found | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What the collector knows of one topic beyond the tables, or why it has nothing."""

    partitions: Mapping[int, Sequence[Any]] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    ms: int = 0  # when it was reported
    is_unheard: bool = False  # no broker has reported the topic yet, as happens to a new one
    untold: str = ""


def stored_topic(cluster_id: str | None, name: str, rights: Rights) -> Reading[StoredTopic]:
    """Return a topic of the requested cluster, as far as the user may see it."""
    reading = last_good.read(
        # Key by the rights too, so that no user gets what was read for another one.
        ("topic", cluster_id, name, rights.grants),
        lambda: _stored(cluster_id, name, rights),
        is_empty=lambda data: data.found is None,
    )
    if reading.data is None or reading.data.frame.shown is None:
        return reading
    # Live data always comes from the mirror, however old the database's part is.
    now = live.of(reading.data.frame.shown.cluster_id)
    found = reading.data.found
    data = StoredTopic(
        frame=replace(reading.data.frame, live=now),
        found=None if found is None else replace(found, live=now),
    )
    return replace(reading, data=data)


def topic_page(
    cluster_id: str | None, name: str, tab: Tab, page: int, rights: Rights
) -> Reading[TopicPage]:
    stored = stored_topic(cluster_id, name, rights)
    data = None
    if stored.data is not None:
        data = TopicPage(frame=stored.data.frame, name=name, tab=tab.value)
        if stored.data.found is not None:
            data = _page(data, stored.data.found, tab, page, rights)
    return stored.about(data)


def head_of(found: Found, rights: Rights) -> Head:
    """Return the part above every tab of a topic."""
    topic = found.topic
    told = found.live.snapshot.topic(topic.name)
    serving = found.serving
    has_group = told is not None and told.lag is not None
    group = told.worst_group if told is not None and has_group else ""
    cluster, is_internal = found.cluster_id, topic.name in KEPT_INSIDE
    of_group = Resource(kind=Kind.GROUP, cluster=cluster, name=group)
    may_see = has_group and rights.allows(Operation.VIEW, of_group)
    of_topic = Resource(kind=Kind.TOPIC, cluster=cluster, name=topic.name)
    return Head(
        name=topic.name,
        id=written_id(topic.id),
        partitions=len(topic.partitions),
        replication=topic.replication_factor,
        leaderless=sum(state.leader not in serving for state in topic.partitions),
        is_internal=is_internal,
        # Brokers refuse records of clients for internal topics.
        may_produce=not is_internal and rights.allows(Operation.PRODUCE, of_topic),
        keeps=KEPT_INSIDE.get(topic.name, ""),
        told=told,
        mark=None if told is None or told.lag is None else MARKS[Verdict(told.verdict)],
        group=shown_names.shown(group) if may_see else "",
        group_link=group_names.link(cluster, group) if may_see else "",
    )


def _charts(cluster_id: str, name: str) -> tuple[Chart, ...]:
    def chart(key: str, title: str, unit: str, **lines: str) -> Chart:
        return Chart(
            id=f"chart-{key}",
            title=title,
            cluster_id=cluster_id,
            kind="topic",
            name=name,
            metrics=tuple(lines),
            labels=tuple(lines.values()),
            unit=unit,
        )

    return (
        chart("bytes", "Bytes in and out", "bytes/s", bytes_in="In", bytes_out="Out"),
        chart("records", "Records written", "records/s", records="All partitions"),
    )


def _stored(cluster_id: str | None, name: str, rights: Rights) -> StoredTopic:
    around = frame(cluster_id, rights)
    shown = around.shown
    # The same name in another cluster is another topic.
    if shown is None or around.live is None or cluster_id not in {None, shown.cluster_id}:
        return StoredTopic(frame=around)
    cluster = shown.cluster_id
    resource = Resource(kind=Kind.TOPIC, cluster=cluster, name=name)
    if not rights.allows(Operation.VIEW, resource):
        return StoredTopic(frame=around)
    # No name holds a NUL, and PostgreSQL rejects a query with one.
    topic = None if "\0" in name else selectors.topic(cluster_id=cluster, name=name)
    if topic is None:
        return StoredTopic(frame=around)
    found = Found(
        cluster_id=cluster,
        live=around.live,
        topic=topic,
        brokers=tuple(selectors.brokers(cluster_id=cluster)),
        configs=selectors.configs(cluster_id=cluster, resource_type=ResourceType.TOPIC, name=name),
        wide=selectors.configs(cluster_id=cluster, resource_type=ResourceType.BROKER, name=""),
    )
    return StoredTopic(frame=around, found=found)


def _page(shown: TopicPage, found: Found, tab: Tab, page: int, rights: Rights) -> TopicPage:
    shown = replace(shown, head=head_of(found, rights))
    match tab:
        case Tab.PARTITIONS:
            return _with_partitions(shown, found, page)
        case Tab.CONSUMERS:
            return _with_consumers(shown, found, page, rights)
        case Tab.CONFIGS:
            factor = found.topic.replication_factor
            return replace(
                shown,
                values=values_of(found.configs, found.wide),
                interactions=interactions_of(found.configs, found.wide, replication=factor),
            )
        case Tab.CHARTS:
            return replace(shown, charts=_charts(found.cluster_id, found.topic.name))


def _with_partitions(shown: TopicPage, found: Found, page: int) -> TopicPage:
    states = found.topic.partitions
    pages = pages_of(len(states), page)
    offset = pages.first - 1
    details = details_of(found, first=offset, rows=PAGE_ROWS)
    serving = found.serving
    return replace(
        shown,
        untold=details.untold,
        is_unheard=details.is_unheard,
        pages=pages,
        partitions=tuple(
            _partition_row(index, state, details.partitions.get(index), serving)
            for index, state in enumerate(states[offset : pages.last], offset)
        ),
    )


def _partition_row(
    index: int, state: PartitionState, told: Sequence[Any] | None, serving: set[int]
) -> PartitionRow:
    is_led = state.leader in serving
    row = PartitionRow(
        index=index,
        state="ok" if is_led else "bad",
        word="Has leader" if is_led else "No leader",
        leader=state.leader if is_led else None,
        replicas=state.replicas,
        isr=state.isr,
    )
    if told is None:
        return row
    _index, _owner, start, end, size, rates = told
    return replace(
        row,
        start=start,
        end=end,
        records=max(0, end - start),
        size=size,
        rate=rates[-1] if rates else None,
        spark=spark(rates) if any(rates) else SafeString(),
    )


def _with_consumers(shown: TopicPage, found: Found, page: int, rights: Rights) -> TopicPage:
    details = details_of(found, first=0, rows=0)
    names = rights.names(Operation.VIEW, cluster=found.cluster_id, kind=Kind.GROUP)
    seen = names.among(details.groups)
    rows = consumers(found, seen, told_ms=details.ms)
    pages = pages_of(len(rows), page)
    return replace(
        shown,
        untold=details.untold,
        pages=pages,
        consumers=tuple(rows[max(0, pages.first - 1) : pages.last]),
        hidden_consumers=len(details.groups) - len(seen),
    )


def consumers(found: Found, names: Sequence[str], *, told_ms: int) -> list[ConsumerRow]:
    """Return the lag of these groups in a topic, the worst first."""
    snapshot, topic = found.live.snapshot, found.topic.name
    pairs = [pair for name in names if (pair := snapshot.pair(name, topic)) is not None]
    pairs.sort(key=lambda pair: (-SEVERITY[pair.verdict_value], -pair.lag, pair.group))
    return [
        _consumer_row(pair, snapshot.group(pair.group), found.cluster_id, told_ms) for pair in pairs
    ]


def _consumer_row(
    pair: PairRow, group: GroupRow | None, cluster_id: str, told_ms: int
) -> ConsumerRow:
    seconds = lag_seconds(pair, told_ms)
    return ConsumerRow(
        group=shown_names.shown(pair.group),
        link=group_names.link(cluster_id, pair.group),
        mark=mark_of(pair),
        lag=lag_words(pair),
        behind="" if seconds is None else durations.span(seconds),
        eta=eta_words(pair, seconds),
        state="" if group is None else group.state,
        members=None if group is None else group.members,
        partitions=pair.partitions,
    )


def details_of(found: Found, *, first: int, rows: int) -> Details:
    """Ask the collector for some partitions of a topic and all groups that read it."""
    if failure := found.live.snapshot.failure:
        # It did not answer a second ago: another request would keep the page waiting.
        return Details(untold=failure)
    try:
        told = live.ask("/topic", name=found.topic.name, first=first, rows=rows)
    except NotThere:
        return Details(is_unheard=True)
    except live.CollectorFailed as error:
        return Details(untold=str(error))
    return Details(
        partitions={row[0]: row for row in told["partitions"]},
        groups=tuple(told["groups"]),
        ms=told["ms"],
    )


def pages_of(total: int, page: int) -> Pages:
    """Return which of `total` rows a page has; a page beyond the last one is the last one."""
    pages = max(1, -(-total // PAGE_ROWS))
    page = min(max(1, page), pages)
    return Pages(
        total=total,
        first=(page - 1) * PAGE_ROWS + 1 if total else 0,
        last=min(page * PAGE_ROWS, total),
        previous=page - 1,
        next=page + 1 if page < pages else 0,
    )
