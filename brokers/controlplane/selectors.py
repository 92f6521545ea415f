"""Reads the control plane's state for pages, as frozen values instead of rows.

Reads the desired state from the database, and from the home whether an agent still maintains it;
so pages work with all brokers down. Each function makes a fixed number of queries, regardless of
the size of the cluster.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.db.models import Case, Count, Q, QuerySet, When
from django.db.models.functions import Left
from django.db.models.lookups import Exact

from brokers import agent_status
from brokers.agent_status import Condition
from brokers.clock import SystemClock
from brokers.cluster import levels
from brokers.cluster.changes import BrokerChanged
from brokers.cluster.image import Broker, PartitionState, Position, ResourceType, Topic
from brokers.cluster.topic_names import is_topic_name
from brokers.controlplane import models, values
from brokers.controlplane.services.brokers import AGENT
from brokers.controlplane.services.levels import holders
from brokers.controlplane.services.transactions import WORDS, ChangeKind

# The most rows of one page.
MAX_ROWS: Final = 1_000
# How many changes are searched for the requested ones: brokers that start and stop make one each,
# and a page must not read all kept changes.
LOOK_BACK: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSummary:
    cluster_id: str
    name: str
    version: int
    brokers: int
    serving_brokers: int
    topics: int
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NameSet:
    """The names that a user may see: whole names, and prefixes."""

    literals: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSummary:
    """A topic without its partitions."""

    name: str
    id: bytes
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]  # those that are set, without defaults
    created_at_ms: int
    leaderless: int = 0  # partitions whose leader is fenced, or gone


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaderless:
    """The partitions of a cluster whose leader is fenced or gone, and their topics."""

    partitions: int
    topics: int
    named: tuple[str, ...]  # the first of these topics, by name


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentChange:
    version: int
    summary: str
    actor: str
    made_at_ms: int


def is_agent_gone() -> bool:
    """Tell whether the agent of this home has ended; False if it is not visible from here."""
    return agent_status.is_gone(settings.SAMSA_HOME)


def agent_condition() -> Condition | None:
    """Return the last status of this home's agent; None if there is none, or the agent is gone."""
    said = agent_status.read(settings.SAMSA_HOME)
    return None if said is None or is_agent_gone() else said


def agent_trouble() -> str:
    """Return why this home's agent can change nothing now; empty if it can, or has ended."""
    said = agent_condition()
    monotonic_ms = int(1000 * SystemClock().monotonic())
    return "" if said is None else said.trouble(monotonic_ms=monotonic_ms)


def held_back_by(*, cluster_id: str) -> list[str]:
    """Return, in words, the agents and brokers below the metadata level that this code knows."""
    row = models.Cluster.objects.filter(cluster_id=cluster_id).first()
    return [] if row is None else holders(row, levels.KNOWN_LEVEL)


def clusters() -> list[ClusterSummary]:
    """Return every cluster of this console, by name."""
    return [_summary(row) for row in models.Cluster.objects.order_by("name")]


def versions() -> dict[str, int]:
    """Return the metadata version of every cluster by its id, which is one small query."""
    return dict(models.Cluster.objects.values_list("cluster_id", "version"))


def cluster(*, cluster_id: str) -> ClusterSummary | None:
    row = models.Cluster.objects.filter(cluster_id=cluster_id).first()
    return None if row is None else _summary(row)


def founder(*, cluster_id: str) -> tuple[str, str]:
    """Return the cluster's first agent, which created its tables and its user: id, host.

    Both are empty if no agent has started yet.
    """
    row = models.Agent.objects.filter(cluster__cluster_id=cluster_id).order_by("pk").first()
    return ("", "") if row is None else (row.agent_id, row.host)


def brokers(*, cluster_id: str) -> list[Broker]:
    rows = models.Broker.objects.filter(cluster__cluster_id=cluster_id).order_by("broker_id")
    return [values.broker(row) for row in rows]


def leader_counts(*, cluster_id: str) -> dict[int, int]:
    """Return how many partitions each broker leads, by its id."""
    rows = models.Partition.objects.filter(topic__cluster__cluster_id=cluster_id)
    return dict(rows.values_list("leader").annotate(Count("pk")).order_by())


def led_by(*, cluster_id: str, broker_id: int) -> dict[str, tuple[int, int]]:
    """Return by topic how many partitions a broker leads, and how many of them only it has."""
    rows = models.Partition.objects.filter(
        topic__cluster__cluster_id=cluster_id, leader=broker_id
    ).values_list("topic__name", "replicas")
    found: dict[str, tuple[int, int]] = {}
    for name, replicas in rows.iterator():
        led, alone = found.get(name, (0, 0))
        found[name] = (led + 1, alone + (len(replicas) == 1))
    return found


def broker_events(*, cluster_id: str, broker_id: int, limit: int) -> list[RecentChange]:
    """Return when a broker registered, was let in and was shut out, newest first."""
    assert 0 <= limit <= MAX_ROWS, f"{limit} changes asked for, {MAX_ROWS} is the most"
    newest = models.Cluster.objects.filter(cluster_id=cluster_id).values_list("version")
    rows = models.Change.objects.filter(
        cluster__cluster_id=cluster_id,
        version__gt=(newest[0][0] if newest else 0) - LOOK_BACK,
        summary__startswith=f"{WORDS[BrokerChanged]}: {broker_id} (",
    ).order_by("-version")
    return [
        RecentChange(version=version, summary=summary, actor=actor, made_at_ms=made_at_ms)
        for version, summary, actor, made_at_ms in rows.values_list(
            "version", "summary", "actor", "made_at_ms"
        )[:limit]
    ]


def position(*, cluster_id: str) -> Position | None:
    """Return the position of a cluster's metadata: while it is the same, nothing has changed."""
    found = models.Cluster.objects.filter(cluster_id=cluster_id).values_list("version", "change_id")
    return next((Position(version, bytes(change_id)) for version, change_id in found), None)


def every_topic(*, cluster_id: str) -> dict[str, TopicSummary]:
    """Return all topics of a cluster by name, in five queries, for callers that cache them."""
    rows = models.Topic.objects.filter(cluster__cluster_id=cluster_id)
    serving = models.Broker.objects.filter(cluster__cluster_id=cluster_id, is_fenced=False)
    parts = models.Partition.objects.filter(topic__cluster__cluster_id=cluster_id)
    is_led = Q(leader__in=list(serving.values_list("broker_id", flat=True)))
    counts = {
        key: (every, led)
        for key, every, led in parts.values("topic_id")
        .annotate(every=Count("pk"), led=Count("pk", filter=is_led))
        .values_list("topic_id", "every", "led")
        .order_by()
    }
    first = dict(parts.filter(index=0).values_list("topic_id", "replicas"))
    configs = dict(
        models.ResourceConfig.objects.filter(
            cluster__cluster_id=cluster_id, resource_type=ResourceType.TOPIC
        ).values_list("name", "configs")
    )
    found = {}
    for key, name, topic_id, made_at_ms in rows.values_list(
        "pk", "name", "topic_id", "created_at_ms"
    ):
        every, led = counts.get(key, (0, 0))
        found[name] = TopicSummary(
            name=name,
            id=bytes(topic_id),
            partitions=every,
            replication_factor=len(first.get(key, ())),
            configs=configs.get(name, {}),
            created_at_ms=made_at_ms,
            leaderless=every - led,
        )
    return found


def topic_names(
    *, cluster_id: str, contains: str, within: NameSet | None = None, limit: int
) -> list[str]:
    """Return names of topics, first those that are equal to or begin with the searched text."""
    assert 0 <= limit <= MAX_ROWS, f"{limit} names asked for, {MAX_ROWS} is the most"
    rank = Case(
        When(name__iexact=contains, then=0), When(name__istartswith=contains, then=1), default=2
    )
    rows = _topic_rows(cluster_id, contains, within).annotate(rank=rank).order_by("rank", "name")
    return list(rows.values_list("name", flat=True)[:limit])


def topic_names_by_id(*, cluster_id: str, ids: Collection[bytes]) -> dict[bytes, str]:
    """Return the names of topics by their ids, without deleted topics."""
    assert len(ids) <= MAX_ROWS, f"{len(ids)} topics asked for, {MAX_ROWS} is the most"
    rows = models.Topic.objects.filter(cluster__cluster_id=cluster_id, topic_id__in=list(ids))
    return {bytes(topic_id): name for topic_id, name in rows.values_list("topic_id", "name")}


def leaderless(*, cluster_id: str, named: int, within: NameSet | None = None) -> Leaderless:
    """Return the leaderless partitions, with the names of at most so many topics."""
    serving = models.Broker.objects.filter(cluster__cluster_id=cluster_id, is_fenced=False)
    rows = models.Partition.objects.filter(topic__cluster__cluster_id=cluster_id).exclude(
        leader__in=list(serving.values_list("broker_id", flat=True))
    )
    if within is not None:
        rows = rows.filter(topic__in=_topic_rows(cluster_id, "", within).order_by())
    found = rows.aggregate(partitions=Count("pk"), topics=Count("topic_id", distinct=True))
    hurt = models.Topic.objects.filter(pk__in=rows.values("topic_id")).order_by("name")
    names = hurt.values_list("name", flat=True)[:named] if found["partitions"] else ()
    return Leaderless(partitions=found["partitions"], topics=found["topics"], named=tuple(names))


def topic(*, cluster_id: str, name: str) -> Topic | None:
    """Return one topic with its partitions."""
    # PostgreSQL refuses queries for some names that no topic can have.
    if not is_topic_name(name):
        return None
    row = models.Topic.objects.filter(cluster__cluster_id=cluster_id, name=name).first()
    if row is None:
        return None
    states: list[PartitionState] = [state for _, state in values.partition_states(topic_id=row.pk)]
    return values.topic(row, states)


def configs(*, cluster_id: str, resource_type: ResourceType, name: str) -> Mapping[str, str]:
    """Return the configs that are set for one resource."""
    row = models.ResourceConfig.objects.filter(
        cluster__cluster_id=cluster_id, resource_type=resource_type, name=name
    ).first()
    return {} if row is None else row.configs


def topic_overrides(*, cluster_id: str, key: str) -> dict[str, str]:
    """Return the value of one topic config by topic, for the topics that set it."""
    rows = models.ResourceConfig.objects.filter(
        cluster__cluster_id=cluster_id, resource_type=ResourceType.TOPIC
    )
    return {name: set_[key] for name, set_ in rows.values_list("name", "configs") if key in set_}


def recent_changes(
    *, cluster_id: str, limit: int = 50, with_membership: bool = True
) -> list[RecentChange]:
    """Return the newest changes, newest first; optionally without those of brokers' membership."""
    assert 0 <= limit <= MAX_ROWS, f"{limit} changes asked for, {MAX_ROWS} is the most"
    rows = models.Change.objects.filter(cluster__cluster_id=cluster_id).order_by("-version")
    if not with_membership:
        newest = models.Cluster.objects.filter(cluster_id=cluster_id).values_list("version")
        rows = rows.filter(version__gt=(newest[0][0] if newest else 0) - LOOK_BACK)
        # An older agent, which writes no kinds, makes no other changes under its own name.
        rows = rows.exclude(kind=ChangeKind.MEMBERSHIP).exclude(kind="", actor=AGENT)
    return [
        RecentChange(version=version, summary=summary, actor=actor, made_at_ms=made_at_ms)
        for version, summary, actor, made_at_ms in rows.values_list(
            "version", "summary", "actor", "made_at_ms"
        )[:limit]
    ]


def _summary(row: models.Cluster) -> ClusterSummary:
    fenced = list(row.brokers.values_list("is_fenced", flat=True))
    return ClusterSummary(
        cluster_id=row.cluster_id,
        name=row.name,
        version=row.version,
        brokers=len(fenced),
        serving_brokers=fenced.count(False),
        topics=row.topics.count(),
        partitions=row.partition_count,
    )


def _topic_rows(cluster_id: str, contains: str, within: NameSet | None) -> QuerySet[models.Topic]:
    rows = models.Topic.objects.filter(cluster__cluster_id=cluster_id)
    if contains:
        rows = rows.filter(name__icontains=contains)
    if within is not None:
        allowed = Q(name__in=within.literals)
        for prefix in within.prefixes:
            # Not by `startswith`, which SQLite compares without regard to case.
            allowed |= Q(Exact(Left("name", len(prefix)), prefix))
        rows = rows.filter(allowed)
    return rows.order_by("name")
