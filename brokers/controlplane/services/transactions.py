"""Appends one numbered change per transaction, as the last step of every service.

The cluster's row is locked here and nowhere else, after topics, brokers and partitions, so that
numbers are assigned in the order of commits and writers cannot deadlock.
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

# Changes that are kept, here and in the memory of agents: a reader that was away for longer gets
# the whole image. 10,000 are a megabyte or two, and an hour of a busy cluster.
KEPT_CHANGES: Final = 10_000
# And their total size: one change of many partitions takes as much as ten thousand small ones. Less
# than a whole image of the largest cluster would not help a reader.
KEPT_BYTES: Final = 32 * 2**20
# After a change of this size, old ones are deleted at once: writing it took far longer.
HEAVY_BYTES: Final = 64 * 2**10
# How often the older ones are deleted: a thousand at a time is a millisecond of the writer.
PRUNE_EVERY: Final = 1_000
# Outcomes that are kept, with or without a change: a proposal is repeated within half a minute, in
# which even the busiest cluster makes fewer. Twenty megabytes.
KEPT_PROPOSALS: Final = 100_000
# How many resources of a kind a summary names.
NAMED: Final = 3
# The words for a change in the console.
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
    """The kind of a change, for filters: that of its first record."""

    MEMBERSHIP = "membership"  # brokers that register, are fenced, or are let in
    TOPIC = "topic"
    PARTITION = "partition"  # leaders and in-sync replicas
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
    """Give the transaction the next version, and write its records with it.

    KafkaError if the records are too many for one change, or of a kind that not every reader
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
    """Delete the oldest outcomes, at intervals; `added` are the keys of the newest ones.

    They are selected by their number and not by their version, which proposals without a change,
    and blocks of producer ids, do not advance.
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
        # The newest one stays regardless of its size: its id identifies the store.
        if weight > KEPT_BYTES and version < cluster.version:
            oldest = version
            break
    cluster.changes.filter(version__lte=oldest).delete()


def _forget_deleted(cluster: models.Cluster) -> None:
    """Delete the rows of deleted topics that no image contains any more."""
    # Numbered in the order of their deletion, since the cluster's row is locked.
    newest = cluster.deleted_topics.order_by("-pk").values_list("pk", flat=True)
    first_forgotten = newest[MAX_DELETED : MAX_DELETED + 1]
    if found := list(first_forgotten):
        cluster.deleted_topics.filter(pk__lte=found[0]).delete()
