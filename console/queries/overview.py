"""Reads the overview: what needs attention, the brokers, and recent events."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby, islice
from typing import Final

from brokers.cluster.image import written_id
from brokers.controlplane import selectors
from brokers.controlplane.selectors import RecentChange
from console.queries import needs
from console.queries.brokers import BrokerRow, may_view, rows_of
from console.queries.charts import Chart
from console.queries.connect import troubled
from console.queries.connect import visible as visible_connectors
from console.queries.connector_states import owners_of
from console.queries.fine import Seen, fine_words
from console.queries.frame import Frame, frame
from console.queries.groups import visible
from console.queries.needs import Need
from console.queries.reading import Reading, last_good, moment
from console.queries.topic_table import visible_names
from console.queries.topics import visible as visible_topics
from gateway.access.grants import Rights

# As many events as fit beside the brokers, from this many changes: a program that creates a hundred
# topics makes one event.
RECENT_CHANGES: Final = 12
READ_CHANGES: Final = 200
# Objects that an event names.
NAMED_OBJECTS: Final = 4
TOPIC_ID: Final = re.compile(r"(?<![\w.-])[0-9a-f]{32}(?![\w.-])")
# An end that is older is on the page of the broker.
RECENT_END_S: Final = 24 * 3600
# A reader of the overview needs the worst, and the number of the others.
MAX_NEEDS: Final = 12
# Topics that a sentence names.
NAMED_TOPICS: Final = 4
# A cluster has a few brokers; a bootstrap list needs only some of them.
BOOTSTRAP_BROKERS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    at: datetime
    text: str
    actor: str
    version: int | None = None  # None of what is no change of the metadata
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    frame: Frame
    # False if the user may see only a part of the cluster.
    is_whole: bool = True
    # The user may see the cluster itself, and so its brokers.
    has_brokers: bool = True
    bootstrap: tuple[str, ...] = ()
    brokers: tuple[BrokerRow, ...] = ()
    needs: tuple[Need, ...] = ()
    # Where nothing needs attention: what is fine, and whether the user may see anything at all.
    fine: str = ""
    sees_nothing: bool = False
    more_needs: int = 0
    events: tuple[Event, ...] = ()
    charts: tuple[Chart, ...] = ()


def overview(cluster_id: str | None, rights: Rights) -> Reading[Overview]:
    return last_good.read(
        # Key by the rights too, so that no user gets what was read for another one.
        ("overview", cluster_id, rights.grants),
        lambda: _read(cluster_id, rights, time.time()),
        is_empty=lambda data: data.frame.shown is None,
    )


def _read(cluster_id: str | None, rights: Rights, now_s: float) -> Overview:
    around = frame(cluster_id, rights)
    if around.shown is None or around.live is None:
        return Overview(frame=around)
    shown = around.shown.cluster_id
    has_brokers = may_view(rights, shown)
    brokers = rows_of(shown, around) if has_brokers else []
    found = _needs(around, brokers, rights, now_s)
    seen = _seen(rights, shown, has_brokers=has_brokers)
    return Overview(
        frame=around,
        is_whole=around.sees_all,
        has_brokers=has_brokers,
        bootstrap=tuple(broker.address for broker in brokers[:BOOTSTRAP_BROKERS]),
        brokers=tuple(brokers),
        needs=tuple(found[:MAX_NEEDS]),
        more_needs=max(0, len(found) - MAX_NEEDS),
        fine="" if found else fine_words(seen, around.live.snapshot.verdicts_of(seen.groups)),
        sees_nothing=seen.is_nothing,
        # Changes name topics, groups and users that the user may not see.
        events=_events(shown, brokers, now_s) if around.sees_all else (),
        charts=_charts(shown) if has_brokers else (),
    )


def _seen(rights: Rights, cluster_id: str, *, has_brokers: bool) -> Seen:
    return Seen(
        has_brokers=has_brokers,
        topics=visible_names(rights, cluster_id),
        groups=visible(rights, cluster_id),
        connectors=visible_connectors(rights, cluster_id),
    )


def _needs(around: Frame, brokers: list[BrokerRow], rights: Rights, now_s: float) -> list[Need]:
    """Return what needs attention among all that the user may see, the worst first."""
    assert around.shown is not None, "there is a cluster"
    assert around.live is not None, "a cluster that is shown has its tables"
    shown, live = around.shown.cluster_id, around.live
    said = selectors.agent_condition()
    is_set_back = said is not None and said.is_regressed and said.cluster_id == shown
    hurt = selectors.leaderless(
        cluster_id=shown, named=NAMED_TOPICS, within=visible_topics(rights, shown)
    )
    names = visible(rights, shown)
    groups = [row for row in live.snapshot.groups_in_trouble() if row.name in names]
    owners = owners_of(shown, (row.name for row in groups), rights)
    age_s = live.snapshot.age_s or 0.0
    return needs.ranked(
        needs.of_agent(
            said.message if is_set_back and said is not None else None,
            is_gone=around.is_agent_gone,
            trouble=around.trouble,
            cluster_id=shown,
        ),
        needs.of_topics(hurt, cluster_id=shown),
        needs.of_brokers(brokers, cluster_id=shown),
        needs.of_disks(brokers, cluster_id=shown),
        needs.of_collector(live, cluster_id=shown),
        needs.of_connectors(troubled(shown, rights), cluster_id=shown),
        needs.of_groups(groups, owners, told_ms=int(1000 * (now_s - age_s)), cluster_id=shown),
    )


def _events(cluster_id: str, brokers: Sequence[BrokerRow], now_s: float) -> tuple[Event, ...]:
    found = selectors.recent_changes(
        cluster_id=cluster_id, limit=READ_CHANGES, with_membership=False
    )
    runs = islice((list(run) for _, run in groupby(found, key=_kind_of)), RECENT_CHANGES)
    events = [_event(run) for run in runs]
    # A change of partitions names its topic by its id.
    ids = {bytes.fromhex(text) for event in events for text in TOPIC_ID.findall(event.text)}
    names = selectors.topic_names_by_id(cluster_id=cluster_id, ids=ids) if ids else {}

    def named(found: re.Match[str]) -> str:
        topic_id = bytes.fromhex(found[0])
        return names.get(topic_id, written_id(topic_id))

    shown = [replace(event, text=TOPIC_ID.sub(named, event.text)) for event in events]
    shown += _ends(brokers, now_s)
    return tuple(sorted(shown, key=lambda event: event.at, reverse=True)[:RECENT_CHANGES])


def _ends(brokers: Sequence[BrokerRow], now_s: float) -> list[Event]:
    """Return how brokers ended lately: their restarts alone would look like an order."""
    return [
        Event(at=row.ended_at, text=f"Broker {row.id} {row.ended}", actor=row.host)
        for row in brokers
        if row.ended_at is not None and now_s - row.ended_at.timestamp() < RECENT_END_S
    ]


def _kind_of(change: RecentChange) -> tuple[str, str]:
    """Return the kind of a change and its actor: consecutive equal ones form one event."""
    kind, _, _ = change.summary.partition(": ")
    return kind, change.actor


def _event(run: Sequence[RecentChange]) -> Event:
    newest = run[0]
    kind, _, _ = newest.summary.partition(": ")
    # A program may change the same thing again and again.
    names = list(dict.fromkeys(change.summary.partition(": ")[2] for change in run))
    rest = len(names) - NAMED_OBJECTS
    more = f" and {rest:,} more" if rest > 0 else ""
    listed = f"{', '.join(names[:NAMED_OBJECTS])}{more}"
    return Event(
        at=moment(newest.made_at_ms / 1000),
        text=f"{kind}: {listed}" if listed else kind,
        actor=newest.actor,
        version=newest.version,
        times=len(run),
    )


def _charts(cluster_id: str) -> tuple[Chart, ...]:
    def chart(key: str, title: str, unit: str, **lines: str) -> Chart:
        return Chart(
            id=f"chart-{key}",
            title=title,
            cluster_id=cluster_id,
            kind="cluster",
            metrics=tuple(lines),
            labels=tuple(lines.values()),
            unit=unit,
        )

    return (
        chart("bytes", "Bytes in and out", "bytes/s", bytes_in="In", bytes_out="Out"),
        chart("requests", "Requests", "requests/s", requests="All"),
        chart("lag", "Lag of all groups", "records", lag="Waiting"),
        chart("log", "Logs on disk", "bytes", log_bytes="All"),
    )
