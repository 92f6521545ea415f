"""Turns requests of members of classic groups into operations of a shard.

Finds the group of a request and passes the request on. A classic group replaces a group of the
consumer protocol without members; one with members accepts classic members.
"""

from collections.abc import Sequence

from brokers.coordination.groups import classic_join, classic_leave, classic_sync, modern_classic
from brokers.coordination.groups.classic_join import Joining, member_id_of
from brokers.coordination.groups.modern import ConsumerGroup
from brokers.coordination.groups.offset_expiry import group_gone
from brokers.coordination.groups.shard import GroupShard
from brokers.coordination.groups.values import Who
from brokers.coordination.shard import Claim, Operation, Outcome, Ticket
from brokers.protocol.messages.heartbeat import HeartbeatRequest
from brokers.protocol.messages.join_group import JoinGroupRequest
from brokers.protocol.messages.leave_group import MemberIdentity
from brokers.protocol.messages.sync_group import SyncGroupRequest


def join(request: JoinGroupRequest, version: int, who: Who) -> Operation[GroupShard]:
    def run(shard: GroupShard, now_ms: int, ticket: Ticket) -> Outcome[GroupShard]:
        group = shard.group(request.group_id)
        old: ConsumerGroup | None = None
        joining = Joining(
            request=request,
            version=version,
            who=who,
            ticket=ticket,
            new_id=lambda: member_id_of(request, who, shard.new_id()),
        )
        if isinstance(group, ConsumerGroup):
            if group.members:
                mixed: Outcome[GroupShard] = modern_classic.join(
                    group, joining, shard.place(), now_ms
                )
                return mixed
            old, group = group, None
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
            mixed: Outcome[GroupShard] = modern_classic.sync(group, request, shard.place(), now_ms)
            return mixed
        outcome: Outcome[GroupShard] = classic_sync.sync(
            group, request, ticket=ticket, settings=shard.settings, now_ms=now_ms
        )
        return outcome

    return Operation(name="SyncGroup", subject=request.group_id, claim=Claim.EXCLUSIVE, run=run)


def heartbeat(request: HeartbeatRequest) -> Operation[GroupShard]:
    def run(shard: GroupShard, now_ms: int, _ticket: Ticket) -> Outcome[GroupShard]:
        group = shard.group(request.group_id)
        if isinstance(group, ConsumerGroup):
            mixed: Outcome[GroupShard] = modern_classic.heartbeat(
                group, request, shard.place(), now_ms
            )
            return mixed
        outcome: Outcome[GroupShard] = classic_sync.heartbeat(group, request)
        return outcome

    return Operation(name="Heartbeat", subject=request.group_id, claim=Claim.NONE, run=run)


def leave(group_id: str, identities: Sequence[MemberIdentity]) -> Operation[GroupShard]:
    def run(shard: GroupShard, now_ms: int, _ticket: Ticket) -> Outcome[GroupShard]:
        group = shard.group(group_id)
        if isinstance(group, ConsumerGroup):
            mixed: Outcome[GroupShard] = modern_classic.leave(
                group, identities, shard.place(), now_ms
            )
            return mixed
        outcome: Outcome[GroupShard] = classic_leave.leave(
            group, identities, settings=shard.settings, now_ms=now_ms
        )
        return outcome

    return Operation(name="LeaveGroup", subject=group_id, claim=Claim.EXCLUSIVE, run=run)
