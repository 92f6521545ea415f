"""What it costs the loop that a group of a thousand members changes its protocol."""

import gc
from collections.abc import Callable
from time import process_time

import pytest

from brokers.coordination.groups import classic_operations, modern_operations
from brokers.coordination.groups.shard import GroupShard
from brokers.coordination.shard import Outcome
from brokers.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from brokers.protocol.messages.leave_group import MemberIdentity
from tests.builders import mixed_groups as mixed
from tests.builders.mixed_groups import GROUP, cluster, desk_of
from tests.fakes.group_desk import GroupDesk

MEMBERS = 1_000
PARTITIONS = 3_000
# Of CPU on the machine that the figures were made for; the test grants twice as much.
ONE_STEP_MS = 50
PUT_OUT_MS = 35
ROOM = 2
TRIES = 3
ONE_BATCH_BYTES = 1_048_588

pytestmark = [pytest.mark.alone, pytest.mark.slow]


def beaten(desk: GroupDesk, epoch: int) -> tuple[Outcome[GroupShard], float]:
    """What a heartbeat of "new" would do, and the milliseconds that took."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="new",
        member_epoch=epoch,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    operation = modern_operations.heartbeat(request, mixed.WHO).otherwise
    assert operation is not None
    # It changes nothing, so the best of some is what it costs; the others collected garbage.
    spent_ms = []
    for _ in range(TRIES):
        before = process_time()
        found = operation.run(desk.shard, desk.clock.now_ms(), 1)
        spent_ms.append((process_time() - before) * 1_000)
    assert found is not None
    return found, min(spent_ms)


def stable_desk() -> GroupDesk:
    desk = desk_of(cluster(orders=PARTITIONS))
    each = PARTITIONS // MEMBERS
    shares = {f"m{n}": {"orders": list(range(n * each, (n + 1) * each))} for n in range(MEMBERS)}
    mixed.settle(desk, shares)
    return desk


def test_a_thousand_members_change_their_protocol_without_a_pause(
    report: Callable[[str], None],
) -> None:
    desk = stable_desk()

    outcome, upgrade_ms = beaten(desk, 0)
    gc.collect()
    begin = process_time()
    desk.take(outcome)
    applied_ms = (process_time() - begin) * 1_000
    size = sum(len(record.key) + len(record.value or b"") for record in outcome.records)
    outcome, downgrade_ms = beaten(desk, -1)
    desk.take(outcome)

    report(
        f"{MEMBERS} members of {PARTITIONS} partitions: upgrade {upgrade_ms:.1f} ms and "
        f"{applied_ms:.1f} to apply, {size} bytes; downgrade {downgrade_ms:.1f} ms"
    )
    assert len(mixed.classic_group(desk).members) == MEMBERS
    assert size < ONE_BATCH_BYTES
    assert max(upgrade_ms, applied_ms, downgrade_ms) <= ONE_STEP_MS * ROOM


def test_a_thousand_members_are_put_out_together_without_a_pause(
    report: Callable[[str], None],
) -> None:
    desk = stable_desk()
    outcome, _ms = beaten(desk, 0)
    desk.take(outcome)
    group = mixed.modern_group(desk)
    leaving = [MemberIdentity(member_id=known) for known in group.members if known != "new"]
    operation = classic_operations.leave(GROUP, leaving)

    before = process_time()
    left = operation.run(desk.shard, desk.clock.now_ms(), 1)
    spent_ms = (process_time() - before) * 1_000

    report(f"{len(leaving)} members of a consumer group are put out together: {spent_ms:.1f} ms")
    assert left is not None
    assert len(left.records) > 3 * MEMBERS
    assert spent_ms <= PUT_OUT_MS * ROOM
