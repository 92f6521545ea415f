"""Describes the effect of a decision: each object before and after, as texts.

Pure. A preview shows these values and the audit keeps them, so that both match. Secrets are masked
here, before they can be stored.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from brokers.cluster import broker_configs, topic_configs
from brokers.cluster.changes import (
    ConfigsChanged,
    PartitionsAdded,
    Record,
    TopicCreated,
    TopicRemoved,
)
from brokers.cluster.config_values import ConfigType
from brokers.cluster.decisions import View
from brokers.cluster.image import PartitionState, ResourceType, Topic, written_id
from brokers.cluster.proposals import (
    Action,
    AllocateProducerIds,
    AlterConfigs,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    Subject,
)

# Partitions whose replicas are listed one by one; for more only the brokers are named.
LISTED_PARTITIONS: Final = 50
# A refused name from a client may be longer than any accepted one.
NAME_CHARS: Final = 249
HIDDEN: Final = "(hidden)"
TOPIC_ID: Final = "topic id"


class EffectKind(StrEnum):
    CREATE_TOPIC = "create topic"
    DELETE_TOPIC = "delete topic"
    ADD_PARTITIONS = "add partitions"
    ALTER_CONFIGS = "alter configs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One object before and after a change; a missing key is not set, or does not exist."""

    kind: EffectKind
    subject: Subject
    name: str
    before: Mapping[str, str]
    after: Mapping[str, str]


def asked(action: Action) -> tuple[EffectKind, Subject, str] | None:
    """Return the subject of an action; None for actions that brokers start by themselves."""
    match action:
        case CreateTopic():
            return EffectKind.CREATE_TOPIC, Subject.TOPIC, action.name[:NAME_CHARS]
        case DeleteTopic(topic_id=bytes(topic_id)):
            return EffectKind.DELETE_TOPIC, Subject.TOPIC, written_id(topic_id)
        case DeleteTopic():
            return EffectKind.DELETE_TOPIC, Subject.TOPIC, (action.name or "")[:NAME_CHARS]
        case CreatePartitions():
            return EffectKind.ADD_PARTITIONS, Subject.TOPIC, action.name[:NAME_CHARS]
        case AlterConfigs():
            subject = _CONFIGS[action.resource_type]
            return EffectKind.ALTER_CONFIGS, subject, action.name[:NAME_CHARS]
        case AllocateProducerIds():
            return None


def effects_of(view: View, records: Sequence[Record]) -> tuple[Effect, ...]:
    """Return the effects of one decision's records; the view must not include them yet."""
    return tuple(_effects(view, records))


def _effects(view: View, records: Sequence[Record]) -> Iterator[Effect]:
    # A topic's first configuration is a part of its creation.
    created = {record.name for record in records if isinstance(record, TopicCreated)}
    configs = {r.name: dict(r.configs) for r in records if isinstance(r, ConfigsChanged)}
    for record in records:
        match record:
            case TopicCreated():
                after = _topic(record.partitions, record.topic_id, configs.get(record.name, {}))
                yield _effect(EffectKind.CREATE_TOPIC, record.name, {}, after)
            case TopicRemoved():
                topic = _known(view.topic(record.name))
                before = view.configs_of(ResourceType.TOPIC, topic.name)
                was = _topic(topic.partitions, topic.id, before)
                yield _effect(EffectKind.DELETE_TOPIC, topic.name, was, {})
            case PartitionsAdded():
                topic = _known(view.topic_by_id(record.topic_id))
                yield _added(topic, record)
            case ConfigsChanged() if record.name not in created:
                yield _configs(view, record)
            case _:
                pass


def _effect(
    kind: EffectKind, name: str, before: Mapping[str, str], after: Mapping[str, str]
) -> Effect:
    return Effect(kind=kind, subject=Subject.TOPIC, name=name, before=before, after=after)


def _known(topic: Topic | None) -> Topic:
    assert topic is not None, "the decision was made on an existing topic"
    return topic


def _topic(
    partitions: Sequence[PartitionState], topic_id: bytes, configs: Mapping[str, str]
) -> dict[str, str]:
    return {
        TOPIC_ID: written_id(topic_id),
        "partitions": str(len(partitions)),
        "replication factor": str(len(partitions[0].replicas)),
        **_replicas(partitions, first=0),
        **masked(ResourceType.TOPIC, configs),
    }


def _added(topic: Topic, record: PartitionsAdded) -> Effect:
    there = record.first_index
    after = {
        "partitions": str(there + len(record.partitions)),
        **_replicas(record.partitions, first=there),
    }
    return _effect(EffectKind.ADD_PARTITIONS, topic.name, {"partitions": str(there)}, after)


def _replicas(partitions: Sequence[PartitionState], *, first: int) -> dict[str, str]:
    if len(partitions) <= LISTED_PARTITIONS:
        return {
            f"replicas of partition {index}": _listed(state.replicas)
            for index, state in enumerate(partitions, first)
        }
    brokers = sorted({broker for state in partitions for broker in state.replicas})
    last = first + len(partitions) - 1
    return {f"replicas of partitions {first} to {last}": f"on brokers {_listed(brokers)}"}


def _listed(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers))


def _configs(view: View, record: ConfigsChanged) -> Effect:
    before = dict(view.configs_of(record.resource_type, record.name))
    after = dict(record.configs)
    same = {key for key in before if after.get(key) == before[key]}
    return Effect(
        kind=EffectKind.ALTER_CONFIGS,
        subject=_CONFIGS[record.resource_type],
        name=record.name,
        before=masked(record.resource_type, {k: v for k, v in before.items() if k not in same}),
        after=masked(record.resource_type, {k: v for k, v in after.items() if k not in same}),
    )


_CONFIGS: Final = {
    ResourceType.TOPIC: Subject.TOPIC_CONFIGS,
    ResourceType.BROKER: Subject.BROKER_CONFIGS,
}
_ROWS: Final = {
    ResourceType.TOPIC: topic_configs.ROWS,
    ResourceType.BROKER: broker_configs.ROWS,
}


def masked(kind: ResourceType, configs: Mapping[str, str]) -> dict[str, str]:
    """Hide the values of secrets, and of keys that this code does not know."""
    rows = _ROWS[kind]
    return {
        key: HIDDEN if key not in rows or rows[key].type is ConfigType.PASSWORD else value
        for key, value in sorted(configs.items())
    }
