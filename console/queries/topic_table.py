"""All topics of a cluster, each as the database holds it and as the brokers tell of it.

The database's part is read once per metadata version and shared by all who ask; the brokers' part
comes from the mirror. Either may be missing, and then says nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from brokers.cluster.image import Position, ResourceType
from brokers.controlplane import selectors
from brokers.controlplane.selectors import ClusterSummary, TopicSummary
from console.queries import live
from console.queries.frame import Frame, frame
from console.queries.live import Live
from console.queries.reading import Reading, State, last_good
from console.queries.topic_facets import Topic, topic_of
from gateway.access.grants import Names, Rights
from gateway.access.operations import Kind, Operation

# Tables of the largest supported cluster take some 10 MB each; the oldest goes first.
MAX_TABLES: Final = 4
# So many times the topics that there are may be kept, before those that are gone are forgotten.
MAX_ROOM: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What the database holds of all topics, at one version."""

    frame: Frame
    topics: Mapping[str, TopicSummary] = field(default_factory=dict)
    # What topics that set no policy of their own do with old segments.
    cleanup_policy: str = "delete"


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


class Joins:
    """The topics that were made last, by cluster and name: from one page to the next few differ."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, Topic]] = {}

    def of(self, cluster_id: str, most: int) -> dict[str, Topic]:
        """Return those of one cluster, to be looked up and added to; none where too many are."""
        kept = self._kept.get(cluster_id)
        if kept is None or len(kept) > most:
            kept = self._kept[cluster_id] = {}
            while len(self._kept) > MAX_TABLES:
                self._kept.pop(next(iter(self._kept)), None)
        return kept


tables: Final = Tables()
joins: Final = Joins()


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


def joined(stored: Stored, around: Live, names: Names, *, is_old: bool) -> list[Topic]:
    """Return every topic that the user may see, in no order.

    Brokers may tell for some seconds of a topic that was deleted: what they alone know counts only
    where the database's part is old.
    """
    told = around.snapshot.tables.get("topics", {})
    kept = joins.of(around.snapshot.cluster_id, MAX_ROOM * (len(stored.topics) + len(told)))
    found = names.among(stored.topics)
    if is_old:
        found += names.among(told.keys() - stored.topics.keys())
    topics = []
    for name in found:
        row, summary = told.get(name), stored.topics.get(name)
        topic = kept.get(name)
        if topic is None or not topic.is_of(summary, row, stored.cleanup_policy):
            topic = kept[name] = topic_of(name, summary, row, stored.cleanup_policy)
        topics.append(topic)
    return topics


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
