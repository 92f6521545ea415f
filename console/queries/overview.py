"""The overview: what needs attention, the brokers, and what has just happened."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from brokers.cluster.image import Broker
from brokers.controlplane import selectors
from brokers.controlplane.selectors import RecentChange
from console.queries.charts import Chart
from console.queries.frame import Frame, frame
from console.queries.reading import Reading, last_good, moment
from gateway.access.grants import Resource, Rights
from gateway.access.operations import Kind, Operation

# As many changes as fit beside the brokers.
RECENT_CHANGES: Final = 12
# Whoever reads the overview wants the worst, and the number of the rest.
MAX_NEEDS: Final = 8
# Topics that a sentence can name before it is no sentence any more.
NAMED_TOPICS: Final = 4
# A cluster has a few brokers; a list of bootstrap addresses needs no more than some of them.
BOOTSTRAP_BROKERS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRow:
    id: int
    address: str
    state: str  # the class of the mark: ok or bad
    word: str
    epoch: int
    rack: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Something to look at: the sentence says what, the cause says why, the link leads there."""

    state: str
    word: str
    sentence: str
    cause: str
    link: str
    link_text: str


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
        lambda: _read(cluster_id, rights),
        is_empty=lambda data: data.frame.shown is None,
    )


def _read(cluster_id: str | None, rights: Rights) -> Overview:
    around = frame(cluster_id, rights)
    if around.shown is None:
        return Overview(frame=around)
    shown = around.shown.cluster_id
    if not _sees_all(rights, shown):
        # Brokers are part of the cluster, and changes and needs name topics of everybody.
        return Overview(frame=around, is_whole=False)
    brokers = selectors.brokers(cluster_id=shown)
    needs = [*_need_of_agent(shown), *_needs_of_brokers(brokers), *_need_of_topics(shown)]
    return Overview(
        frame=around,
        bootstrap=tuple(f"{b.host}:{b.port}" for b in brokers[:BOOTSTRAP_BROKERS]),
        brokers=tuple(_row(broker) for broker in brokers),
        needs=tuple(needs[:MAX_NEEDS]),
        more_needs=max(0, len(needs) - MAX_NEEDS),
        events=tuple(
            _event(change)
            for change in selectors.recent_changes(
                cluster_id=shown, limit=RECENT_CHANGES, with_membership=False
            )
        ),
        charts=_charts(shown),
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
        chart("requests", "Requests", "requests/s", requests="All brokers"),
        chart("lag", "Lag of all groups", "records", lag="Records that wait"),
        chart("log", "Logs on disk", "bytes", log_bytes="All partitions"),
    )


def _sees_all(rights: Rights, cluster_id: str) -> bool:
    cluster = Resource(kind=Kind.CLUSTER, cluster=cluster_id)
    topics = rights.names(Operation.VIEW, cluster=cluster_id, kind=Kind.TOPIC)
    return topics.is_all and rights.allows(Operation.VIEW, cluster)


def _event(change: RecentChange) -> Event:
    return Event(
        at=moment(change.made_at_ms / 1000),
        text=change.summary,
        actor=change.actor,
        version=change.version,
    )


def _row(broker: Broker) -> BrokerRow:
    return BrokerRow(
        id=broker.id,
        address=f"{broker.host}:{broker.port}",
        state="bad" if broker.is_fenced else "ok",
        word="Fenced" if broker.is_fenced else "Serving",
        epoch=broker.epoch,
        rack=broker.rack,
    )


def _need_of_agent(cluster_id: str) -> list[Need]:
    """Return one line where the agent of this home does not believe its database, or none."""
    said = selectors.agent_condition()
    if said is None or not said.is_regressed or said.cluster_id != cluster_id:
        return []
    return [
        Need(
            state="bad",
            word="Set back",
            sentence="The cluster's database was set back in time",
            cause=f"{said.message}. Brokers serve what they know and refuse every change; they go"
            " on by themselves once the newer database is back.",
            link="#brokers",
            link_text="See brokers",
        )
    ]


def _needs_of_brokers(brokers: Iterable[Broker]) -> list[Need]:
    return [
        Need(
            state="bad",
            word="Fenced",
            sentence=f"Broker {broker.id} is not serving",
            cause=f"Its agent has no session with {broker.host}:{broker.port}, so it leads nothing."
            " It comes back by itself once it runs and has caught up.",
            link="#brokers",
            link_text="See brokers",
        )
        for broker in brokers
        if broker.is_fenced
    ]


def _need_of_topics(cluster_id: str) -> list[Need]:
    """Return one line about all partitions without a leader, or none."""
    hurt = selectors.leaderless(cluster_id=cluster_id, named=NAMED_TOPICS)
    if not hurt.partitions:
        return []
    have = "partition has" if hurt.partitions == 1 else "partitions have"
    named = ", ".join(hurt.named)
    rest = hurt.topics - len(hurt.named)
    more = f" and {rest:,} more topic{'s' if rest > 1 else ''}" if rest else ""
    return [
        Need(
            state="bad",
            word="No leader",
            sentence=f"{hurt.partitions:,} {have} no leader",
            cause=f"In {named}{more}. Nobody can read or write there until a broker that has"
            " them is back.",
            link=f"topics?cluster={cluster_id}",
            link_text="See topics",
        )
    ]
