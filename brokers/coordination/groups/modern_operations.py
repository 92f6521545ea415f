"""Turns requests of consumer group members into operations of a shard.

A heartbeat without changes on either side claims nothing, and is answered in the turn in which it
came. A join of a classic group converts it to the consumer protocol.
"""

from dataclasses import replace

from brokers.coordination.groups import modern_heartbeat, modern_leave
from brokers.coordination.groups.changes import GroupBecame
from brokers.coordination.groups.classic import ClassicGroup
from brokers.coordination.groups.migration import upgraded
from brokers.coordination.groups.modern import JOINS, ConsumerGroup
from brokers.coordination.groups.modern_desk import Place
from brokers.coordination.groups.modern_leave import no_group
from brokers.coordination.groups.offset_expiry import group_gone, timers_gone
from brokers.coordination.groups.shard import GroupShard
from brokers.coordination.groups.values import Who
from brokers.coordination.shard import Claim, Operation, Outcome, Ticket
from brokers.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def heartbeat(request: ConsumerGroupHeartbeatRequest, who: Who) -> Operation[GroupShard]:
    """Make the operation of a validated heartbeat; its member has an id."""
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
        otherwise=Operation(
            name=name,
            subject=group_id,
            claim=Claim.EXCLUSIVE,
            run=run,
            heard=lambda shard: modern_heartbeat.heard(
                shard.group(group_id), request, shard.place()
            ),
        ),
    )


def _moved(
    shard: GroupShard, request: ConsumerGroupHeartbeatRequest, who: Who, now_ms: int
) -> Outcome[GroupShard]:
    group, place = shard.group(request.group_id), shard.place()
    before: Outcome[GroupShard] = Outcome()
    if isinstance(group, ClassicGroup):
        if request.member_epoch != JOINS:
            raise no_group(request.group_id)
        group, before = _as_modern(group, place)
    if request.member_epoch < JOINS:
        left: Outcome[GroupShard] = modern_leave.leave(group, request, place, now_ms)
        return left
    outcome: Outcome[GroupShard] = modern_heartbeat.heartbeat(group, request, who, place, now_ms)
    if not before.records:
        return outcome
    assert any(isinstance(soft, GroupBecame) for soft in outcome.soft), "a join makes a group"
    return replace(
        outcome,
        records=before.records + outcome.records,
        timers=before.timers + outcome.timers,
        replies=before.replies,
    )


def _as_modern(
    group: ClassicGroup, place: Place
) -> tuple[ConsumerGroup | None, Outcome[GroupShard]]:
    """Return the initial group of the consumer protocol that replaces a classic one.

    Issued ids without a member are not carried over: a client that comes with one joins the new
    group.
    """
    if not group.members:
        return None, Outcome(records=group_gone(group), timers=timers_gone(group))
    made, outcome = upgraded(group, place)
    return made, outcome
