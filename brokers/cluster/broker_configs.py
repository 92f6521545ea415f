"""Defines the configuration keys of brokers, and which can be set while they run.

The keys that topics fall back to are derived from the topics' table, so each can be set where the
topic's key has its effect. Most others are given at the start of a broker and shown read-only; of
Kafka's keys only those with a meaning in this server are listed, and those in `idle_configs`.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from brokers.cluster import foreign_configs, idle_configs, topic_configs
from brokers.cluster.config_values import (
    LIVE,
    ConfigRow,
    ConfigType,
    ConfigValue,
    at_least,
    between,
    items_of,
    one_of,
    parse,
)
from brokers.protocol.errors import ErrorCode, KafkaError

NUM_PARTITIONS: Final = "num.partitions"
DEFAULT_REPLICATION_FACTOR: Final = "default.replication.factor"
CLEANER_ENABLE: Final = "log.cleaner.enable"
CLEANER_BACKOFF_MS: Final = "log.cleaner.backoff.ms"
RETENTION_CHECK_MS: Final = "log.retention.check.interval.ms"
# Keys that decide for the whole cluster and cannot differ by broker: set for the empty name.
CLUSTER_WIDE: Final = frozenset({NUM_PARTITIONS, DEFAULT_REPLICATION_FACTOR})

_SHOWN: Final = 100

_BOOLEAN, _STRING, _INT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT
_SHORT, _LONG, _LIST = ConfigType.SHORT, ConfigType.LONG, ConfigType.LIST

# Read-only: key, type, default, sentence. A broker reports the values of its start instead.
# fmt: off
_STATIC: Final = (
    ("advertised.listeners", _STRING, None, "The addresses that the broker advertises to clients."),
    ("authorizer.class.name", _STRING, "", "The class that authorizes principals; empty for none."),
    ("auto.create.topics.enable", _BOOLEAN, "true",
     "Whether a missing topic is created when a client requests it."),
    ("auto.leader.rebalance.enable", _BOOLEAN, "true",
     "Whether leadership goes back to the first replica; with one replica it never leaves it."),
    ("broker.id", _INT, None, "This broker's number; the same as node.id."),
    ("broker.rack", _STRING, None, "The rack or zone of this broker."),
    ("connections.max.idle.ms", _LONG, "600000",
     "Close a connection after this time without a request."),
    ("delete.topic.enable", _BOOLEAN, "true", "Whether topics can be deleted."),
    ("fetch.max.bytes", _INT, "57671680", "The maximum bytes of the response to a fetch."),
    ("inter.broker.listener.name", _STRING, "PLAINTEXT", "The listener that brokers use."),
    ("listeners", _STRING, None, "The addresses that this broker listens on."),
    ("log.dir", _STRING, None, "The folder of this broker's logs."),
    ("log.dirs", _LIST, None, "The folders of this broker's logs; it has one."),
    ("max.incremental.fetch.session.cache.slots", _INT, "1000",
     "The maximum number of fetch sessions."),
    ("node.id", _INT, None, "This broker's number."),
    ("process.roles", _LIST, "broker", "The roles of this process."),
    ("producer.id.expiration.ms", _INT, "86400000",
     "Expire an idempotent producer after this time without a write."),
    ("queued.max.requests", _INT, "500", "How many requests may wait."),
    ("sasl.enabled.mechanisms", _LIST, "", "The SASL mechanisms that clients can use."),
    ("security.inter.broker.protocol", _STRING, "PLAINTEXT",
     "The security protocol between brokers."),
    ("socket.request.max.bytes", _INT, "104857600", "The maximum size of a request in bytes."),
    ("super.users", _STRING, "", "The principals with all rights."),
)
_POSITIVE: Final = at_least(1)
_ANY_TIME: Final = at_least(0)
# Of group coordinators: key, type, default, rule, sentence. Read-only, too.
_GROUPS: Final = (
    ("group.consumer.assignment.interval.ms", _INT, "1000", _ANY_TIME,
     "The minimum time between two assignments of a group with the consumer protocol."),
    ("group.consumer.assignors", _LIST, "uniform,range", items_of("uniform", "range"),
     "The assignors of groups with the consumer protocol; the first one if a group names none."),
    ("group.consumer.heartbeat.interval.ms", _INT, "5000", _POSITIVE,
     "The interval in which members of a group with the consumer protocol send heartbeats."),
    ("group.consumer.max.size", _INT, "2147483647", _POSITIVE,
     "The maximum number of members of a group with the consumer protocol."),
    ("group.consumer.migration.policy", _STRING, "bidirectional",
     one_of("bidirectional", "upgrade", "downgrade", "disabled"),
     "The directions in which a group may migrate between the classic and the consumer protocol."),
    ("group.consumer.regex.refresh.interval.ms", _INT, "600000", at_least(10_000),
     "The interval in which regular expressions of subscriptions are matched with topic names."),
    ("group.consumer.session.timeout.ms", _INT, "45000", _POSITIVE,
     "Remove a member of a group with the consumer protocol after this time without a heartbeat."),
    ("group.initial.rebalance.delay.ms", _INT, "3000", _ANY_TIME,
     "How long an empty group waits for more members before its first rebalance."),
    ("group.max.session.timeout.ms", _INT, "1800000", _POSITIVE,
     "The maximum session timeout of a member."),
    ("group.max.size", _INT, "2147483647", _POSITIVE, "The most members of a group."),
    ("group.min.session.timeout.ms", _INT, "6000", _POSITIVE,
     "The minimum session timeout of a member."),
    ("offset.metadata.max.bytes", _INT, "4096", _ANY_TIME,
     "The maximum size of the metadata of a committed offset."),
    ("offsets.commit.timeout.ms", _INT, "5000", _POSITIVE,
     "The time in which a commit must be durable; after it the client gets a retriable error."),
    ("offsets.retention.check.interval.ms", _LONG, "600000", _POSITIVE,
     "The interval in which expired committed offsets are deleted."),
    ("offsets.retention.minutes", _INT, "10080", _POSITIVE,
     "How long the offsets of a group are kept after its last member has left."),
    ("offsets.topic.num.partitions", _INT, "50", between(1, 1_000),
     "The number of partitions of the topic with the committed offsets, at its creation."),
    ("offsets.topic.replication.factor", _SHORT, "3", _POSITIVE,
     "The replication factor of that topic, or the number of brokers if that is smaller."),
    # The topic's own rule: a broker that began with less could never create that topic.
    ("offsets.topic.segment.bytes", _INT, "104857600", topic_configs.ROWS["segment.bytes"].rule,
     "The segment size of that topic."),
)
# Of a broker's chores; keys that topics may set for themselves are derived. Read-only.
_CHORES: Final = (
    (CLEANER_ENABLE, _BOOLEAN, "true", None, "Whether compacted topics are compacted here."),
    (RETENTION_CHECK_MS, _LONG, "300000", _POSITIVE,
     "The interval in which logs are checked for segments to delete."),
)
# Settable while brokers run, for one or for all.
_LIVE: Final = (
    (CLEANER_BACKOFF_MS, _LONG, "15000", _ANY_TIME,
     "How long the cleaner waits when there is nothing to compact."),
    ("max.connections", _INT, "2147483647", _POSITIVE, "The maximum number of connections."),
    ("max.connections.per.ip", _INT, "2147483647", _POSITIVE,
     "The maximum number of connections from one address."),
)
# Settable for all brokers at once.
_WIDE: Final = (
    ConfigRow(
        key=NUM_PARTITIONS, type=_INT, default="1", rule=at_least(1), is_dynamic=True,
        sentence="The number of partitions of a topic that is created without one.",
    ),
    ConfigRow(
        key=DEFAULT_REPLICATION_FACTOR, type=_INT, default="1", rule=at_least(1), is_dynamic=True,
        sentence="The replication factor of a topic that is created without one.",
        effect="replication is not part of this release",
    ),
)
# Keys whose default in Kafka differs from the topic's, or is missing: Kafka ranks hours and minutes
# behind the same key in milliseconds.
_OWN_DEFAULTS: Final[Mapping[str, str | None]] = MappingProxyType({
    "log.retention.ms": None,
    "log.retention.minutes": None,
    "log.retention.hours": "168",
    "log.roll.ms": None,
    "log.roll.hours": "168",
    "log.roll.jitter.ms": None,
    "log.roll.jitter.hours": "0",
    "log.flush.interval.ms": None,
})
# fmt: on


def _derived() -> Iterator[ConfigRow]:
    """Yield the keys behind the topics' keys, unless the topic's key has no effect."""
    for row in topic_configs.ROWS.values():
        if row.is_hidden:
            continue
        for synonym in row.synonyms:
            yield ConfigRow(
                key=synonym.key,
                type=row.type if synonym.scale == 1 else _INT,
                default=_OWN_DEFAULTS.get(synonym.key, row.default),
                sentence=f"For topics that set no {row.key}: {_lowered(row.sentence)}",
                rule=row.rule,
                effect=row.effect,
                is_dynamic=synonym.is_dynamic and row.effect == LIVE,
            )


def _lowered(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _rows() -> Iterator[ConfigRow]:
    yield from _derived()
    yield from _WIDE
    yield from idle_configs.ROWS
    for key, kind, default, sentence in _STATIC:
        yield ConfigRow(key=key, type=kind, default=default, sentence=sentence)
    for key, kind, default, rule, sentence in (*_GROUPS, *_CHORES):
        yield ConfigRow(key=key, type=kind, default=default, rule=rule, sentence=sentence)
    for key, kind, default, rule, sentence in _LIVE:
        yield ConfigRow(
            key=key, type=kind, default=default, rule=rule, sentence=sentence, is_dynamic=True
        )


ROWS: Final[Mapping[str, ConfigRow]] = MappingProxyType(
    {row.key: row for row in sorted(_rows(), key=lambda row: row.key)}
)


def check(key: str, value: str, *, is_default: bool) -> None:
    """Refuse a key or value that cannot be set at run time. `is_default`: for all brokers at once.

    Unknown keys are accepted, as in Kafka; see `foreign_configs`.
    Kafka refuses a broker's configuration as INVALID_REQUEST, where a topic's is INVALID_CONFIG.
    """
    row = ROWS.get(key)
    if row is None:
        refused = foreign_configs.wrong(key, value)
        if refused is not None:
            raise _invalid(refused)
        return
    wrong = row.wrong(value)
    if wrong is not None:
        raise _invalid(f"{key}: {value[:_SHOWN]!r} {wrong}")
    if row.effect != LIVE and not row.is_idle:
        if row.is_default(value):
            return
        raise _invalid(
            f"{key}={value[:_SHOWN]} would have no effect: {row.effect}; "
            f"leave it at its default, {row.default!r}"
        )
    if not row.is_dynamic:
        raise _invalid(
            f"{key} cannot be changed while brokers run; set it at the start of a broker, by "
            "broker.properties or --set"
        )
    if key in CLUSTER_WIDE and not is_default:
        raise _invalid(
            f"{key} applies to the whole cluster: set it on the broker with the empty name"
        )


def check_together(configs: Mapping[str, str]) -> None:
    """Refuse more unknown keys of one resource than are kept."""
    unknown = sum(key not in ROWS for key in configs)
    if unknown > foreign_configs.MAX_UNKNOWN:
        raise _invalid(
            f"{unknown} unknown configs would be set, {foreign_configs.MAX_UNKNOWN} are allowed; "
            "delete some of them"
        )


def defaults(
    static: Mapping[str, str], cluster: Mapping[str, str], broker: Mapping[str, str]
) -> Mapping[str, str]:
    """Merge a broker's settings, the strongest last: at its start, for all brokers, at run time."""
    return {**static, **cluster, **broker}


def told(static: Mapping[str, str], key: str) -> ConfigValue:
    """Return a broker's setting at its start, which has been checked, or else the default."""
    row = ROWS[key]
    text = static.get(key, row.default)
    assert text is not None, f"{key} has neither value nor default"
    return parse(row.type, text)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
