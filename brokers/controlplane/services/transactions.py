"""One numbered change per transaction: the last thing that every service does.

The cluster's row is locked here and nowhere else, after topics, brokers and partitions, so that
numbers are given in the order of commits and writers cannot wait for each other in a circle.
"""

import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from django.db.models import F
from django.db.models.functions import Length

from brokers.cluster import change_bounds, levels, link
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
# And of these as many as fit in here: one change of many partitions takes as much as ten thousand
# small ones. Less than a whole image of the largest cluster would be no help to a reader.
KEPT_BYTES: Final = 32 * 2**20
# A change that weighs so much has its room made at once: it took far longer to write.
HEAVY_BYTES: Final = 64 * 2**10
# How often the older ones are deleted: a thousand at a time is a millisecond of the writer.
PRUNE_EVERY: Final = 1_000
# Outcomes that are kept, whether anything changed with them or not: a proposal is repeated within
# half a minute, which is less than the busiest cluster makes of these. Twenty megabytes.
KEPT_PROPOSALS: Final = 100_000
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


class ChangeKind(StrEnum):
    """What a change is about, for those who show only some: that of its first record."""

    MEMBERSHIP = "membership"  # brokers that register, are fenced, or are let in
    TOPIC = "topic"
    PARTITION = "partition"  # who leads, who is in sync
    CONFIG = "config"


KINDS: Final[dict[type[Record], ChangeKind]] = {
    BrokerChanged: ChangeKind.MEMBERSHIP,
    BrokerRemoved: ChangeKind.MEMBERSHIP,
    TopicCreated: ChangeKind.TOPIC,
    PartitionsAdded: ChangeKind.TOPIC,
    PartitionChanged: ChangeKind.PARTITION,
    TopicRemoved: ChangeKind.TOPIC,
    ConfigsChanged: ChangeKind.CONFIG,
}


def append_change(
    cluster: models.Cluster,
    records_at: Callable[[int], Sequence[Record]],
    *,
    actor: str,
    now_ms: int,
) -> Change:
    """Give the transaction the next version, and write its records under it.

    KafkaError where the records are too many for one change, or of a kind that not every reader
    knows.
    """
    change_id = secrets.token_bytes(16)
    models.Cluster.objects.filter(pk=cluster.pk).update(
        version=F("version") + 1, change_id=change_id
    )
    cluster.refresh_from_db()
    decided = tuple(records_at(cluster.version))
    levels.check_records(decided, cluster.metadata_level)
    records = change_bounds.bounded(decided)
    write(cluster, records, version=cluster.version, now_ms=now_ms)
    change = Change(position=Position(version=cluster.version, id=change_id), records=records)
    encoded = link.encode_change(change)
    models.Change.objects.create(
        cluster=cluster,
        version=cluster.version,
        change_id=change_id,
        encoded=encoded,
        summary=summary(decided, version=cluster.version),
        actor=actor.replace("\0", "")[: models.TOPIC_NAME_CHARS],
        made_at_ms=now_ms,
        kind=KINDS[type(decided[0])],
    )
    if cluster.version % PRUNE_EVERY == 0 or len(encoded) >= HEAVY_BYTES:
        _prune(cluster)
    if any(isinstance(record, TopicRemoved) for record in records):
        _forget_deleted(cluster)
    database.tell_version(cluster.version)
    return change


def prune_proposals(added: Sequence[int]) -> None:
    """Delete the oldest outcomes, now and then; `added` are the keys of the newest ones.

    By their number and not by the version that they were made at, which proposals that change
    nothing, and blocks of producer ids, do not move.
    """
    if any(key % PRUNE_EVERY == 0 for key in added):
        models.Proposal.objects.filter(pk__lte=max(added) - KEPT_PROPOSALS).delete()


def summary(records: Sequence[Record], *, version: int) -> str:
    """Return a few words on what the change of this version did."""
    counts = Counter(type(record) for record in records)
    names = ", ".join(dict.fromkeys(_name(record, version) for record in records[:NAMED]))
    more = f" and {len(records) - NAMED} more" if len(records) > NAMED else ""
    kinds = ", ".join(WORDS[kind] for kind in counts)
    return f"{kinds}: {names}{more}"[: models.TOPIC_NAME_CHARS]


def _name(record: Record, version: int) -> str:
    match record:
        case BrokerChanged(broker=broker):
            # Its epoch is the version that it registered with.
            if broker.epoch == version:
                return f"{broker.id} (registered)"
            return f"{broker.id} ({'fenced' if broker.is_fenced else 'serving'})"
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
    cluster.proposals.filter(version__lte=oldest).delete()
    sizes = cluster.changes.filter(version__gt=oldest).order_by("-version")
    weight = 0
    for version, size in sizes.values_list("version", Length("encoded")):
        weight += size
        # The newest one stays whatever it weighs: by its id the store is known again.
        if weight > KEPT_BYTES and version < cluster.version:
            oldest = version
            break
    cluster.changes.filter(version__lte=oldest).delete()


def _forget_deleted(cluster: models.Cluster) -> None:
    """Forget the deleted topics that no image remembers any more."""
    # Numbered in the order of their deletion, since the cluster's row is locked meanwhile.
    newest = cluster.deleted_topics.order_by("-pk").values_list("pk", flat=True)
    first_forgotten = newest[MAX_DELETED : MAX_DELETED + 1]
    if found := list(first_forgotten):
        cluster.deleted_topics.filter(pk__lte=found[0]).delete()
