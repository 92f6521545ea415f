"""Lists the consequences of a change that the change itself does not show, as sentences.

Pure. Computed from the cluster as it is; consequences that depend on traffic or group members are
unknown here and not guessed.
"""

from collections.abc import Iterator
from math import lcm
from typing import Final

from brokers import quantities
from brokers.cluster import topic_configs
from brokers.cluster.changes import ConfigsChanged, PartitionsAdded, TopicCreated, TopicRemoved
from brokers.cluster.changes import Record as ChangeRecord
from brokers.cluster.decisions import View
from brokers.cluster.image import ResourceType, Topic
from brokers.cluster.topic_configs import Durability, TopicValues
from brokers.cluster.topic_names import KEPT_INSIDE
from brokers.quantities import Unit

NO_LIMIT: Final = -1
LONE_COPY: Final = (
    "samsa.durability is replicated and each partition has one replica: an acknowledged record is"
    " in the memory of one machine only, and a power failure loses it if it is not on the disk yet."
)


def implications_of(
    view: View, record: ChangeRecord, *, created: TopicCreated | None = None
) -> tuple[str, ...]:
    """Return the consequences of a record; the view must not include it yet.

    `created` is the topic that the same change creates.
    """
    match record:
        case TopicCreated():
            return tuple(_of_creation(record))
        case PartitionsAdded():
            return tuple(_of_partitions(view, record))
        case TopicRemoved():
            return tuple(_of_deletion(view, record))
        case ConfigsChanged(resource_type=ResourceType.TOPIC):
            return tuple(_of_topic_configs(view, record, created))
        case ConfigsChanged():
            return tuple(_of_broker_configs(record))
        case _:
            return ()


def moved_share(before: int, after: int) -> float:
    """Return the share of keys that move to another partition when a topic grows.

    Producers take a hash modulo the number of partitions. Of lcm(before, after) hashes in a row,
    just `before` have the same remainder by both numbers.
    """
    return 1 - before / lcm(before, after)


def _of_creation(record: TopicCreated) -> Iterator[str]:
    if len(record.partitions[0].replicas) == 1:
        yield (
            "Each partition has one replica: while its broker is down, the partition cannot be "
            "read or written."
        )


def _of_partitions(view: View, record: PartitionsAdded) -> Iterator[str]:
    topic = view.topic_by_id(record.topic_id)
    assert topic is not None, "partitions are added to a topic that exists"
    before, after = record.first_index, record.first_index + len(record.partitions)
    share = moved_share(before, after)
    yield (
        f"About {share:.0%} of the keys go to another partition from now on (1 - n/lcm(n, m) of"
        f" them, for n = {before} and m = {after} partitions, where producers take the hash of the"
        " key modulo the number of partitions). Existing records stay where they are, so the order"
        " of one key is kept within each partition only."
    )
    if _values(view, topic.name).is_compacted:
        yield (
            "The topic is compacted: the last record of a key that moves stays in its former"
            " partition as well, and is never compacted away by a newer one."
        )
    yield "Partitions can only be added: this cannot be taken back."


def _of_deletion(view: View, record: TopicRemoved) -> Iterator[str]:
    topic = view.topic(record.name)
    assert topic is not None, "a topic that is deleted exists"
    count = len(topic.partitions)
    if kept := KEPT_INSIDE.get(topic.name):
        yield (
            f"Brokers keep {kept} in this topic, and all of it is lost: a group without offsets"
            " begins where its auto.offset.reset says."
        )
    yield (
        f"All records of {count} partition{'s' if count > 1 else ''} are deleted, and cannot be "
        "recovered."
    )
    yield "Offsets that groups have committed for it are deleted."
    yield (
        "If auto.create.topics.enable is on, a client that still uses the topic creates it "
        "again, empty and with the cluster's defaults."
    )
    if configs := view.configs_of(ResourceType.TOPIC, topic.name):
        yield f"Its configs are lost: {', '.join(sorted(configs))}."


def is_lone_copy(values: TopicValues, replicas: int) -> bool:
    """Tell whether records are acknowledged when the memory of one machine has them."""
    return values.durability is Durability.REPLICATED and replicas == 1


def _of_topic_configs(
    view: View, record: ConfigsChanged, created: TopicCreated | None
) -> Iterator[str]:
    topic = view.topic(record.name)
    after = topic_configs.values(
        topic_configs.effective(dict(record.configs), view.configs_of(ResourceType.BROKER, ""))
    )
    if topic is None:
        # Part of the creation: there was nothing before.
        if created is not None and is_lone_copy(after, len(created.partitions[0].replicas)):
            yield LONE_COPY
        return
    if kept := KEPT_INSIDE.get(topic.name):
        yield (
            f"Brokers keep {kept} in this topic: all of them lose the records that age, size or a "
            "missing compaction deletes."
        )
    before = _values(view, topic.name)
    yield from _of_retention(before, after)
    yield from _of_cleanup(before, after)
    yield from _of_producers(topic, before, after)


def _of_retention(before: TopicValues, after: TopicValues) -> Iterator[str]:
    if not after.is_deleted:
        return
    if _is_less(before.retention_ms, after.retention_ms) or (
        not before.is_deleted and after.retention_ms != NO_LIMIT
    ):
        yield (
            f"Segments whose newest record is older than {_time(after.retention_ms)} are deleted "
            "within minutes, and cannot be recovered."
        )
    if _is_less(before.retention_bytes, after.retention_bytes) or (
        not before.is_deleted and after.retention_bytes != NO_LIMIT
    ):
        yield (
            f"The oldest segments of partitions above {_size(after.retention_bytes)} are deleted "
            "within minutes, and cannot be recovered."
        )
    if after.retention_ms != NO_LIMIT and after.segment_ms > after.retention_ms:
        yield (
            f"segment.ms is {_time(after.segment_ms)} and retention.ms is"
            f" {_time(after.retention_ms)}: a segment is deleted only once it is closed, so records"
            f" of a quiet partition may stay for up to {_time(after.segment_ms)} longer."
        )
    if after.retention_bytes != NO_LIMIT and after.segment_bytes > after.retention_bytes:
        yield (
            f"segment.bytes is {_size(after.segment_bytes)} and retention.bytes is"
            f" {_size(after.retention_bytes)}: the open segment is never deleted, so a partition"
            f" takes up to {_size(after.segment_bytes)}."
        )


def _of_cleanup(before: TopicValues, after: TopicValues) -> Iterator[str]:
    if after.is_compacted and not before.is_compacted:
        yield (
            "Older records of each key are deleted by compaction, and cannot be recovered; "
            "producers that send records without a key are refused."
        )
    if before.is_deleted and not after.is_deleted:
        yield "Old segments are no longer deleted by age or size, so the topic grows with its keys."


def _of_producers(topic: Topic, before: TopicValues, after: TopicValues) -> Iterator[str]:
    factor = topic.replication_factor
    if after.min_insync_replicas > factor:
        yield (
            f"min.insync.replicas is {after.min_insync_replicas} and each partition has"
            f" {factor} replica{'s' if factor > 1 else ''}: producers that ask for acks=all are"
            " refused, always."
        )
    if after.max_message_bytes < before.max_message_bytes:
        yield (
            f"Producers of batches above {_size(after.max_message_bytes)} are refused; they were"
            f" accepted up to {_size(before.max_message_bytes)}."
        )
    if before.is_log_append_time != after.is_log_append_time:
        yield (
            "Records from now on carry the broker's time, those before their producer's."
            if after.is_log_append_time
            else "Records from now on carry their producer's time, those before the broker's."
        )
    if after.durability is Durability.REPLICATED and before.durability is not Durability.REPLICATED:
        yield (
            LONE_COPY
            if is_lone_copy(after, factor)
            else "An acknowledged record may not be on a disk yet: a power failure of all "
            "replicas at once loses it."
        )


def _of_broker_configs(record: ConfigsChanged) -> Iterator[str]:
    if record.name:
        yield f"Only broker {record.name} uses these values; the others keep theirs."
    else:
        yield "Every broker, and every topic that does not set the key itself, takes these values."


def _values(view: View, topic: str) -> TopicValues:
    configs = view.configs_of(ResourceType.TOPIC, topic)
    return topic_configs.values(
        topic_configs.effective(configs, view.configs_of(ResourceType.BROKER, ""))
    )


def _is_less(before: int, after: int) -> bool:
    """Compare two limits, of which -1 means none."""
    return after != NO_LIMIT and (before == NO_LIMIT or after < before)


def _time(milliseconds: int) -> str:
    """Return a duration in words with the exact number: 7 d (604800000 ms)."""
    words = quantities.words_of(Unit.MS, milliseconds)
    return f"{words} ({milliseconds} ms)" if words else f"{milliseconds} ms"


def _size(count: int) -> str:
    words = quantities.words_of(Unit.BYTES, count)
    return f"{words} ({count} bytes)" if words else f"{count} bytes"
