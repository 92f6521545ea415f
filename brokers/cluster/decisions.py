"""Decides whether a requested change of the cluster is allowed, and what it changes.

The one place of the rules for administration: pure, so that every metadata store refuses the same
requests in the same words. A `View` answers from an image or from rows; decisions are returned as
records, which the store writes. Codes are Apache Kafka's, in its order of checks if a request has
several faults.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol, assert_never

from brokers.cluster import broker_configs, topic_configs
from brokers.cluster.changes import (
    ConfigsChanged,
    PartitionsAdded,
    Record,
    TopicCreated,
    TopicRemoved,
)
from brokers.cluster.config_values import ConfigRow, ConfigType
from brokers.cluster.image import Broker, PartitionState, ResourceType, Topic, written_id
from brokers.cluster.placement import check_replication_factor, place
from brokers.cluster.proposals import (
    Action,
    AllocateProducerIds,
    AlterConfigs,
    ConfigEdit,
    ConfigOperation,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    ProducerIdsResult,
    Result,
    TopicResult,
)
from brokers.cluster.topic_names import INTERNAL_TOPICS, PROHIBITED_TOPIC, check_topic_name
from brokers.protocol.errors import ErrorCode, KafkaError

# Kafka's limit for one request; a broker needs a minute for as many folders.
MAX_PARTITIONS_PER_TOPIC: Final = 10_000
# The number with which images, start-up and the database were measured.
MAX_PARTITIONS: Final = 100_000
# The size of a block in Kafka; a thousand of them would be a session's work.
PRODUCER_IDS_PER_BLOCK: Final = 1000
MAX_PRODUCER_ID: Final = 2**63 - 1
# A resource with more edits than there are keys must repeat some.
MAX_EDITS: Final = 1000
# Characters of a client's text that a refusal repeats.
_SHOWN: Final = 100

_BY_CLUSTER: Final = -1


class View(Protocol):
    """The current cluster, with the effects of earlier decisions in the same call."""

    def brokers(self) -> Sequence[Broker]: ...

    def topic(self, name: str) -> Topic | None: ...

    def topic_by_id(self, topic_id: bytes) -> Topic | None: ...

    def colliding(self, name: str) -> str | None:
        """Return another topic's name that is equal once dots are underscores."""
        ...

    def configs_of(self, kind: ResourceType, name: str) -> Mapping[str, str]: ...

    def partition_count(self) -> int: ...

    def next_producer_id(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Without records, nothing changes. A store advances its counter on a ProducerIdsResult.

    The counter moves behind the block, which may begin above it.
    """

    records: tuple[Record, ...] = ()
    result: Result = None


def decide(
    view: View, action: Action, *, now_ms: int, new_topic_id: Callable[[], bytes]
) -> Decision:
    """Return what an action changes; KafkaError with the reason if it is refused."""
    match action:
        case CreateTopic():
            # Topics that are created one after the other begin at different brokers; the time
            # varies it for one that is created and deleted again and again.
            start = view.partition_count() + now_ms
            return _create_topic(view, action, start=start, new_topic_id=new_topic_id)
        case DeleteTopic():
            return _delete_topic(view, action)
        case CreatePartitions():
            return _create_partitions(view, action)
        case AlterConfigs():
            return _alter_configs(view, action)
        case AllocateProducerIds():
            return _allocate_producer_ids(view, action)
        case _:
            assert_never(action)


def _create_topic(
    view: View, action: CreateTopic, *, start: int, new_topic_id: Callable[[], bytes]
) -> Decision:
    _check_new_name(view, action.name)
    configs = _created_configs(action.configs)
    if action.assignments is None:
        factor = _factor_asked(view, action.replication_factor)
        partitions = _partitions_asked(view, action.partitions)
        _check_room(view, total=partitions, more=partitions)
        replicas = place(_unfenced(view), partitions, factor, start=start)
    else:
        _check_no_counts(action)
        replicas = action.assignments
        _check_room(view, total=len(replicas), more=len(replicas))
        _check_assignments(view, replicas, first=0)
    topic_id = new_topic_id()
    alive = _unfenced(view)
    states = tuple(_new_partition(each, alive) for each in replicas)
    records: list[Record] = [TopicCreated(action.name, topic_id, states)]
    if configs:
        records.append(ConfigsChanged(ResourceType.TOPIC, action.name, configs))
    return Decision(
        records=tuple(records),
        result=TopicResult(
            name=action.name,
            topic_id=topic_id,
            partitions=len(states),
            replication_factor=len(states[0].replicas),
        ),
    )


def _check_new_name(view: View, name: str) -> None:
    if name == PROHIBITED_TOPIC:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{name} is the name of Kafka's own metadata; choose another one",
        )
    check_topic_name(name)
    other = view.colliding(name)
    if other is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"topic {name!r} and the existing topic {other!r} differ in '.' and '_' only, which "
            "metrics cannot distinguish; choose another name",
        )
    if view.topic(name) is not None:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")


def _created_configs(
    configs: tuple[tuple[str, str | None], ...],
) -> tuple[tuple[str, str], ...]:
    _check_edit_count(len(configs))
    accepted: dict[str, str] = {}
    for key, value in configs:
        if value is None:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG, f"{key[:_SHOWN]} has no value; leave the key out instead"
            )
        # The same key twice is valid in Kafka: the last one holds.
        accepted[key] = value
    for key, value in accepted.items():
        topic_configs.check(key, value)
    topic_configs.check_together(accepted)
    return tuple(sorted(accepted.items()))


def _check_no_counts(action: CreateTopic) -> None:
    for what, number in (
        ("replication factor", action.replication_factor),
        ("number of partitions", action.partitions),
    ):
        if number != _BY_CLUSTER:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"replicas are assigned by hand and the {what} is {number}; it must be -1 then, "
                "since the assignment says it",
            )


def _factor_asked(view: View, factor: int) -> int:
    if factor < _BY_CLUSTER or factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {factor} is neither above 0 nor -1, the default",
        )
    if factor == _BY_CLUSTER:
        factor = _cluster_number(view, broker_configs.DEFAULT_REPLICATION_FACTOR)
    check_replication_factor(factor)
    return factor


def _partitions_asked(view: View, partitions: int) -> int:
    if partitions < _BY_CLUSTER or partitions == 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"{partitions} partitions are neither above 0 nor -1, the default",
        )
    if partitions == _BY_CLUSTER:
        return _cluster_number(view, broker_configs.NUM_PARTITIONS)
    return partitions


def _cluster_number(view: View, key: str) -> int:
    default = broker_configs.ROWS[key].default
    assert default is not None, f"{key} has a default"
    return int(view.configs_of(ResourceType.BROKER, "").get(key, default))


def _check_room(view: View, *, total: int, more: int) -> None:
    """Refuse a topic of too many partitions (`total`), or too many in the cluster (`more`)."""
    if total > MAX_PARTITIONS_PER_TOPIC:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"{total} partitions are too many for one topic, {MAX_PARTITIONS_PER_TOPIC} are "
            "allowed",
        )
    there = view.partition_count()
    if there + more > MAX_PARTITIONS:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"the cluster has {there} partitions and would have {there + more}, {MAX_PARTITIONS} "
            "are allowed; delete topics that are not needed",
        )


def _check_assignments(
    view: View, assignments: tuple[tuple[int, ...], ...], *, first: int, factor: int | None = None
) -> None:
    registered = {broker.id for broker in view.brokers()}
    alive = _unfenced(view)
    if not assignments:
        raise _misassigned("no partition is assigned; the assignment must begin with partition 0")
    for index, replicas in enumerate(assignments, first):
        factor = len(replicas) if factor is None else factor
        if not replicas:
            raise _misassigned(f"partition {index} is assigned to no broker")
        if len(set(replicas)) < len(replicas):
            raise _misassigned(
                f"partition {index} is assigned twice to one broker: {str(replicas)[:_SHOWN]}"
            )
        strange = [broker for broker in replicas if broker not in registered]
        if strange:
            raise _misassigned(
                f"partition {index} is assigned to broker {strange[0]}, which is not registered; "
                f"registered are {sorted(registered)}"
            )
        if len(replicas) != factor:
            raise _misassigned(
                f"partition {index} has {len(replicas)} replicas, the others have {factor}"
            )
        if not any(broker in alive for broker in replicas):
            raise _misassigned(
                f"partition {index} is assigned to brokers {str(replicas)[:_SHOWN]}, all of "
                "which are fenced"
            )
    assert factor is not None
    check_replication_factor(factor)


def _misassigned(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def _unfenced(view: View) -> frozenset[int]:
    return frozenset(broker.id for broker in view.brokers() if not broker.is_fenced)


def _new_partition(replicas: tuple[int, ...], alive: frozenset[int]) -> PartitionState:
    isr = tuple(broker for broker in replicas if broker in alive)
    return PartitionState(replicas=replicas, isr=isr, leader=isr[0])


def _delete_topic(view: View, action: DeleteTopic) -> Decision:
    if action.topic_id is not None:
        topic = view.topic_by_id(action.topic_id)
        if topic is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_ID, f"no topic has the id {written_id(action.topic_id)}"
            )
    elif action.name is not None:
        topic = _known_topic(view, action.name)
    else:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "the request has neither the name nor the id of the topic to delete",
        )
    return Decision(
        records=(TopicRemoved(topic.name, topic.id),), result=_result(topic, len(topic.partitions))
    )


def _known_topic(view: View, name: str) -> Topic:
    topic = view.topic(name)
    if topic is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name[:_SHOWN]!r}"
        )
    return topic


def _result(topic: Topic, partitions: int) -> TopicResult:
    return TopicResult(
        name=topic.name,
        topic_id=topic.id,
        partitions=partitions,
        replication_factor=topic.replication_factor,
    )


def _create_partitions(view: View, action: CreatePartitions) -> Decision:
    topic = _known_topic(view, action.name)
    if topic.name in INTERNAL_TOPICS:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"topic {topic.name!r} is internal, and its state is assigned to partitions by their "
            "number: with another number it would not be found",
        )
    there = len(topic.partitions)
    more = action.count - there
    if more <= 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"topic {topic.name!r} has {there} partitions already, and the request names "
            f"{action.count} in all; partitions can only be added",
        )
    _check_room(view, total=action.count, more=more)
    if action.assignments is None:
        # Continue after the broker of the last partition.
        start = topic.partitions[-1].replicas[0]
        alive = sorted(_unfenced(view))
        after = sum(broker <= start for broker in alive)
        replicas = place(alive, more, topic.replication_factor, start=after)
    else:
        replicas = action.assignments
        if len(replicas) != more:
            raise _misassigned(
                f"{more} partitions are to be added, and {len(replicas)} are assigned"
            )
        _check_assignments(view, replicas, first=there, factor=topic.replication_factor)
    alive_now = _unfenced(view)
    states = tuple(_new_partition(each, alive_now) for each in replicas)
    return Decision(
        records=(PartitionsAdded(topic.id, there, states),), result=_result(topic, action.count)
    )


def _alter_configs(view: View, action: AlterConfigs) -> Decision:
    _check_edit_count(len(action.edits))
    _check_edits(action.edits)
    _check_resource_name(action)
    before = view.configs_of(action.resource_type, action.name)
    rows = _ROWS[action.resource_type]
    after = {} if action.replaces_all else dict(before)
    for edit in action.edits:
        value = _edited(edit, after.get(edit.key), rows.get(edit.key))
        if value is None:
            after.pop(edit.key, None)
        else:
            after[edit.key] = value
            _check_config(action, edit.key, value)
    if action.resource_type is ResourceType.TOPIC:
        topic_configs.check_together(after)
    else:
        broker_configs.check_together(after)
    _check_resource_exists(view, action)
    if after == dict(before):
        return Decision()
    return Decision(
        records=(ConfigsChanged(action.resource_type, action.name, tuple(sorted(after.items()))),)
    )


# The rows that APPEND and SUBTRACT need, by kind of resource.
_ROWS: Final[Mapping[ResourceType, Mapping[str, ConfigRow]]] = MappingProxyType(
    {
        ResourceType.TOPIC: topic_configs.ROWS,
        ResourceType.BROKER: broker_configs.ROWS,
    }
)


def _check_edit_count(count: int) -> None:
    if count > MAX_EDITS:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{count} configuration keys in one request, {MAX_EDITS} are allowed",
        )


def _check_edits(edits: Sequence[ConfigEdit]) -> None:
    seen: set[str] = set()
    for edit in edits:
        if edit.key in seen:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{edit.key[:_SHOWN]} is edited twice in one request; send one edit of each key",
            )
        seen.add(edit.key)
        if edit.value is None and edit.operation is not ConfigOperation.DELETE:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{edit.key[:_SHOWN]} has no value; to unset a key, delete it",
            )


def _edited(edit: ConfigEdit, current: str | None, row: ConfigRow | None) -> str | None:
    """Return a key's value after an edit; None if it is unset."""
    match edit.operation:
        case ConfigOperation.SET:
            return edit.value
        case ConfigOperation.DELETE:
            return None
        case ConfigOperation.APPEND | ConfigOperation.SUBTRACT:
            if row is None or row.type is not ConfigType.LIST:
                raise KafkaError(
                    ErrorCode.INVALID_CONFIG,
                    f"{edit.key[:_SHOWN]} is not a list, so nothing can be appended to it or "
                    "subtracted from it; set it instead",
                )
            items = _items(current if current is not None else row.default)
            asked = _items(edit.value)
            if edit.operation is ConfigOperation.APPEND:
                return ",".join(dict.fromkeys((*items, *asked)))
            return ",".join(item for item in items if item not in asked)
        case _:
            assert_never(edit.operation)


def _items(text: str | None) -> list[str]:
    return [item.strip() for item in (text or "").split(",") if item.strip()]


def _check_config(action: AlterConfigs, key: str, value: str) -> None:
    match action.resource_type:
        case ResourceType.TOPIC:
            topic_configs.check(key, value)
        case ResourceType.BROKER:
            broker_configs.check(key, value, is_default=not action.name)
        case _:
            assert_never(action.resource_type)


def _check_resource_name(action: AlterConfigs) -> None:
    match action.resource_type:
        case ResourceType.TOPIC if not action.name:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "topics have no common configuration; name a topic, or set the broker's key of "
                "the same meaning on the broker of empty name",
            )
        case ResourceType.TOPIC:
            check_topic_name(action.name)
        case ResourceType.BROKER if action.name:
            _broker_id(action.name)
        case _:
            pass


def _check_resource_exists(view: View, action: AlterConfigs) -> None:
    if action.resource_type is ResourceType.TOPIC:
        _known_topic(view, action.name)
    elif action.name:
        broker_id = _broker_id(action.name)
        if all(broker.id != broker_id for broker in view.brokers()):
            raise KafkaError(
                ErrorCode.BROKER_ID_NOT_REGISTERED, f"no broker {broker_id} is registered"
            )


def _broker_id(name: str) -> int:
    # An int32 has at most ten digits; longer names are not parsed.
    if not (name.isascii() and name.isdigit() and len(name) <= 10):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{name[:_SHOWN]!r} is not a broker id, a whole number"
        )
    return int(name)


def _allocate_producer_ids(view: View, action: AllocateProducerIds) -> Decision:
    """Return the next block, above the highest seen id: the counter may have been set back."""
    first = max(view.next_producer_id(), action.highest_seen + 1)
    last = MAX_PRODUCER_ID - PRODUCER_IDS_PER_BLOCK
    if first > last:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"no block of {PRODUCER_IDS_PER_BLOCK} producer ids is left above {first - 1}, the "
            f"highest in use; idempotent producers need a new cluster",
        )
    if 0 < action.skip <= last - first:
        first += action.skip
    return Decision(result=ProducerIdsResult(first=first, count=PRODUCER_IDS_PER_BLOCK))
