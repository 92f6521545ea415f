"""Who may read as a member of a group, and of which topics. Pure, but for the refusal of a call."""

import re
from collections.abc import Iterable
from typing import Final

from gateway.access.grants import Names
from gateway.access.operations import Kind, Operation
from gateway.kafka.member import Subscription
from gateway.rest.calls import Call
from gateway.rest.codes import ApiError, Code

# What a pattern begins with literally: letters of names, and a dot that is one.
LITERAL: Final = re.compile(r"(?:[A-Za-z0-9_-]|\\\.)*")
# Whole parts that may be left out: a parenthesis can close the one in which an expression is put.
GROUPED: Final = frozenset("|()")
# These have what stands before them come never, or in another number.
OPTIONAL: Final = ("*", "?", "{")


def require_group(call: Call, group: str) -> None:
    """Refuse who may not read as this group: reading moves its offsets."""
    call.require(Operation.RESET_GROUPS, Kind.GROUP, group)


def require_topics(call: Call, topics: Iterable[str]) -> None:
    for topic in sorted(set(topics)):
        call.require(Operation.READ_PAYLOADS, Kind.TOPIC, topic)


def require_subscription(call: Call, wanted: Subscription) -> None:
    """Refuse who may not read all that a subscription can mean, now or later."""
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
    """Tell whether all names that a pattern can mean are readable, as far as its start tells."""
    start = literal_start(pattern)
    return readable.is_all or start.startswith(readable.prefixes)


def literal_start(pattern: str) -> str:
    """Return what every name begins with that an expression can mean."""
    inner = pattern.removeprefix("^").removeprefix("(").removesuffix("$").removesuffix(")")
    if not GROUPED.isdisjoint(inner):
        return ""
    found = LITERAL.match(inner)
    assert found is not None, "it matches nothing as well"
    start = found[0]
    if inner[found.end() :].startswith(OPTIONAL):
        start = start[: -2 if start.endswith("\\.") else -1]
    return start.replace("\\.", ".")
