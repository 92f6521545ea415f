"""The overview: what needs attention, the brokers, and what has just happened."""

import time
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from brokers.cluster.image import Broker
from brokers.controlplane import selectors
from brokers.controlplane.selectors import RecentChange
from console.monitoring.tables import BrokerRow as Told
from console.queries import needs
from console.queries.charts import Chart
from console.queries.frame import Frame, frame
from console.queries.groups import told_at, visible
from console.queries.links import link
from console.queries.needs import Need
from console.queries.reading import Reading, last_good, moment
from console.queries.topics import visible as visible_topics
from gateway.access.grants import Resource, Rights
from gateway.access.operations import Kind, Operation

# As many changes as fit beside the brokers.
RECENT_CHANGES: Final = 12
# Whoever reads the overview wants the worst, and the number of the rest.
MAX_NEEDS: Final = 12
# Topics that a sentence can name before it is no sentence any more.
NAMED_TOPICS: Final = 4
# A cluster has a few brokers; a list of bootstrap addresses needs no more than some of them.
BOOTSTRAP_BROKERS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow:
    id: int
    link: str
    address: str
    rack: str | None
    state: str  # the class of the mark: ok, warn or bad
    word: str
    # What the collector was told last; None where nobody has told it.
    partitions: int | None = None
    bytes_in: float | None = None
    bytes_out: float | None = None
    memory: int | None = None
    loop: str = "–"
    disk_free: int | None = None
    is_disk_low: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    at: datetime
    text: str
    actor: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    frame: Frame
    # False where the user may see a part of the cluster only.
    is_whole: bool = True
    # The user may see the cluster itself, and so its brokers.
    has_brokers: bool = True
    told_at: datetime | None = None
    bootstrap: tuple[str, ...] = ()
    brokers: tuple[BrokerRow, ...] = ()
    needs: tuple[Need, ...] = ()
    more_needs: int = 0
    events: tuple[Event, ...] = ()
    charts: tuple[Chart, ...] = ()


def overview(cluster_id: str | None, rights: Rights) -> Reading[Overview]:
    return last_good.read(
        # With the rights, so that nobody is shown what was read for somebody else.
        ("overview", cluster_id, rights.grants),
        lambda: _read(cluster_id, rights, time.time()),
        is_empty=lambda data: data.frame.shown is None,
    )


def _read(cluster_id: str | None, rights: Rights, now_s: float) -> Overview:
    around = frame(cluster_id, rights)
    if around.shown is None or around.live is None:
        return Overview(frame=around)
    shown, live = around.shown.cluster_id, around.live
    has_brokers = rights.allows(Operation.VIEW, Resource(kind=Kind.CLUSTER, cluster=shown))
    brokers = selectors.brokers(cluster_id=shown) if has_brokers else []
    told = {row.id: row for row in live.snapshot.brokers()} if has_brokers else {}
    found = _needs(around, brokers, told, rights, now_s)
    return Overview(
        frame=around,
        is_whole=around.sees_all,
        has_brokers=has_brokers,
        told_at=told_at(live, now_s),
        bootstrap=tuple(f"{b.host}:{b.port}" for b in brokers[:BOOTSTRAP_BROKERS]),
        brokers=tuple(_row(broker, told.get(broker.id), shown) for broker in brokers),
        needs=tuple(found[:MAX_NEEDS]),
        more_needs=max(0, len(found) - MAX_NEEDS),
        # Changes name topics, groups and users of everybody.
        events=_events(shown) if around.sees_all else (),
        charts=_charts(shown) if has_brokers else (),
    )


def _needs(
    around: Frame, brokers: list[Broker], told: dict[int, Told], rights: Rights, now_s: float
) -> list[Need]:
    """Return what needs attention of all that the user may see, the worst first."""
    assert around.shown is not None, "there is a cluster"
    assert around.live is not None, "a cluster that is shown has its tables"
    shown, live = around.shown.cluster_id, around.live
    said = selectors.agent_condition()
    is_set_back = said is not None and said.is_regressed and said.cluster_id == shown
    hurt = selectors.leaderless(
        cluster_id=shown, named=NAMED_TOPICS, within=visible_topics(rights, shown)
    )
    names = visible(rights, shown)
    groups = [row for row in live.snapshot.groups() if row.name in names]
    age_s = live.snapshot.age_s or 0.0
    return needs.ranked(
        needs.of_agent(
            said.message if is_set_back and said is not None else None,
            is_gone=around.is_agent_gone,
            cluster_id=shown,
        ),
        needs.of_topics(hurt, cluster_id=shown),
        needs.of_brokers(brokers, told.values(), cluster_id=shown),
        needs.of_disks(told.values(), cluster_id=shown),
        needs.of_collector(live, cluster_id=shown),
        needs.of_groups(groups, told_ms=int(1000 * (now_s - age_s)), cluster_id=shown),
    )


def _row(broker: Broker, told: Told | None, cluster_id: str) -> BrokerRow:
    is_silent = told is not None and bool(told.failure)
    state, word = ("warn", "Silent") if is_silent else ("ok", "Serving")
    if broker.is_fenced:
        state, word = "bad", "Fenced"
    row = BrokerRow(
        id=broker.id,
        link=link("broker", cluster_id, broker.id),
        address=f"{broker.host}:{broker.port}",
        rack=broker.rack,
        state=state,
        word=word,
    )
    return row if told is None else _with_numbers(row, told)


def _with_numbers(row: BrokerRow, told: Told) -> BrokerRow:
    loop_ms = told.loop_delay_p99_ms
    return replace(
        row,
        partitions=told.partitions,
        bytes_in=told.bytes_in_per_s,
        bytes_out=told.bytes_out_per_s,
        memory=told.memory_bytes,
        loop="–" if loop_ms is None else f"{loop_ms:,.1f} ms",
        disk_free=told.disk_free_bytes,
        is_disk_low=needs.is_disk_low(told),
    )


def _events(cluster_id: str) -> tuple[Event, ...]:
    found = selectors.recent_changes(
        cluster_id=cluster_id, limit=RECENT_CHANGES, with_membership=False
    )
    return tuple(_event(change) for change in found)


def _event(change: RecentChange) -> Event:
    return Event(
        at=moment(change.made_at_ms / 1000),
        text=change.summary,
        actor=change.actor,
        version=change.version,
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
