"""Reads the page of one group: its lag and the cause, its topics, partitions and members."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from console import durations, group_names
from console.monitoring.tables import GroupRow, PairRow
from console.monitoring.verdicts import SEVERITY, Verdict
from console.queries import live
from console.queries.charts import Chart
from console.queries.connector_states import Owner, owners_of
from console.queries.frame import Frame, frame
from console.queries.group_detail import PAGE_ROWS, Cause, Detail, Rates, detail_of
from console.queries.groups import aged_at_ms, visible
from console.queries.lag import (
    KEEPS_UP,
    NEVER,
    NOT_KNOWN,
    Mark,
    eta_words,
    lag_seconds,
    lag_words,
    mark_of,
    owned_words,
    rebalance_words,
    since_of,
)
from console.queries.reading import Reading, last_good, moment
from gateway.access.grants import Names, Resource, Rights
from gateway.access.operations import Kind, Operation
from gateway.kafka import shown_names

# Topics that a page lists, worst first; a group that subscribes by a pattern may have more.
MAX_TOPICS: Final = 100
MAX_DIGITS: Final = 6
# Charts of single topics: two rows of them below those of the group.
MAX_TOPIC_CHARTS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The view of a group that a visitor selects, as links repeat it."""

    name: str
    topic: str = ""  # partitions of this topic only
    page: int = 1  # of the partitions
    members: int = 1  # the page of the members

    def link(self, cluster_id: str, **changed: str | int) -> str:
        values: dict[str, str | int] = {
            "topic": self.topic,
            "page": self.page,
            "members": self.members,
            **changed,
        }
        plain = {"topic": "", "page": 1, "members": 1}
        written = {key: value for key, value in values.items() if value != plain[key]}
        return group_names.link(cluster_id, self.name, more=written)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLine:
    """The lag of a group in one of its topics."""

    name: str
    mark: Mark
    lag: str
    lag_time: str
    eta: str
    committed: int  # partitions with a committed offset
    rates: Rates | None
    link: str = ""  # to its partitions on this page
    remove_link: str = ""  # to the form that removes its offsets, if that is possible


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A button of the page."""

    word: str
    link: str  # empty if it is not possible now
    is_risk: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class May:
    """What the user may do with the group, and why an action is not possible now."""

    actions: tuple[Action, ...] = ()
    hindrance: str = ""
    can_remove: bool = False  # removes the offsets committed in one topic


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPage:
    frame: Frame
    asked: Asked
    shown_name: str
    told_at: datetime | None = None
    # None if the group does not exist or the user may not see it: both look the same.
    row: GroupRow | None = None
    # The connector of the group, if it is one's and the user may see that.
    owner: Owner | None = None
    mark: Mark | None = None
    sentence: str = ""
    bounds: str = ""  # of a lag that is unknown
    rebalances: str = ""
    counted_since: datetime | None = None
    since: datetime | None = None  # of the verdict
    lag: str = ""
    lag_time: str = ""
    eta: str = ""
    topics: tuple[TopicLine, ...] = ()
    more_topics: int = 0
    unseen_topics: int = 0
    worst: TopicLine | None = None  # the topic that the verdict comes from, unless it is OK
    cause: Cause | None = None
    charts: tuple[Chart, ...] = ()
    detail: Detail | None = None
    failure: str = ""  # why there is no detail
    may: May = May()
    all_partitions_link: str = ""


def asked_of(query: Mapping[str, str]) -> Asked:
    return Asked(
        name=query.get("name", ""),
        topic=query.get("topic", ""),
        page=_number(query.get("page", "1")),
        members=_number(query.get("members", "1")),
    )


def group(
    cluster_id: str | None,
    asked: Asked,
    rights: Rights,
    *,
    now: Callable[[], float] = time.time,
) -> Reading[GroupPage]:
    return last_good.read(
        # Key by the rights too, so that no user gets what was read for another one.
        ("group", cluster_id, asked, rights.grants),
        lambda: _read(cluster_id, asked, rights, now()),
        is_empty=lambda data: data.row is None,
    )


def _read(cluster_id: str | None, asked: Asked, rights: Rights, now_s: float) -> GroupPage:
    around = frame(cluster_id, rights)
    nothing = GroupPage(frame=around, asked=asked, shown_name=shown_names.shown(asked.name))
    if around.shown is None or around.live is None:
        return nothing
    shown, snapshot = around.shown.cluster_id, around.live.snapshot
    row = snapshot.group(asked.name) if asked.name in visible(rights, shown) else None
    told = around.live.told_at
    if row is None or told is None:
        return replace(nothing, told_at=told)
    at_ms = aged_at_ms(around.live, now_s)
    seen = rights.names(Operation.VIEW, cluster=shown, kind=Kind.TOPIC)
    if asked.topic not in seen:
        # Hide the number of partitions from users who may not view the topic.
        asked = replace(asked, topic="")
        nothing = replace(nothing, asked=asked)
    pairs = sorted(snapshot.pairs_of(asked.name), key=_worst_first)
    detail, failure = _detail(asked, seen, shown)
    if detail is not None and detail.row is not None:
        # The mirror may be older by one evaluation, and would contradict the partitions below.
        row, pairs = detail.row, sorted(detail.pairs, key=_worst_first)
    known = [pair for pair in pairs if pair.topic in seen]
    may = _may(rights, shown, row)
    lines = tuple(
        replace(
            _line(pair, at_ms, detail),
            link=asked.link(shown, topic=pair.topic, page=1),
            remove_link=_remove_link(asked.name, pair.topic, shown) if may.can_remove else "",
        )
        for pair in known[:MAX_TOPICS]
    )
    seconds = lag_seconds(row, at_ms)
    return replace(
        nothing,
        told_at=told,
        row=row,
        owner=owners_of(shown, [row.name], rights).get(row.name),
        mark=mark_of(row),
        since=since_of(row),
        sentence=_sentence(row, at_ms),
        bounds=owned_words(row),
        rebalances=rebalance_words(row),
        counted_since=moment(row.counted_since_ms / 1000) if row.counted_since_ms else None,
        lag=lag_words(row),
        lag_time="" if seconds is None else durations.span(seconds),
        eta=eta_words(row, seconds),
        topics=lines,
        more_topics=len(known) - len(lines),
        unseen_topics=len(pairs) - len(known),
        cause=detail.causes.get(pairs[0].topic) if detail is not None and pairs else None,
        charts=_charts(shown, asked.name, tuple(pair.topic for pair in known)),
        worst=lines[0] if known and known[0] is pairs[0] else None,
        detail=detail,
        failure=failure,
        may=may,
        all_partitions_link=asked.link(shown, topic="", page=1),
    )


def _detail(asked: Asked, seen: Names, cluster_id: str) -> tuple[Detail | None, str]:
    """Return the collector's detail of the group, or the reason why there is none."""
    try:
        told = live.ask(
            "/group",
            name=asked.name,
            topic=asked.topic,
            first=(asked.page - 1) * PAGE_ROWS,
            rows=PAGE_ROWS,
        )
    except live.CollectorFailed as error:
        return None, str(error)
    return detail_of(
        told,
        seen,
        page=asked.page,
        members_page=asked.members,
        link=lambda **changed: asked.link(cluster_id, **changed),
    ), ""


def _charts(cluster_id: str, name: str, topics: tuple[str, ...]) -> tuple[Chart, ...]:
    """Return charts of the group's lag in time and in records, and in time for its worst topics."""
    whole = tuple(
        Chart(
            id=f"chart-{metric}",
            title=title,
            cluster_id=cluster_id,
            kind="group",
            name=name,
            metrics=(metric,),
            labels=("Lag",),
            unit=unit,
        )
        for metric, title, unit in (
            ("lag_ms", "Lag in time", "ms"),
            ("lag", "Lag in records", "records"),
        )
    )
    # Leave out the chart of the only topic: it equals that of the group.
    parts = tuple(
        Chart(
            id=f"chart-of-{topic}",
            title=f"Lag in time in {topic}",
            cluster_id=cluster_id,
            kind="pair",
            name=name,
            topic=topic,
            metrics=("lag_ms",),
            labels=("Lag",),
            unit="ms",
        )
        for topic in (topics[:MAX_TOPIC_CHARTS] if len(topics) > 1 else ())
    )
    return whole + parts


def _worst_first(pair: PairRow) -> tuple[int, int, str]:
    return (-SEVERITY[pair.verdict_value], -pair.lag, pair.topic)


def _remove_link(name: str, topic: str, cluster_id: str) -> str:
    return group_names.link(cluster_id, name, "delete-offsets", more={"topic": topic})


def _line(pair: PairRow, at_ms: int, detail: Detail | None) -> TopicLine:
    seconds = lag_seconds(pair, at_ms)
    return TopicLine(
        name=pair.topic,
        mark=mark_of(pair),
        lag=lag_words(pair),
        lag_time="" if seconds is None else durations.span(seconds),
        eta=eta_words(pair, seconds),
        committed=pair.partitions,
        rates=None if detail is None else detail.rates.get(pair.topic),
    )


def _sentence(row: GroupRow, at_ms: int) -> str:
    """Return how far a group is behind, and whether it will catch up."""
    if not row.lag:
        return _sentence_without_lag(row)
    records = f"{row.lag:,} record{'' if row.lag == 1 else 's'}"
    seconds = lag_seconds(row, at_ms)
    behind = f"{records} behind"
    if seconds is not None:
        behind = f"{durations.span(seconds)} behind: {records} wait{'s' if row.lag == 1 else ''}"
    words = eta_words(row, seconds)
    if row.verdict_value is Verdict.NO_MEMBERS or not row.members:
        return f"{behind}, and it has no members"
    if words in {"", NOT_KNOWN}:
        return behind
    is_sentence = words in {NEVER, KEEPS_UP}
    return f"{behind}, and it {words}" if is_sentence else f"{behind}, caught up in {words}"


def _sentence_without_lag(row: GroupRow) -> str:
    if row.at_most:
        return "Its lag is unknown: it has not committed"
    if row.unknown:
        return "Its lag is unknown"
    if not row.topics:
        return "Nothing is committed"
    if row.verdict_value is Verdict.NO_MEMBERS:
        return "It has no members and no lag"
    if mark_of(row).state == "bad":
        # Reading pauses at each rebalance, and the next look may find records that wait.
        return "It has no lag at the moment"
    return "Caught up: nothing waits"


def _may(rights: Rights, cluster_id: str, row: GroupRow) -> May:
    resource = Resource(kind=Kind.GROUP, cluster=cluster_id, name=row.name)
    hindrance = ""
    if row.members:
        is_one = row.members == 1
        active = "its member is" if is_one else f"its {row.members:,} members are"
        stop = "it" if is_one else "them"
        hindrance = f"Offsets cannot be changed while {active} active: stop {stop} first."
    wanted = (
        ("Reset offsets", "reset-offsets", Operation.RESET_GROUPS),
        ("Delete", "delete-group", Operation.DELETE_GROUPS),
    )
    actions = tuple(
        Action(
            word=word,
            link="" if hindrance else group_names.link(cluster_id, row.name, page),
            is_risk=operation is Operation.DELETE_GROUPS,
        )
        for word, page, operation in wanted
        if rights.allows(operation, resource)
    )
    may_reset = rights.allows(Operation.RESET_GROUPS, resource)
    can_remove = may_reset and not hindrance
    return May(actions=actions, hindrance=hindrance if actions else "", can_remove=can_remove)


def _number(written: str) -> int:
    is_number = written.isascii() and written.isdigit() and len(written) <= MAX_DIGITS
    return max(1, int(written)) if is_number else 1
