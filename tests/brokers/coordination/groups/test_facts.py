"""What a shard notes for those who watch it, and what it counts for all."""

import pytest

from brokers.coordination.groups import classic_operations
from brokers.coordination.groups.facts import Changed, Facts, Tally
from brokers.coordination.groups.shard import GroupShard
from brokers.protocol.messages.leave_group import MemberIdentity
from tests.brokers.coordination.groups.test_shard import GROUP, settle
from tests.builders.shards import committed, deleted, desk, forgotten, heartbeat
from tests.fakes.group_desk import GroupDesk

LIMIT = 100


@pytest.fixture
def at() -> GroupDesk:
    return desk(orders=2)


def noted(shard: GroupShard, limit: int = LIMIT) -> Changed:
    changed = shard.facts.take(limit)
    assert changed is not None
    return changed


def test_changes_are_not_noted_before_the_first_watcher(at: GroupDesk) -> None:
    committed(at, "g")

    assert at.shard.facts.take(LIMIT) is None
    assert list(noted(at.shard).commits) == []


def test_each_place_is_noted_once_however_often_it_is_committed(at: GroupDesk) -> None:
    at.shard.facts.watch(LIMIT)

    for offset in range(5):
        committed(at, "g", "orders", 1, offset=offset)
    committed(at, "h")

    changed = noted(at.shard)
    assert list(changed.commits) == [("g", ("orders", 1)), ("h", ("orders", 0))]
    assert list(changed.groups) == []
    assert list(noted(at.shard).commits) == []


def test_deletion_is_noted_like_a_change(at: GroupDesk) -> None:
    committed(at, "g")
    heartbeat(at, "readers", "m")
    heartbeat(at, "readers", "m", -1)
    at.shard.facts.watch(LIMIT)

    forgotten(at, "g")
    deleted(at, "readers")

    changed = noted(at.shard)
    assert list(changed.commits) == [("g", ("orders", 0))]
    assert list(changed.groups) == ["readers"]


def test_a_group_is_noted_when_its_members_change(at: GroupDesk) -> None:
    at.shard.facts.watch(LIMIT)
    heartbeat(at, "readers", "m")

    assert list(noted(at.shard).groups) == ["readers"]
    heartbeat(at, "readers", "m", 1)
    assert list(noted(at.shard).groups) == []


def test_beyond_the_limit_nothing_is_known_until_the_next_look(at: GroupDesk) -> None:
    at.shard.facts.watch(2)

    for index in range(3):
        committed(at, f"g{index}")

    assert at.shard.facts.take(2) is None
    committed(at, "g0")
    assert list(noted(at.shard).commits) == [("g0", ("orders", 0))]


def test_too_many_groups_are_too_much_as_well() -> None:
    facts = Facts()
    facts.watch(1)

    facts.group_changed("a")
    facts.group_changed("b")

    assert facts.take(1) is None


def test_changes_are_not_noted_after_the_last_watcher(at: GroupDesk) -> None:
    at.shard.facts.watch(LIMIT)
    at.shard.facts.unwatch()
    committed(at, "g")

    assert at.shard.facts.take(LIMIT) is None


def test_commits_and_rebalances_are_counted_once_the_shard_is_loaded(at: GroupDesk) -> None:
    tally = Tally()
    committed(at, "g")
    heartbeat(at, "readers", "before")
    at.shard.facts.count(tally)

    committed(at, "g")
    forgotten(at, "g")
    heartbeat(at, "readers", "m")
    heartbeat(at, "readers", "m", 2)

    assert (tally.commits, tally.rebalances) == (1, 1)
    assert at.shard.facts.rebalances == {"readers": 1}


def test_a_generation_of_a_classic_group_is_a_rebalance(at: GroupDesk) -> None:
    tally = Tally()
    at.shard.facts.count(tally)

    member_id = settle(at)

    assert tally.rebalances == 1
    at.ask(classic_operations.leave(GROUP, [MemberIdentity(member_id=member_id)]))
    assert tally.rebalances == 1


def test_the_rebalances_of_a_group_go_with_it(at: GroupDesk) -> None:
    tally = Tally()
    at.shard.facts.count(tally)
    heartbeat(at, "readers", "m")
    heartbeat(at, "readers", "m", -1)

    deleted(at, "readers")

    assert at.shard.facts.rebalances == {}
    assert tally.rebalances == 1
