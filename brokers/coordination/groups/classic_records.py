"""Converts a classic group to its record and back.

Knows the meaning of the fields, but not their bytes. Only a group that is stable or empty is
written, so a group that is read is one of these.
"""

from brokers.coordination.groups.classic import ClassicGroup, ClassicMember, Way, counted
from brokers.coordination.groups.record_messages import GroupMetadataMember, GroupMetadataValue
from brokers.coordination.groups.records import GroupKey, record_of
from brokers.coordination.groups.states import ClassicState
from brokers.coordination.shard import Record


def written(group: ClassicGroup) -> Record:
    """Return the record of a group."""
    members = [
        GroupMetadataMember(
            member_id=member_id,
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            session_timeout_ms=member.session_timeout_ms,
            subscription=member.metadata(group.protocol),
            assignment=group.assignments.get(member_id, b""),
        )
        for member_id, member in group.members.items()
    ]
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_ms=group.since_ms,
        members=members,
    )
    return record_of(GroupKey(group.group_id), value)


def restored(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """Return the group of a record, which has only the selected protocol of each member."""
    members = {member.member_id: _member(member, value.protocol) for member in value.members}
    return ClassicGroup(
        group_id=group_id,
        state=ClassicState.STABLE if members else ClassicState.EMPTY,
        since_ms=value.current_state_ms,
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol=value.protocol,
        # A record of another implementation may name a leader that it does not list.
        leader=value.leader if value.leader in members else next(iter(members), None),
        members=members,
        static_ids={
            member.instance_id: member_id
            for member_id, member in members.items()
            if member.instance_id is not None
        },
        supporters=counted({}, gone=(), come=members.values()),
        assignments={member.member_id: bytes(member.assignment) for member in value.members},
    )


def _member(member: GroupMetadataMember, protocol: str | None) -> ClassicMember:
    # Records before version 1 have one timeout for both.
    rebalance_ms = member.rebalance_timeout_ms
    return ClassicMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=rebalance_ms if rebalance_ms > 0 else member.session_timeout_ms,
        ways=(Way(protocol or "", bytes(member.subscription)),),
    )
