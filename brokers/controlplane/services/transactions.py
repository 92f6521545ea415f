"""One numbered change per transaction: the last thing that every service does.

The cluster's row is locked here and nowhere else, after brokers, topics and partitions, so that
numbers are given in the order of commits and writers cannot wait for each other in a circle.
"""

import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from django.db.models import F

from brokers.cluster import link
from brokers.cluster.apply import MAX_DELETED
from brokers.cluster.changes import (
    BrokerChanged,
    BrokerRemoved,
    Change,
    ConfigsChanged,
    PartitionChanged,
    PartitionsAdded,
    Record,
    TopicCreated,
    TopicRemoved,
)
from brokers.cluster.image import Position
from brokers.controlplane import database, models
from brokers.controlplane.services.writing import write

# Changes that are kept, here and in the memory of agents: a reader that was away for longer is
# sent everything anew. At 10,000 that is a megabyte or two, and an hour of a busy cluster.
KEPT_CHANGES: Final = 10_000
# How often the older ones are deleted: a thousand at a time is a millisecond of the writer.
PRUNE_EVERY: Final = 1_000
# How many resources of a kind a summary names.
NAMED: Final = 3
# What people read of a change in the console.
WORDS: Final[dict[type[Record], str]] = {
    BrokerChanged: "broker changed",
    BrokerRemoved: "broker removed",
    TopicCreated: "topic created",
    PartitionsAdded: "partitions added",
    PartitionChanged: "partition changed",
    TopicRemoved: "topic deleted",
    ConfigsChanged: "configuration changed",
}


def append_change(
    cluster: models.Cluster,
    records_at: Callable[[int], Sequence[Record]],
    *,
    actor: str,
    now_ms: int,
) -> Change:
    """Give the transaction the next version, and write its records under it."""
    change_id = secrets.token_bytes(16)
    models.Cluster.objects.filter(pk=cluster.pk).update(
        version=F("version") + 1, change_id=change_id
    )
    cluster.refresh_from_db()
    records = tuple(records_at(cluster.version))
    write(cluster, records, version=cluster.version, now_ms=now_ms)
    change = Change(position=Position(version=cluster.version, id=change_id), records=records)
    models.Change.objects.create(
        cluster=cluster,
        version=cluster.version,
        change_id=change_id,
        encoded=link.encode_change(change),
        summary=summary(records),
        actor=actor.replace("\0", "")[: models.TOPIC_NAME_CHARS],
        made_at_ms=now_ms,
    )
    if cluster.version % PRUNE_EVERY == 0:
        _prune(cluster)
    database.tell_version(cluster.version)
    return change


def summary(records: Sequence[Record]) -> str:
    """Return a few words on what a change did."""
    counts = Counter(type(record) for record in records)
    names = ", ".join(dict.fromkeys(map(_name, records[:NAMED])))
    more = f" and {len(records) - NAMED} more" if len(records) > NAMED else ""
    kinds = ", ".join(WORDS[kind] for kind in counts)
    return f"{kinds}: {names}{more}"[: models.TOPIC_NAME_CHARS]


def _name(record: Record) -> str:
    match record:
        case BrokerChanged():
            return f"{record.broker.id} ({'fenced' if record.broker.is_fenced else 'serving'})"
        case BrokerRemoved():
            return str(record.broker_id)
        case TopicCreated() | TopicRemoved():
            return record.name
        case ConfigsChanged():
            return record.name or "all brokers"
        case PartitionsAdded() | PartitionChanged():
            return record.topic_id.hex()


def _prune(cluster: models.Cluster) -> None:
    oldest = cluster.version - KEPT_CHANGES
    cluster.changes.filter(version__lte=oldest).delete()
    cluster.proposals.filter(version__lte=oldest).delete()
    forgotten = cluster.deleted_topics.order_by("-version", "-pk").values_list("pk", flat=True)[
        MAX_DELETED : MAX_DELETED + PRUNE_EVERY
    ]
    cluster.deleted_topics.filter(pk__in=list(forgotten)).delete()
