"""Defines, as a table, how a group of the consumer protocol handles classic members' requests.

Pure, and knows no group: `modern_classic` determines the event of a request and looks up the
action; `migration` gives the reason why a group keeps its protocol as an `Obstacle`. docs/groups.md
shows both.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from brokers.protocol.errors import ErrorCode


class MixedEvent(Enum):
    """The event that a classic protocol's request is for a group of the consumer protocol."""

    JOIN_FULL = "join of a newcomer, and the group has as many members as it may"
    JOIN_MISFIT = (
        "join with a type that is not consumer, or no protocol that all classic members share"
    )
    JOIN_WITHOUT_ID = "join of a dynamic newcomer, from version 4"
    JOIN_UNKNOWN = "join with an id, and an instance that the group does not have"
    JOIN_FENCED = "join of an instance under an id that is not its present one"
    JOIN_UNREADABLE = "join with a subscription that cannot be read"
    JOIN = "any other join"
    UNKNOWN = "sync or heartbeat with an id or instance that the group does not have"
    FENCED = "sync or heartbeat of an instance under an id that is not its present one"
    OTHER_PROTOCOL = "sync or heartbeat of a member of the consumer protocol"
    GENERATION = "sync or heartbeat of a generation that is not the member's epoch"
    SYNC_MISFIT = "sync with another type, or another protocol than the join was answered with"
    SYNC_BEHIND = "sync, and a newer assignment exists or is due"
    SYNC = "any other sync"
    HEARTBEAT_BEHIND = "heartbeat, and the member has to revoke partitions, or may get some"
    HEARTBEAT = "any other heartbeat"
    LEAVE_UNKNOWN = "leave with an id or an instance that the group does not have"
    LEAVE_FENCED = "leave of an instance under an id that is not its present one"
    LEAVE = "leave of a member, of either protocol"


@dataclass(frozen=True, slots=True)
class Meeting:
    """The result for the request: refused with an error, or as in the sentence."""

    error: ErrorCode
    sentence: str


_REJOIN: Final = "and removed unless it joins within its rebalance timeout"
_UNTIL_SYNC: Final = "its epoch as the generation, no leader; removed unless it syncs in time"

MEETINGS: Final[Mapping[MixedEvent, Meeting]] = MappingProxyType(
    {
        MixedEvent.JOIN_FULL: Meeting(ErrorCode.GROUP_MAX_SIZE_REACHED, ""),
        MixedEvent.JOIN_MISFIT: Meeting(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""),
        MixedEvent.JOIN_WITHOUT_ID: Meeting(
            ErrorCode.MEMBER_ID_REQUIRED, "with an id that is not stored"
        ),
        MixedEvent.JOIN_UNKNOWN: Meeting(ErrorCode.UNKNOWN_MEMBER_ID, ""),
        MixedEvent.JOIN_FENCED: Meeting(ErrorCode.FENCED_INSTANCE_ID, ""),
        MixedEvent.JOIN_UNREADABLE: Meeting(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""),
        MixedEvent.JOIN: Meeting(ErrorCode.NONE, _UNTIL_SYNC),
        MixedEvent.UNKNOWN: Meeting(ErrorCode.UNKNOWN_MEMBER_ID, ""),
        MixedEvent.FENCED: Meeting(ErrorCode.FENCED_INSTANCE_ID, ""),
        MixedEvent.OTHER_PROTOCOL: Meeting(ErrorCode.UNKNOWN_MEMBER_ID, ""),
        MixedEvent.GENERATION: Meeting(ErrorCode.ILLEGAL_GENERATION, ""),
        MixedEvent.SYNC_MISFIT: Meeting(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""),
        MixedEvent.SYNC_BEHIND: Meeting(ErrorCode.REBALANCE_IN_PROGRESS, _REJOIN),
        MixedEvent.SYNC: Meeting(ErrorCode.NONE, "its assignment; the session restarts"),
        MixedEvent.HEARTBEAT_BEHIND: Meeting(ErrorCode.REBALANCE_IN_PROGRESS, _REJOIN),
        MixedEvent.HEARTBEAT: Meeting(ErrorCode.NONE, "the session restarts"),
        MixedEvent.LEAVE_UNKNOWN: Meeting(ErrorCode.UNKNOWN_MEMBER_ID, ""),
        MixedEvent.LEAVE_FENCED: Meeting(ErrorCode.FENCED_INSTANCE_ID, ""),
        MixedEvent.LEAVE: Meeting(
            ErrorCode.NONE, "removed, with one new epoch for all that leave at once"
        ),
    }
)


class Obstacle(Enum):
    """The reason why a classic group with members stays classic, in Kafka's words to clients."""

    DISABLED = "online upgrade is disabled."
    OTHER_TYPE = "the group does not use the consumer embedded protocol."
    TOO_LARGE = "the group size exceeds the consumer group maximum size."
    MALFORMED = "the embedded consumer protocol is malformed."
    CUSTOM = (
        "an unsupported custom assignor is in use. Please refer to the documentation or switch to "
        "a default assignor before re-attempting the upgrade."
    )


INTRODUCTION: Final = """\

## From one protocol to the other

A group without members takes the protocol of the first member that joins.
One with members moves while it is used, as far as `group.consumer.migration.policy` allows.

It becomes a group of the consumer protocol when the first member of that protocol joins.
All its members stay, and keep their partitions.
Pending joins and syncs are answered with `REBALANCE_IN_PROGRESS`.
The newcomer is refused with `GROUP_ID_NOT_FOUND` in these cases, with the reason:

"""

BACK: Final = """\

It becomes a classic group when its last member of the consumer protocol leaves, is removed,
or is replaced by a classic member with its instance id.
At least one member has to stay, and no more than `group.max.size`.
The records of the change must fit into one batch, too; otherwise the group keeps its protocol.
The classic group takes the epoch as its generation and the current assignment, and rebalances.
It does not rebalance if a static member was replaced, no member gains or loses a partition, and
the subscription is the same.

In between, members of both protocols are in one group, and the coordinator assigns.
Answers to requests of the classic protocol in such a group:

"""


def render() -> str:
    """Return the second part of docs/groups.md."""
    obstacles = "".join(f"- {obstacle.value}\n" for obstacle in Obstacle)
    rows = "".join(f"| {event.value} | {_cell(MEETINGS[event])} |\n" for event in MixedEvent)
    return f"{INTRODUCTION}{obstacles}{BACK}| event | answer |\n|--|--|\n{rows}"


def _cell(meeting: Meeting) -> str:
    if meeting.error is ErrorCode.NONE:
        return meeting.sentence
    code = f"`{meeting.error.name}`"
    return f"{code}, {meeting.sentence}" if meeting.sentence else code
