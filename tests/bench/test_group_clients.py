"""Members of the bench are members: they settle, commit, and fail where the broker says no."""

from pathlib import Path
from typing import Any

import pytest

from bench.group_clients import Job, Seen, done
from bench.group_scripts import Membership, classic_member, play
from brokers.coordination.groups.classic import ClassicGroup
from brokers.coordination.groups.modern import ConsumerGroup, GroupState
from tests.fakes.broker_thread import BesideBroker, broker_beside

pytestmark = pytest.mark.slow

TOPIC = "read"
SOON = {"group.initial.rebalance.delay.ms": "50"}


def seen(beside: BesideBroker, **job: Any) -> Seen:
    running = beside.running
    return done(Job(host=running.host, port=running.port, pid=None, topic=TOPIC, **job))


def groups(beside: BesideBroker) -> dict[str, ClassicGroup | ConsumerGroup]:
    shards = [shard for _index, shard in beside.running.context.groups.shards()]
    found = [group for shard in shards for group in shard.groups()]
    return {g.id if isinstance(g, ConsumerGroup) else g.group_id: g for g in found}


def test_members_of_a_classic_group_settle_and_again_when_one_comes(tmp_path: Path) -> None:
    with broker_beside(tmp_path, topics={TOPIC: 4}, defaults=SOON) as beside:
        joined = seen(beside, kind="join", members=5, name="classic")
        again = seen(beside, kind="rejoin", members=5, name="again")

        assert 0 < joined.settled_seconds < joined.seconds
        assert 0 < again.settled_seconds < again.seconds
        assert len(groups(beside)["classic"].members) == 5
        assert len(groups(beside)["again"].members) == 6


def test_members_of_a_consumer_group_have_all_partitions_among_them(tmp_path: Path) -> None:
    with broker_beside(tmp_path, topics={TOPIC: 4}) as beside:
        joined = seen(beside, kind="consumer_join", members=5, name="new")

        group = groups(beside)["new"]
        assert joined.seconds > 0
        assert isinstance(group, ConsumerGroup)
        assert group.state is GroupState.STABLE
        assert sum(map(len, group.owners.values())) == 4


@pytest.mark.parametrize("kind", ["heartbeat", "consumer_heartbeat", "commit"])
@pytest.mark.parametrize("count", [1, 4])
def test_steady_members_are_answered_as_they_should_be(
    tmp_path: Path, kind: str, count: int
) -> None:
    with broker_beside(tmp_path, topics={TOPIC: 4}, defaults=SOON) as beside:
        found = seen(beside, kind=kind, members=4, groups=count, seconds=0.2)

        shards = [shard for _index, shard in beside.running.context.groups.shards()]
        # Each member once at least: how many more a machine answers is no matter of this test.
        assert found.requests >= 4
        assert found.p50_us <= found.p99_us
        assert len(groups(beside)) == count
        assert sum(len(shard.offsets) for shard in shards) == (count if kind == "commit" else 0)


@pytest.mark.parametrize("is_consumer", [False, True])
def test_idle_groups_have_a_member_and_an_offset_each(tmp_path: Path, is_consumer: bool) -> None:
    defaults = {"group.initial.rebalance.delay.ms": "0"}
    with broker_beside(tmp_path, topics={TOPIC: 1}, defaults=defaults) as beside:
        seen(beside, kind="idle", members=3, groups=10, is_consumer=is_consumer)

        found = groups(beside)
        shards = [shard for _index, shard in beside.running.context.groups.shards()]
        assert len(found) == 10
        assert {len(group.members) for group in found.values()} == {1}
        assert sum(len(shard.offsets) for shard in shards) == 10


def test_a_refusal_is_a_failure(tmp_path: Path) -> None:
    with broker_beside(tmp_path, topics={TOPIC: 1}) as beside:
        address = (beside.running.host, beside.running.port)
        nobody = Membership(group="", member_id="nobody")

        with pytest.raises(AssertionError, match="JoinGroup was answered with"):
            play(address, [classic_member(nobody, TOPIC)])
