"""Reads the state of a group at one moment: its existence, members and committed offsets."""

from collections.abc import Mapping
from dataclasses import dataclass

from gateway.kafka.errors import KafkaFailure, Kind
from gateway.kafka.groups import Groups
from gateway.kafka.values import GroupState, Member, Place


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """A group's state. A missing group is DEAD, in the brokers' words, without offsets."""

    name: str
    state: GroupState
    members: tuple[Member, ...]
    committed: Mapping[Place, int]

    @property
    def is_there(self) -> bool:
        return self.state is not GroupState.DEAD

    @property
    def has_members(self) -> bool:
        return bool(self.members) or self.state not in {GroupState.EMPTY, GroupState.DEAD}

    def reads(self, topic: str) -> bool:
        """Tell whether a member has, or is about to get, a partition of a topic."""
        return any(
            place.topic == topic
            for member in self.members
            for place in (*member.assignment, *(member.target or ()))
        )

    def in_words(self) -> str:
        if not self.is_there:
            return "does not exist"
        count = len(self.members)
        members = "no members" if not count else f"{count} member{'' if count == 1 else 's'}"
        return f"is {self.state.value} with {members}"


def view_of(groups: Groups, name: str) -> GroupView:
    """Return the present state of a group; one without offsets and members may not exist."""
    committed = groups.offsets([name])[name]
    try:
        [group] = groups.describe([name])
    except KafkaFailure as failed:
        if failed.kind is not Kind.NOT_FOUND:
            raise
        return GroupView(name=name, state=GroupState.DEAD, members=(), committed=committed)
    return GroupView(name=name, state=group.state, members=group.members, committed=committed)
