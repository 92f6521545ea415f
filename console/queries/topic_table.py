"""All topics of a cluster, each as the database holds it and as the brokers tell of it.

The database's part is read once per metadata version and shared by all who ask; the brokers' part
comes from the mirror. Either may be missing, and then says nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from brokers.cluster.image import Position, ResourceType
from brokers.cluster.topic_names import INTERNAL_TOPICS
from brokers.controlplane import selectors
from brokers.controlplane.selectors import ClusterSummary, TopicSummary
from console.monitoring.tables import TopicRow
from console.monitoring.verdicts import SEVERITY, Verdict
from console.queries import live
from console.queries.frame import Frame, frame
from console.queries.lag import MARKS
from console.queries.live import Live
from console.queries.reading import Reading, State, last_good
from gateway.access.grants import Names, Rights
from gateway.access.operations import Kind, Operation

# Tables of the largest supported cluster take some 10 MB each; the oldest goes first.
MAX_TABLES: Final = 4
CLEANUP_POLICY: Final = "cleanup.policy"
LAGGING: Final = frozenset(v for v, mark in MARKS.items() if mark.state in {"warn", "bad"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What the database holds of all topics, at one version."""

    frame: Frame
    topics: Mapping[str, TopicSummary] = field(default_factory=dict)
    # What topics that set no policy of their own do with old segments.
    cleanup_policy: str = "delete"


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    stored: TopicSummary | None  # None: the database does not answer, or does not know it yet
    told: TopicRow | None  # None: no broker tells of it

    @property
    def verdict(self) -> Verdict | None:
        """Return how the group that is worst keeps up; None where no group reads the topic."""
        if self.told is None or self.told.lag is None:
            return None
        return Verdict(self.told.verdict)

    @property
    def is_leaderless(self) -> bool:
        return self.stored is not None and self.stored.leaderless > 0

    @property
    def is_lagging(self) -> bool:
        return self.verdict in LAGGING

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing was written or read over the last ten seconds."""
        told = self.told
        return told is not None and told.records_per_s == 0 and not told.bytes_out_per_s

    @property
    def badness(self) -> int:
        """Return a number to sort by: partitions without leader first, then the verdict."""
        verdict = self.verdict
        return (100 if self.is_leaderless else 0) + (0 if verdict is None else SEVERITY[verdict])

    @property
    def health(self) -> tuple[str, str]:
        """Return the mark and the word."""
        if self.stored is not None and self.stored.leaderless:
            return "bad", f"{self.stored.leaderless} without leader"
        verdict = self.verdict
        if verdict in LAGGING:
            assert verdict is not None, "nothing is among the verdicts"
            return MARKS[verdict].state, MARKS[verdict].word
        if self.stored is None:
            return "stale", "Not known"
        # Without the brokers nobody knows how groups keep up.
        return "ok", "Led" if self.told is None else "OK"


class Tables:
    """The database's part of the last few clusters that were asked for, by their positions."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Position, Mapping[str, TopicSummary]]] = {}

    def topics(self, cluster_id: str) -> Mapping[str, TopicSummary]:
        # Read before the rows, so that these are never older than what they are kept for.
        at = selectors.position(cluster_id=cluster_id)
        kept = self._kept.get(cluster_id)
        if at is not None and kept is not None and kept[0] == at:
            return kept[1]
        found = MappingProxyType(selectors.every_topic(cluster_id=cluster_id))
        if at is not None:
            self._kept.pop(cluster_id, None)
            self._kept[cluster_id] = (at, found)
            while len(self._kept) > MAX_TABLES:
                self._kept.pop(next(iter(self._kept)), None)
        return found


tables: Final = Tables()


def stored_topics(cluster_id: str | None, rights: Rights) -> Reading[Stored]:
    """Return what the database holds; stale or failed where it does not answer."""
    reading = last_good.read(
        # With the rights, so that nobody is shown what was read for somebody else.
        ("topics", cluster_id, rights.grants),
        lambda: _stored(cluster_id, rights),
        is_empty=lambda data: not data.topics,
    )
    if reading.data is None or reading.data.frame.shown is None:
        return reading
    # The brokers' part is never older than the mirror, however old the database's is.
    around = reading.data.frame
    now = replace(around, live=live.of(reading.data.frame.shown.cluster_id))
    return replace(reading, data=replace(reading.data, frame=now))


def without_database(
    cluster_id: str | None, rights: Rights, failed: Reading[Stored]
) -> Reading[Stored]:
    """Return a frame for the cluster of the mirror, where that is all that is known of it."""
    found = live.source().snapshot()
    asked = cluster_id or found.cluster_id
    is_theirs = rights.allows_somewhere(Operation.VIEW, cluster=found.cluster_id)
    if not found.is_there or asked != found.cluster_id or not is_theirs:
        return failed
    brokers = found.brokers()
    topics = found.tables.get("topics", {})
    around = Frame(
        shown=ClusterSummary(
            cluster_id=found.cluster_id,
            name=found.cluster_id,
            version=0,
            brokers=len(brokers),
            serving_brokers=len(brokers) - len(found.silent_brokers()),
            topics=len(topics),
            partitions=sum(broker.partitions for broker in brokers),
        ),
        others=(),
        has_all_topics=visible_names(rights, found.cluster_id).is_all,
        live=live.of(found.cluster_id),
    )
    return replace(failed, state=State.STALE, data=Stored(frame=around))


def joined(stored: Stored, around: Live, names: Names) -> Iterator[Topic]:
    """Return every topic that one of both knows and the user may see, in no order."""
    told = around.snapshot.topics()
    for name in names.among(stored.topics):
        yield Topic(name, stored.topics[name], told.get(name))
    # A topic that is being created or deleted is known to one of both for a moment.
    for name in names.among(told.keys() - stored.topics.keys()):
        yield Topic(name, None, told[name])


def is_compacted(topic: Topic, cleanup_policy: str) -> bool:
    configs = {} if topic.stored is None else topic.stored.configs
    return "compact" in configs.get(CLEANUP_POLICY, cleanup_policy)


def visible_names(rights: Rights, cluster_id: str) -> Names:
    return rights.names(Operation.VIEW, cluster=cluster_id, kind=Kind.TOPIC)


def _stored(cluster_id: str | None, rights: Rights) -> Stored:
    around = frame(cluster_id, rights)
    if around.shown is None:
        return Stored(frame=around)
    shown = around.shown.cluster_id
    wide = selectors.configs(cluster_id=shown, resource_type=ResourceType.BROKER, name="")
    return Stored(
        frame=around,
        topics=tables.topics(shown),
        cleanup_policy=wide.get("log.cleanup.policy", "delete"),
    )
