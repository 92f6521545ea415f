"""What members of classic groups ask for, as operations of a shard.

Finds the group that a request is about and hands it on. A group of the consumer protocol without
members gives way to a classic one; members of both protocols in one group are refused for now.
"""

from collections.abc import Sequence

from brokers.coordination.groups import classic_join, classic_leave, classic_sync
from brokers.coordination.groups.classic import ClassicGroup, join_refused, sync_refused
from brokers.coordination.groups.classic_join import Joining, member_id_of
from brokers.coordination.groups.modern import ConsumerGroup
from brokers.coordination.groups.offset_expiry import group_gone
from brokers.coordination.groups.shard import GroupShard
from brokers.coordination.groups.values import Who
from brokers.coordination.shard import Claim, Operation, Outcome, Ticket
from brokers.protocol.errors import ErrorCode
from brokers.protocol.messages.heartbeat import HeartbeatRequest
from brokers.protocol.messages.join_group import JoinGroupRequest
from brokers.protocol.messages.leave_group import MemberIdentity
from brokers.protocol.messages.sync_group import SyncGroupRequest


def join(request: JoinGroupRequest, version: int, who: Who) -> Operation[GroupShard]:
    def run(shard: GroupShard, now_ms: int, ticket: Ticket) -> Outcome[GroupShard]:
        group = shard.group(request.group_id)
        old: ConsumerGroup | None = None
        if isinstance(group, ConsumerGroup):
            if group.members:
                error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
                return Outcome(response=join_refused(error, request.member_id))
            old, group = group, None
        joining = Joining(
            request=request,
            version=version,
            who=who,
            ticket=ticket,
            new_id=lambda: member_id_of(request, who, shard.new_id()),
        )
        outcome: Outcome[GroupShard] = classic_join.join(
            group, joining, settings=shard.settings, now_ms=now_ms
        )
        if old is None or not outcome.soft:
            return outcome
        return Outcome(
            records=group_gone(old) + outcome.records,
            soft=outcome.soft,
            timers=outcome.timers,
            response=outcome.response,
            replies=outcome.replies,
        )

    return Operation(name="JoinGroup", subject=request.group_id, claim=Claim.EXCLUSIVE, run=run)


def sync(request: SyncGroupRequest) -> Operation[GroupShard]:
    def run(shard: GroupShard, now_ms: int, ticket: Ticket) -> Outcome[GroupShard]:
        group = shard.group(request.group_id)
        if isinstance(group, ConsumerGroup):
            return Outcome(response=sync_refused(ErrorCode.UNKNOWN_MEMBER_ID))
        outcome: Outcome[GroupShard] = classic_sync.sync(
            group, request, ticket=ticket, settings=shard.settings, now_ms=now_ms
        )
        return outcome

    return Operation(name="SyncGroup", subject=request.group_id, claim=Claim.EXCLUSIVE, run=run)


def heartbeat(request: HeartbeatRequest) -> Operation[GroupShard]:
    def run(shard: GroupShard, _now_ms: int, _ticket: Ticket) -> Outcome[GroupShard]:
        outcome: Outcome[GroupShard] = classic_sync.heartbeat(
            _classic(shard, request.group_id), request
        )
        return outcome

    return Operation(name="Heartbeat", subject=request.group_id, claim=Claim.NONE, run=run)


def leave(group_id: str, identities: Sequence[MemberIdentity]) -> Operation[GroupShard]:
    def run(shard: GroupShard, now_ms: int, _ticket: Ticket) -> Outcome[GroupShard]:
        outcome: Outcome[GroupShard] = classic_leave.leave(
            _classic(shard, group_id), identities, settings=shard.settings, now_ms=now_ms
        )
        return outcome

    return Operation(name="LeaveGroup", subject=group_id, claim=Claim.EXCLUSIVE, run=run)


def _classic(shard: GroupShard, group_id: str) -> ClassicGroup | None:
    """To members of a classic group one of the other protocol is none."""
    group = shard.group(group_id)
    return group if isinstance(group, ClassicGroup) else None
