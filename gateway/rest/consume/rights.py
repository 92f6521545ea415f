"""Checks who may read as a member of a group, and from which topics. Pure, except for refusals."""

from collections.abc import Iterable

from gateway.access.grants import Names
from gateway.access.operations import Kind, Operation
from gateway.kafka.topic_pattern import TopicPattern
from gateway.rest.calls import Call
from gateway.rest.codes import ApiError, Code


def require_group(call: Call, group: str) -> None:
    """Refuse callers who may not read as this group: reading moves its offsets."""
    call.require(Operation.RESET_GROUPS, Kind.GROUP, group)


def require_topics(call: Call, topics: Iterable[str]) -> None:
    for topic in sorted(set(topics)):
        call.require(Operation.READ_PAYLOADS, Kind.TOPIC, topic)


def readable(call: Call, pattern: TopicPattern) -> Names:
    """Return the topics that a pattern may mean for a caller, who has to have some."""
    found = call.caller.rights.names(
        Operation.READ_PAYLOADS, cluster=call.cluster_id, kind=Kind.TOPIC
    )
    if not found:
        raise ApiError(
            Code.NOT_ALLOWED,
            f"topic_pattern {pattern.text!r} matches no topic whose payloads you may read: "
            f"{call.caller.remedy(Operation.READ_PAYLOADS, Kind.TOPIC, '*')}",
        )
    return found
