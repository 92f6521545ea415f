"""Describes many groups for a list, with one request per hundred groups.

The client library asks for each group separately, does not report the broker of a listed group, and
does not know some states, or members with another protocol than their group's. Groups that fail
here are left out, and the library is asked for them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from brokers.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from brokers.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from brokers.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from gateway.kafka.connection import Connection, address_of
from gateway.kafka.errors import KafkaFailure, broker_failure
from gateway.kafka.requests import ask
from gateway.kafka.values import Broker, Group, GroupState, GroupSummary, GroupType

# A broker lists 100,000 groups at most, with names of some tens of bytes.
MAX_LIST_BYTES: Final = 32 * 1024 * 1024
# A description has all members with their assignments; a larger answer is left out.
AT_ONCE: Final = 100
MAX_PIECE_BYTES: Final = 16 * 1024 * 1024
DEAD: Final = "Dead"
STATES: Final[Mapping[str, GroupState]] = {state.value: state for state in GroupState}
# The type of a member of the classic protocol.
CLASSIC_MEMBER: Final = 0
VALUE: Final = "consumer groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A broker's description of a group; for an unknown state, the library's is used."""

    assignor: str
    state: GroupState | None = None
    is_mixed: bool = False


Describe: TypeAlias = Callable[[Connection, Sequence[str]], dict[str, Description]]
# A group without members has no assignor, so no broker is asked.
IDLE: Final = Description(assignor="")


def refine(connection: Connection, broker: Broker, group: Group) -> Group:
    """Return a group of the consumer protocol with the details that the library omits."""
    try:
        found = _describe_consumers(at(connection, broker), [group.name]).get(group.name)
    except KafkaFailure:
        return group
    if found is None:
        return group
    return replace(group, state=found.state or group.state, is_mixed=found.is_mixed)


def at(connection: Connection, broker: Broker) -> Connection:
    """Return a connection to one broker of a cluster."""
    return replace(connection, bootstrap=address_of(broker.host, broker.port))


def overview(
    connection: Connection, brokers: Iterable[Broker], wanted: Sequence[GroupSummary]
) -> dict[str, Group]:
    """Return the groups that could be described, without their members, by name."""
    if not wanted:
        return {}
    names = {summary.name: summary for summary in wanted}
    found: dict[str, Group] = {}
    # All requests share one deadline.
    until = connection.deadline()
    for broker in brokers:
        there = replace(at(connection, broker), until=until)
        try:
            own = [names[name] for name in _listed(there) if name in names]
            described = _describe(there, own)
        except KafkaFailure:
            continue
        for summary in own:
            known = IDLE if is_idle(summary) else described.get(summary.name)
            if known is not None:
                found[summary.name] = Group(
                    name=summary.name,
                    state=known.state or summary.state,
                    type=summary.type,
                    assignor=known.assignor,
                    coordinator=broker.id,
                    members=(),
                    is_mixed=known.is_mixed,
                )
    return found


def is_idle(summary: GroupSummary) -> bool:
    return summary.state is GroupState.EMPTY and summary.type is GroupType.CLASSIC


def _listed(connection: Connection) -> list[str]:
    """Return the names of the groups that a broker coordinates."""
    answer = ask(
        connection,
        ListGroupsRequest(),
        ListGroupsResponse,
        VALUE,
        version=1,
        max_bytes=MAX_LIST_BYTES,
    )
    if answer.error_code:
        raise broker_failure(answer.error_code, VALUE)
    return [group.group_id for group in answer.groups]


def _describe(connection: Connection, summaries: Sequence[GroupSummary]) -> dict[str, Description]:
    """Return a broker's descriptions of groups that it coordinates."""
    found: dict[str, Description] = {}
    for kind, describe in DESCRIBES.items():
        names = [one.name for one in summaries if one.type is kind and not is_idle(one)]
        for start in range(0, len(names), AT_ONCE):
            try:
                found |= describe(connection, names[start : start + AT_ONCE])
            except KafkaFailure:
                # A group is too large, or the broker stops: the library asks for these groups.
                continue
    return found


def _describe_classics(connection: Connection, names: Sequence[str]) -> dict[str, Description]:
    answer = ask(
        connection,
        DescribeGroupsRequest(groups=list(names)),
        DescribeGroupsResponse,
        VALUE,
        version=1,
        max_bytes=MAX_PIECE_BYTES,
    )
    return {
        group.group_id: Description(
            assignor=group.protocol_data, state=STATES.get(group.group_state)
        )
        for group in answer.groups
        if not group.error_code and group.group_state != DEAD
    }


def _describe_consumers(connection: Connection, names: Sequence[str]) -> dict[str, Description]:
    answer = ask(
        connection,
        ConsumerGroupDescribeRequest(group_ids=list(names)),
        ConsumerGroupDescribeResponse,
        VALUE,
        version=1,
        max_bytes=MAX_PIECE_BYTES,
    )
    return {
        group.group_id: Description(
            assignor=group.assignor_name,
            state=STATES.get(group.group_state),
            is_mixed=any(member.member_type == CLASSIC_MEMBER for member in group.members),
        )
        for group in answer.groups
        if not group.error_code
    }


DESCRIBES: Final[Mapping[GroupType, Describe]] = {
    GroupType.CLASSIC: _describe_classics,
    GroupType.CONSUMER: _describe_consumers,
}
