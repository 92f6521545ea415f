"""What members of consumer groups ask for, as operations of a shard.

A heartbeat of a member that has nothing to say and nothing to learn claims nothing, and is answered
in the turn in which it came.
"""

from brokers.coordination.groups import modern_heartbeat, modern_leave
from brokers.coordination.groups.changes import GroupBecame
from brokers.coordination.groups.classic import ClassicGroup
from brokers.coordination.groups.modern import JOINS, ConsumerGroup
from brokers.coordination.groups.modern_leave import no_group
from brokers.coordination.groups.offset_expiry import group_gone, is_idle, timers_gone
from brokers.coordination.groups.shard import GroupShard
from brokers.coordination.groups.values import Who
from brokers.coordination.shard import Claim, Operation, Outcome, Ticket
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def heartbeat(request: ConsumerGroupHeartbeatRequest, who: Who) -> Operation[GroupShard]:
    """A request that was checked; its member has an id."""
    name, group_id = "ConsumerGroupHeartbeat", request.group_id

    def steady(shard: GroupShard, now_ms: int, _ticket: Ticket) -> Outcome[GroupShard] | None:
        group = shard.group(group_id)
        if not isinstance(group, ConsumerGroup):
            return None
        outcome: Outcome[GroupShard] | None = modern_heartbeat.steady(
            group, request, who, shard.place(), now_ms
        )
        return outcome

    def run(shard: GroupShard, now_ms: int, _ticket: Ticket) -> Outcome[GroupShard]:
        return _moved(shard, request, who, now_ms)

    return Operation(
        name=name,
        subject=group_id,
        claim=Claim.NONE,
        run=steady,
        otherwise=Operation(name=name, subject=group_id, claim=Claim.EXCLUSIVE, run=run),
    )


def _moved(
    shard: GroupShard, request: ConsumerGroupHeartbeatRequest, who: Who, now_ms: int
) -> Outcome[GroupShard]:
    group = shard.group(request.group_id)
    old: ClassicGroup | None = None
    if isinstance(group, ClassicGroup):
        if request.member_epoch != JOINS:
            raise no_group(request.group_id)
        if group.members or not is_idle(group):
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"group {group.group_id!r} has members of the classic protocol: they have to leave "
                "before others come with the consumer protocol",
            )
        old, group = group, None
    if request.member_epoch < JOINS:
        left: Outcome[GroupShard] = modern_leave.leave(group, request, shard.place())
        return left
    outcome: Outcome[GroupShard] = modern_heartbeat.heartbeat(
        group, request, who, shard.place(), now_ms
    )
    if old is None:
        return outcome
    assert any(isinstance(soft, GroupBecame) for soft in outcome.soft), "a join makes a group"
    return Outcome(
        records=group_gone(old) + outcome.records,
        soft=outcome.soft,
        timers=(*timers_gone(old), *outcome.timers),
        response=outcome.response,
        jobs=outcome.jobs,
    )
