"""Defines the kinds of stream topics, and who may subscribe to them.

A topic is a kind and a name. A publisher of a new kind adds its row here, with the right that a
subscriber needs.
"""

from collections.abc import Callable, Mapping
from typing import Final

from gateway.access.grants import Rights, may_view_all
from gateway.access.operations import Operation

# A kind, a colon, and the name of a Kafka topic (249) or of a group in a cluster.
MAX_TOPIC_LENGTH: Final = 320


def _may_view_cluster(rights: Rights, cluster_id: str) -> bool:
    """Admit users with a view of any part of the cluster: its topic only reports changes."""
    return rights.allows_somewhere(Operation.VIEW, cluster=cluster_id)


KINDS: Final[Mapping[str, Callable[[Rights, str], bool]]] = {
    "cluster": _may_view_cluster,
    # The collector's tables changed, or became stale.
    "live": _may_view_cluster,
    # How much of the cluster needs attention.
    "health": may_view_all,
}


def is_topic(text: str) -> bool:
    kind, _, name = text.partition(":")
    is_named = bool(name) and name.isprintable() and len(text) <= MAX_TOPIC_LENGTH
    return is_named and kind in KINDS


def may_hear(rights: Rights, topic: str) -> bool:
    kind, _, name = topic.partition(":")
    return KINDS[kind](rights, name)
