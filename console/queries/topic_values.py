"""Presents the configs of a topic: each value, its source and its meaning.

Pure. A table of rules, each with its sentence, covers what follows from several values.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from brokers import quantities
from brokers.cluster import broker_configs, topic_configs
from brokers.cluster.config_values import LIVE, ConfigRow, ConfigType
from brokers.cluster.implications import LONE_COPY, is_lone_copy
from brokers.cluster.topic_configs import Durability, TopicValues
from console import durations

NO_LIMIT: Final = -1
# The default limit of one client request; brokers can be started with another one.
MAX_REQUEST_BYTES: Final = int(broker_configs.ROWS["socket.request.max.bytes"].default or 0)
# Above it, a number of milliseconds means "never".
ENDLESS: Final = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One config. `inherited` is the value that applies if the topic sets none."""

    key: str
    value: str
    words: str  # the value in readable units, if that is another text
    inherited: str
    source: str
    is_set: bool
    type: str
    meaning: str
    # Why a value other than the default would have no effect; empty if it has one.
    no_effect: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """A consequence of several values together; `state` is the CSS class of its mark."""

    keys: tuple[str, ...]
    state: str
    word: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    keys: tuple[str, ...]
    # Return a sentence if the rule applies, else an empty text.
    says: Callable[[TopicValues, int], str]
    state: str = "ok"
    word: str = "Note"


def values_of(configs: Mapping[str, str], wide: Mapping[str, str]) -> tuple[Value, ...]:
    """Return every config of a topic, its own settings first, then by key.

    `wide` is what is set for all brokers. Start-up configs and configs of a single broker are not
    known here.
    """
    inherited = topic_configs.effective({}, wide)
    rows = [
        row
        for key, row in topic_configs.ROWS.items()
        if key in configs or key != topic_configs.INTERNAL_SEGMENT_BYTES
    ]
    rows.sort(key=lambda row: (row.key not in configs, row.effect != LIVE, row.key))
    return tuple(_value(row, configs, wide, inherited) for row in rows)


def interactions_of(
    configs: Mapping[str, str], wide: Mapping[str, str], *, replication: int
) -> tuple[Interaction, ...]:
    """Return the consequences of the values together, problems first."""
    values = topic_configs.values(topic_configs.effective(configs, wide))
    found = [
        Interaction(keys=rule.keys, state=rule.state, word=rule.word, sentence=sentence)
        for rule in RULES
        if (sentence := rule.says(values, replication))
    ]
    return tuple(sorted(found, key=lambda each: each.state != "warn"))


def _value(
    row: ConfigRow,
    configs: Mapping[str, str],
    wide: Mapping[str, str],
    inherited: Mapping[str, str],
) -> Value:
    falls_back = inherited.get(row.key, "")
    value = configs.get(row.key, falls_back)
    synonym = next((each.key for each in row.synonyms if each.key in wide), None)
    source = "default" if synonym is None else f"all brokers, {synonym}"
    return Value(
        key=row.key,
        value=value,
        words=quantities.in_words(row.key, value),
        inherited=falls_back,
        source="this topic" if row.key in configs else source,
        is_set=row.key in configs,
        type=ConfigType(row.type).name.lower(),
        meaning=row.sentence,
        no_effect=row.effect,
    )


def _rolls_late(values: TopicValues, _replication: int) -> str:
    if not values.is_deleted or values.retention_ms == NO_LIMIT:
        return ""
    segment, kept = _span(values.segment_ms), _span(values.retention_ms)
    if values.segment_ms > values.retention_ms:
        return (
            f"retention.ms ({kept}) has no effect before a segment is closed: one that does not"
            f" fill up is closed after segment.ms ({segment}), so its records may stay for up to"
            f" {segment} longer."
        )
    return (
        f"retention.ms ({kept}) counts from the newest record of a closed segment: records of a"
        f" segment that does not fill up stay for up to segment.ms ({segment}) longer."
    )


def _segment_above_limit(values: TopicValues, _replication: int) -> str:
    if not values.is_deleted or values.retention_bytes == NO_LIMIT:
        return ""
    if values.segment_bytes <= values.retention_bytes:
        return ""
    return (
        f"segment.bytes ({quantities.size(values.segment_bytes)}) is above retention.bytes"
        f" ({quantities.size(values.retention_bytes)}): the open segment is never deleted, so a"
        " partition takes up to the first."
    )


def _endless(values: TopicValues, _replication: int) -> str:
    if not values.is_deleted or values.is_compacted:
        return ""
    if values.retention_ms != NO_LIMIT or values.retention_bytes != NO_LIMIT:
        return ""
    return "Neither age nor size is limited: nothing is ever deleted, and the topic only grows."


def _no_policy(values: TopicValues, _replication: int) -> str:
    if values.cleanup_policy:
        return ""
    return (
        "cleanup.policy is empty: nothing is ever deleted or compacted, and retention has no"
        " effect."
    )


def _only_compacted(values: TopicValues, _replication: int) -> str:
    if not values.is_compacted or values.is_deleted:
        return ""
    return (
        "The topic is compacted and not deleted from: retention.ms and retention.bytes have no"
        " effect, and it grows with the number of its keys."
    )


def _compacted_and_deleted(values: TopicValues, _replication: int) -> str:
    if not (values.is_compacted and values.is_deleted):
        return ""
    return (
        "The topic is compacted and deleted from: the last record of a key is deleted too once it"
        " is older than retention.ms or the partition larger than retention.bytes."
    )


def _not_compacted(values: TopicValues, _replication: int) -> str:
    if values.is_compacted:
        return ""
    return (
        "The topic is not compacted: delete.retention.ms, min.cleanable.dirty.ratio and both"
        " compaction lags have no effect."
    )


def _tombstones(values: TopicValues, _replication: int) -> str:
    if not values.is_compacted:
        return ""
    return (
        f"The marker of a deleted key is removed {_span(values.delete_retention_ms)} after "
        "compaction: a consumer that takes longer to read from the beginning may miss it, and "
        "keep the key."
    )


def _too_few_replicas(values: TopicValues, replication: int) -> str:
    if values.min_insync_replicas <= replication:
        return ""
    return (
        f"min.insync.replicas is {values.min_insync_replicas} and each partition has {replication}"
        f" replica{'s' if replication > 1 else ''}: producers that ask for acks=all are refused,"
        " always."
    )


def _no_spare_replica(values: TopicValues, replication: int) -> str:
    if values.min_insync_replicas != replication or replication == 1:
        return ""
    return (
        f"min.insync.replicas is {replication}, the number of replicas: one unavailable broker "
        "stops producers that ask for acks=all."
    )


def _larger_than_segment(values: TopicValues, _replication: int) -> str:
    if values.max_message_bytes <= values.segment_bytes:
        return ""
    return (
        f"max.message.bytes ({quantities.size(values.max_message_bytes)}) is above segment.bytes"
        f" ({quantities.size(values.segment_bytes)}): a batch of that size fits into no segment."
    )


def _larger_than_request(values: TopicValues, _replication: int) -> str:
    if values.max_message_bytes <= MAX_REQUEST_BYTES:
        return ""
    return (
        f"max.message.bytes ({quantities.size(values.max_message_bytes)}) is above the largest "
        "request that brokers read (socket.request.max.bytes, "
        f"{quantities.size(MAX_REQUEST_BYTES)} by default): such a batch never arrives."
    )


def _append_time(values: TopicValues, _replication: int) -> str:
    if not values.is_log_append_time:
        return ""
    return (
        "Records carry the broker's time: message.timestamp.before.max.ms and"
        " message.timestamp.after.max.ms have no effect."
    )


def _flush_while_synced(values: TopicValues, _replication: int) -> str:
    if values.durability is Durability.REPLICATED:
        return ""
    if values.flush_messages >= ENDLESS and values.flush_ms >= ENDLESS:
        return ""
    return (
        f"samsa.durability is {values.durability.value}: where a record counts as written once it"
        " is on the disk, flush.messages and flush.ms have no effect."
    )


def _lone_copy(values: TopicValues, replication: int) -> str:
    return LONE_COPY if is_lone_copy(values, replication) else ""


RULES: Final = (
    Rule(keys=("samsa.durability",), says=_lone_copy, state="warn", word="One copy"),
    Rule(
        keys=("min.insync.replicas",), says=_too_few_replicas, state="warn", word="Refuses writes"
    ),
    Rule(keys=("min.insync.replicas",), says=_no_spare_replica, state="warn", word="No spare"),
    Rule(
        keys=("max.message.bytes", "segment.bytes"),
        says=_larger_than_segment,
        state="warn",
        word="Never fits",
    ),
    Rule(keys=("max.message.bytes",), says=_larger_than_request, state="warn", word="Never fits"),
    Rule(
        keys=("retention.bytes", "segment.bytes"),
        says=_segment_above_limit,
        state="warn",
        word="Takes more",
    ),
    Rule(
        keys=("cleanup.policy", "retention.ms", "retention.bytes"),
        says=_endless,
        state="warn",
        word="Only grows",
    ),
    Rule(keys=("cleanup.policy",), says=_no_policy, state="warn", word="Only grows"),
    Rule(keys=("retention.ms", "segment.ms"), says=_rolls_late),
    Rule(keys=("cleanup.policy", "retention.ms", "retention.bytes"), says=_only_compacted),
    Rule(keys=("cleanup.policy", "retention.ms", "retention.bytes"), says=_compacted_and_deleted),
    Rule(keys=("cleanup.policy", "delete.retention.ms"), says=_tombstones),
    Rule(
        keys=("cleanup.policy", "delete.retention.ms", "min.cleanable.dirty.ratio"),
        says=_not_compacted,
    ),
    Rule(keys=("message.timestamp.type",), says=_append_time),
    Rule(keys=("samsa.durability", "flush.messages", "flush.ms"), says=_flush_while_synced),
)


def _span(milliseconds: int) -> str:
    if milliseconds >= ENDLESS:
        return "never"
    return durations.span(milliseconds / 1000)
