"""Checks who may read as a member of a group, and from which topics. Pure, except for refusals."""

import re
from collections.abc import Iterable
from typing import Final

from gateway.access.grants import Names
from gateway.access.operations import Kind, Operation
from gateway.kafka.member import Subscription
from gateway.rest.calls import Call
from gateway.rest.codes import ApiError, Code

# The literal start of a pattern: characters of names, and escaped dots.
LITERAL: Final = re.compile(r"(?:[A-Za-z0-9_-]|\\\.)*")
# Parts may be optional: a parenthesis can close the group that wraps the expression.
GROUPED: Final = frozenset("|()")
# Quantifiers that may make the preceding character absent or repeat it.
OPTIONAL: Final = ("*", "?", "{")


def require_group(call: Call, group: str) -> None:
    """Refuse callers who may not read as this group: reading moves its offsets."""
    call.require(Operation.RESET_GROUPS, Kind.GROUP, group)


def require_topics(call: Call, topics: Iterable[str]) -> None:
    for topic in sorted(set(topics)):
        call.require(Operation.READ_PAYLOADS, Kind.TOPIC, topic)


def require_subscription(call: Call, wanted: Subscription) -> None:
    """Refuse callers who may not read every topic that a subscription can match, now or later."""
    require_topics(call, [*wanted.topics, *(place.topic for place in wanted.places)])
    readable = call.caller.rights.names(
        Operation.READ_PAYLOADS, cluster=call.cluster_id, kind=Kind.TOPIC
    )
    if wanted.pattern and not covers(readable, wanted.pattern):
        raise ApiError(
            Code.NOT_ALLOWED,
            f"topic_pattern {wanted.pattern!r} can mean topics whose payloads you may not read:"
            " begin it with the prefix of those that you may, or name the topics",
        )


def covers(readable: Names, pattern: str) -> bool:
    """Tell whether the literal start of a pattern limits it to readable names."""
    start = literal_start(pattern)
    return readable.is_all or start.startswith(readable.prefixes)


def literal_start(pattern: str) -> str:
    """Return the literal start of all names that an expression can match."""
    inner = pattern.removeprefix("^").removeprefix("(").removesuffix("$").removesuffix(")")
    if not GROUPED.isdisjoint(inner):
        return ""
    found = LITERAL.match(inner)
    assert found is not None, "it matches nothing as well"
    start = found[0]
    if inner[found.end() :].startswith(OPTIONAL):
        start = start[: -2 if start.endswith("\\.") else -1]
    return start.replace("\\.", ".")
