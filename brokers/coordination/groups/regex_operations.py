"""Applies a job's matches of a consumer group's expressions."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from brokers.coordination.groups.modern import ConsumerGroup
from brokers.coordination.groups.modern_heartbeat import regexes_resolved
from brokers.coordination.shard import Claim, Operation, Outcome, Ticket

if TYPE_CHECKING:
    from brokers.coordination.groups.shard import GroupShard


def resolved(
    group_id: str, found: Mapping[str, frozenset[str]], version: int
) -> "Operation[GroupShard]":
    """Make the operation; `version` is that of the cluster whose topics were matched."""

    def run(shard: "GroupShard", now_ms: int, _ticket: Ticket) -> "Outcome[GroupShard]":
        group = shard.group(group_id)
        known = group if isinstance(group, ConsumerGroup) else None
        return regexes_resolved(known, dict(found), version, shard.place(), now_ms)

    return Operation(
        name="the topics of a group's expressions",
        subject=group_id,
        claim=Claim.EXCLUSIVE,
        run=run,
    )
