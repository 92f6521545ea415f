"""What the feed tells of members: who is in a group, and which partitions each one owns."""

import asyncio
from typing import Any

import pytest

from brokers.server import member_feed
from tests.brokers.server.test_group_feed import Watcher, run
from tests.builders.mixed_groups import GROUP, classic_group, join, settle
from tests.builders.shards import desk, heartbeat


def owned_by(members: Any) -> dict[str, Any]:
    return {row[1]: row[5] for row in members}


def test_members_of_both_protocols_are_told_with_what_they_own() -> None:
    async def story() -> None:
        modern, classic = desk(orders=3), desk(orders=3)
        heartbeat(modern, "modern", "m")
        ids = settle(classic, {"a": {"orders": [2, 0]}, "b": {"orders": [1]}})
        watcher = Watcher(modern, classic)
        await watcher.sample()

        told = watcher.snapshot()["members"]

        assert told[0][:2] == ["modern", "m"]
        assert told[0][2:] == [None, "client", "/127.0.0.1", [["orders", [0, 1, 2]]]]
        assert {row[0] for row in told[1:]} == {GROUP}
        assert owned_by(told)[ids["a"]] == [["orders", [0, 2]]]
        assert owned_by(told)[ids["b"]] == [["orders", [1]]]

    run(story)


def test_a_step_has_the_members_that_differ_and_those_that_are_gone() -> None:
    async def story() -> None:
        here = desk(orders=2)
        heartbeat(here, "readers", "m")
        watcher = Watcher(here)
        await watcher.sample()

        assert (await watcher.changes()).members.members == ()
        heartbeat(here, "others", "n")
        came = (await watcher.changes()).members
        heartbeat(here, "readers", "m", -1)
        left = (await watcher.changes()).members

        assert [row[:2] for row in came.members] == [("others", "n")]
        assert came.gone_members == ()
        assert left.members == ()
        assert left.gone_members == (("readers", "m"),)
        assert [row[1] for row in watcher.snapshot()["members"]] == ["n"]

    run(story)


def test_a_member_that_comes_and_goes_between_two_samples_leaves_nothing_behind() -> None:
    async def story() -> None:
        here = desk(orders=2)
        watcher = Watcher(here)
        await watcher.sample()
        heartbeat(here, "readers", "m")
        heartbeat(here, "readers", "m", -1)

        changes = (await watcher.changes()).members

        assert changes.members == ()
        assert watcher.snapshot()["members"] == []

    run(story)


def test_members_go_with_the_shard_of_their_group_and_come_back_with_another() -> None:
    async def story() -> None:
        first, second = desk(orders=2), desk(orders=2)
        for one in (first, second):
            heartbeat(one, "readers", "m")
        watcher = Watcher(first)
        await watcher.sample()

        watcher.desks = {1: second}
        moved = (await watcher.changes()).members
        watcher.desks = {}
        gone = (await watcher.changes()).members

        assert moved.gone_members == ()
        assert gone.gone_members == (("readers", "m"),)

    run(story)


def test_a_sample_that_its_asker_leaves_is_followed_by_one_with_all_members() -> None:
    async def story() -> None:
        here = desk(orders=1)
        for number in range(3):
            heartbeat(here, f"g{number}", "m")
        watcher = Watcher(here)
        await watcher.sample()
        heartbeat(here, "g3", "m")

        class Leaving:
            async def breathe(self) -> None:
                raise asyncio.CancelledError

        with pytest.raises(asyncio.CancelledError):
            await watcher.feed.sample(Leaving())  # type: ignore[arg-type]

        assert await watcher.sample() is None
        told = watcher.snapshot()["members"]
        assert [row[0] for row in told] == ["g0", "g1", "g2", "g3"]

    run(story)


def test_an_assignment_that_is_too_long_is_not_read_and_the_page_says_that_it_is_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(member_feed, "MAX_ASSIGNMENT_BYTES", 20)

    async def story() -> None:
        here = desk(orders=9)
        ids = settle(here, {"a": {"orders": range(8)}, "b": {}})
        watcher = Watcher(here)
        await watcher.sample()

        told = watcher.snapshot()

        assert owned_by(told["members"]) == {ids["a"]: [], ids["b"]: []}
        assert told["is_cut"] is True

    run(story)


def test_more_members_than_may_be_told_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_feed, "MAX_MEMBERS", 2)

    async def story() -> None:
        here = desk(orders=1)
        for number in range(4):
            heartbeat(here, f"g{number}", "m")
        watcher = Watcher(here)
        await watcher.sample()

        told = watcher.snapshot()

        assert len(told["members"]) == 2
        assert told["is_cut"] is True

    run(story)


def test_a_group_that_prepares_its_rebalance_has_its_newcomers_without_partitions() -> None:
    async def story() -> None:
        here = desk(orders=1)
        ids = settle(here, {"a": {"orders": [0]}})
        watcher = Watcher(here)
        await watcher.sample()
        newcomer = join(here).member_id
        join(here, newcomer)
        assert newcomer in classic_group(here).members

        (row,) = (await watcher.changes()).members.members

        assert row[1] == newcomer
        assert row[5] == ()
        assert owned_by(watcher.snapshot()["members"])[ids["a"]] == [["orders", [0]]]

    run(story)
