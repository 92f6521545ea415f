"""A group that changes its protocol in the middle of something, or whose members differ."""

from brokers.coordination.shard import PARKED
from brokers.protocol.errors import ErrorCode
from tests.builders import mixed_groups as mixed
from tests.builders.mixed_groups import cluster, desk_of, subscription
from tests.fakes.group_desk import GroupDesk


def test_member_without_the_last_protocol_does_not_prevent_a_downgrade() -> None:
    desk = desk_of(cluster(orders=4))
    both = {name: subscription(["orders"]) for name in ("range", "sticky")}
    assert mixed.join(desk, instance_id="i", protocols=both) is PARKED
    desk.pass_time(0)
    first = mixed.classic_group(desk)
    assert first.leader is not None
    mixed.sync(desk, first.leader, first.generation, instance_id="i")
    late = {"sticky": subscription(["orders"])}
    assert mixed.join(desk, instance_id="j", protocols=late) is PARKED
    assert mixed.classic_group(desk).protocol == "range"

    mixed.enter(desk, "new")

    assert len(mixed.modern_group(desk).members) == 3
    desk.check()


def test_static_member_that_ends_a_rebalance_by_its_protocol_triggers_an_assignment() -> None:
    desk = desk_of(cluster(orders=4))
    for instance_id in ("i", "j"):
        assert mixed.join(desk, instance_id=instance_id) is PARKED
    other = mixed.classic_group(desk).static_ids["j"]

    answer = mixed.enter(desk, "new", instance_id="i")
    joined = mixed.join(desk, other, instance_id="j")
    given = mixed.assigned(mixed.sync(desk, other, joined.generation_id, instance_id="j"))

    shares = [len(t.partitions) for t in answer.assignment.topic_partitions]
    assert (shares, len(given["orders"])) == ([2], 2)
    assert mixed.modern_group(desk).epoch == 2
    desk.check()


def test_partitions_that_came_before_an_upgrade_are_assigned_by_it() -> None:
    desk = desk_of(cluster(orders=4))
    mixed.settle(desk, {"a": {"orders": [0, 1, 2]}}, instances={"a": "i"})

    answer = mixed.enter(desk, "new", instance_id="i")

    assert [sorted(t.partitions) for t in answer.assignment.topic_partitions] == [[0, 1, 2, 3]]
    desk.check()


def test_the_last_member_goes_also_where_the_change_fits_into_no_batch() -> None:
    desk = desk_of(cluster(orders=4))
    mixed.enter(desk, "old", instance_id="i")
    # What stands behind the known fields is left alone.
    large = {"range": subscription(["orders"]) + bytes(400_000)}
    ids = [mixed.join(desk, version=3, protocols=large).member_id for _ in range(3)]

    back = mixed.join(desk, instance_id="i", protocols=large)
    assert mixed.code(back) is ErrorCode.NONE
    mixed.enter(desk, "other")
    before = len(desk.records)
    left = mixed.beat(desk, "other", -1)

    assert mixed.code(left) is ErrorCode.NONE
    assert set(mixed.modern_group(desk).members) == {*ids, back.member_id}
    assert sum(len(record.value or b"") for record in desk.records[before:]) < 1_000_000
    told = mixed.heartbeat(desk, ids[0], mixed.member_of(desk, ids[0]).epoch)
    assert told is ErrorCode.REBALANCE_IN_PROGRESS, "what it had is for the others"
    desk.check()


def with_other_tastes() -> tuple[GroupDesk, str, dict[str, bytes]]:
    """Three classic members beside a static one; what all of them but one like best is range."""
    desk = desk_of(cluster(orders=6))
    ways = {name: subscription(["orders"]) for name in ("range", "sticky")}
    mixed.enter(desk, "old", instance_id="i")
    ids = [mixed.join(desk, version=3, protocols=ways).member_id for _ in range(3)]
    for known in ids[1:]:
        mixed.join(desk, known, protocols=ways)
    return desk, ids[0], dict(reversed(ways.items()))


def test_member_that_causes_a_downgrade_syncs_by_the_new_protocol() -> None:
    desk, _other, ways = with_other_tastes()

    answer = mixed.join(desk, instance_id="i", protocols=ways)

    assert answer.protocol_name == mixed.classic_group(desk).protocol == "range"
    desk.check()


def test_member_with_another_protocol_before_a_downgrade_joins_again() -> None:
    desk, member_id, ways = with_other_tastes()
    joined = mixed.join(desk, member_id, protocols=ways)
    assert joined.protocol_name == "sticky"

    mixed.beat(desk, "old", -1, instance_id="i")

    group = mixed.classic_group(desk)
    assert (group.protocol, group.generation) == ("range", joined.generation_id)
    given = mixed.sync(desk, member_id, joined.generation_id, protocol_name="sticky")
    assert mixed.code(given) is ErrorCode.REBALANCE_IN_PROGRESS
