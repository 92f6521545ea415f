"""Joins all topics of a cluster from the database with what the brokers report of them.

The database's part is read once per metadata version and shared by all users; the brokers' part
comes from the mirror. Either may be missing, and then adds nothing.
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

# Tables of the largest supported cluster take some 10 MB each; the oldest is evicted first.
MAX_TABLES: Final = 4
# Topics to cache, as a multiple of the existing ones, before deleted ones are dropped.
MAX_ROOM: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """The database's part of all topics, at one version."""

    frame: Frame
    topics: Mapping[str, TopicSummary] = field(default_factory=dict)
    # The cleanup policy of topics that do not set their own.
    cleanup_policy: str = "delete"


class Tables:
    """The database's part of the clusters that were requested last, by metadata version."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Position, Mapping[str, TopicSummary]]] = {}

    def topics(self, cluster_id: str) -> Mapping[str, TopicSummary]:
        # Read the position before the rows, so that the rows are never older than it.
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
    """The topics joined last, by cluster and name: few differ from one page to the next."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, Topic]] = {}

    def of(self, cluster_id: str, most: int) -> dict[str, Topic]:
        """Return the cached topics of one cluster, for lookup and update; cleared if too many."""
        kept = self._kept.get(cluster_id)
        if kept is None or len(kept) > most:
            kept = self._kept[cluster_id] = {}
            while len(self._kept) > MAX_TABLES:
                self._kept.pop(next(iter(self._kept)), None)
        return kept


tables: Final = Tables()
joins: Final = Joins()


def stored_topics(cluster_id: str | None, rights: Rights) -> Reading[Stored]:
    """Return the database's part; stale or failed if the database does not answer."""
    reading = last_good.read(
        # Key by the rights too, so that no user gets what was read for another one.
        ("topics", cluster_id, rights.grants),
        lambda: _stored(cluster_id, rights),
        is_empty=lambda data: not data.topics,
    )
    if reading.data is None or reading.data.frame.shown is None:
        return reading
    # Live data always comes from the mirror, however old the database's part is.
    around = reading.data.frame
    now = replace(around, live=live.of(reading.data.frame.shown.cluster_id))
    return replace(reading, data=replace(reading.data, frame=now))


def without_database(
    cluster_id: str | None, rights: Rights, failed: Reading[Stored]
) -> Reading[Stored]:
    """Return a frame for the cluster of the mirror, if the database does not answer."""
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
    """Return every topic that the user may see, unordered.

    Brokers may report a deleted topic for some seconds: topics that only they know count only if
    the database's part is stale.
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
