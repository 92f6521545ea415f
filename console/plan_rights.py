"""Lists the rights that a plan needs: one on each object that its actions name."""

from collections.abc import Iterator, Sequence

from brokers.cluster.image import ResourceType
from brokers.cluster.proposals import (
    Action,
    AlterConfigs,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
)
from gateway.access.grants import Resource, Rights, decide
from gateway.access.operations import Kind, Operation


def denied(rights: Rights, cluster_id: str, actions: Sequence[Action]) -> str:
    """Return a sentence on the first missing right to apply actions; empty if none is missing."""
    for operation, resource in _needed(cluster_id, actions):
        decision = decide(rights, operation, resource)
        if not decision.is_allowed:
            return decision.reason
    return ""


def hidden(rights: Rights, cluster_id: str, actions: Sequence[Action]) -> str:
    """Return the same for viewing what the actions would change."""
    for _, resource in _needed(cluster_id, actions):
        decision = decide(rights, Operation.VIEW, resource)
        if not decision.is_allowed:
            return decision.reason
    return ""


def _needed(cluster_id: str, actions: Sequence[Action]) -> Iterator[tuple[Operation, Resource]]:
    for action in actions:
        match action:
            case CreateTopic():
                yield Operation.CREATE_TOPICS, _topic(cluster_id, action.name)
            case CreatePartitions():
                yield Operation.ALTER_TOPICS, _topic(cluster_id, action.name)
            case DeleteTopic(name=str(name)):
                yield Operation.DELETE_TOPICS, _topic(cluster_id, name)
            case AlterConfigs(resource_type=ResourceType.TOPIC):
                yield Operation.ALTER_CONFIGS, _topic(cluster_id, action.name)
            case AlterConfigs():
                yield Operation.ALTER_CONFIGS, Resource(kind=Kind.CLUSTER, cluster=cluster_id)
            case _:
                raise AssertionError(f"no page plans {action}: name topics by their names")


def _topic(cluster_id: str, name: str) -> Resource:
    return Resource(kind=Kind.TOPIC, cluster=cluster_id, name=name)
