"""Groups in the feed: all at first, then changes, and what was removed."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from brokers.clock import SystemClock
from brokers.server import group_feed
from brokers.server.context import Context
from brokers.server.group_feed import GroupChanges, GroupFeed
from brokers.slices import Slices
from tests.builders.shards import committed, deleted, desk, forgotten, heartbeat
from tests.fakes.group_desk import GroupDesk


class Watcher:
    """A feed over shards that a test exchanges."""

    def __init__(self, *desks: GroupDesk) -> None:
        self.desks = dict(enumerate(desks))
        self.clock = SystemClock()
        context = SimpleNamespace(
            groups=SimpleNamespace(shards=self.shards), loop=asyncio.get_running_loop()
        )
        self.feed = GroupFeed(cast("Context", context))

    def shards(self) -> list[tuple[int, Any]]:
        return [(index, desk.shard) for index, desk in self.desks.items()]

    async def sample(self) -> GroupChanges | None:
        return await self.feed.sample(Slices(self.clock))

    async def changes(self) -> GroupChanges:
        changes = await self.sample()
        assert changes is not None
        return changes

    def snapshot(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads("{" + "".join(self.feed.snapshot()) + "}")
        return told


def run(story: Callable[[], Any]) -> None:
    async def whole() -> None:
        await story()

    asyncio.run(whole())


def test_a_snapshot_holds_groups_of_all_kinds_and_what_they_have_committed() -> None:
    async def story() -> None:
        first, second = desk(orders=2), desk(orders=2)
        heartbeat(first, "readers", "m")
        committed(first, "readers", "orders", 1, offset=12)
        committed(second, "simple")
        watcher = Watcher(first, second)
        await watcher.sample()

        told = watcher.snapshot()

        assert told["groups"] == [
            ["readers", "consumer", "Stable", 2, 1, 0],
            ["simple", "classic", "Empty", 0, 0, 0],
        ]
        now_ms = first.clock.now_ms()
        assert told["commits"] == [
            ["readers", "orders", 1, 12, 1, now_ms],
            ["simple", "orders", 0, 7, 1, now_ms],
        ]
        assert told["is_cut"] is False

    run(story)


def test_a_sample_has_only_what_has_changed_since_the_one_before() -> None:
    async def story() -> None:
        at = desk(orders=2)
        committed(at, "old")
        watcher = Watcher(at)
        await watcher.sample()

        committed(at, "new", offset=3)
        heartbeat(at, "readers", "m")
        changes = await watcher.changes()

        assert [row[:4] for row in changes.commits] == [("new", "orders", 0, 3)]
        assert sorted(row[0] for row in changes.groups) == ["new", "readers"]
        assert await watcher.changes() == GroupChanges()

    run(story)


def test_what_is_deleted_is_told_to_be_gone() -> None:
    async def story() -> None:
        at = desk(orders=2)
        committed(at, "simple")
        heartbeat(at, "readers", "m")
        heartbeat(at, "readers", "m", -1)
        watcher = Watcher(at)
        await watcher.sample()

        forgotten(at, "simple")
        changes = await watcher.changes()
        assert changes.commits_gone == (("simple", "orders", 0),)
        assert changes.groups_gone == (), "a group outlives its last offset"

        deleted(at, "simple")
        deleted(at, "readers")
        changes = await watcher.changes()

        assert sorted(changes.groups_gone) == ["readers", "simple"]
        assert (changes.groups, changes.commits) == ((), ())

    run(story)


def test_a_shard_that_leaves_takes_its_rows_along_and_one_that_comes_brings_its_own() -> None:
    async def story() -> None:
        at, other = desk(orders=2), desk(orders=2)
        committed(at, "moved")
        committed(at, "lost")
        committed(other, "moved", offset=9)
        watcher = Watcher(at)
        await watcher.sample()

        watcher.desks = {0: other}
        changes = await watcher.changes()

        assert [row[:4] for row in changes.commits] == [("moved", "orders", 0, 9)]
        assert changes.commits_gone == (("lost", "orders", 0),)
        assert changes.groups_gone == ("lost",)
        assert at.shard.facts.take(1) is None

        watcher.desks = {}
        assert (await watcher.changes()).groups_gone == ("moved",)

    run(story)


def test_too_much_change_between_two_looks_needs_a_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_feed, "MAX_FACTS", 4)

    async def story() -> None:
        at = desk(orders=2)
        watcher = Watcher(at)
        await watcher.sample()

        for number in range(5):
            committed(at, f"g{number}")

        assert await watcher.sample() is None
        assert len(watcher.snapshot()["commits"]) == 5
        committed(at, "g0", offset=8)
        assert [row[3] for row in (await watcher.changes()).commits] == [8]

    run(story)


def test_a_large_shard_that_comes_needs_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_feed, "MAX_CHANGES", 10)

    async def story() -> None:
        at = desk(orders=2)
        for number in range(20):
            committed(at, f"g{number}")
        watcher = Watcher()
        await watcher.sample()

        watcher.desks = {0: at}
        assert await watcher.sample() is None
        assert await watcher.changes() == GroupChanges()

        watcher.desks = {}
        assert await watcher.sample() is None

    run(story)


def test_a_snapshot_ends_somewhere_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_feed, "MAX_TOLD", 3)

    async def story() -> None:
        at = desk(orders=2)
        for number in range(3):
            committed(at, f"g{number}")
        watcher = Watcher(at)
        await watcher.sample()
        assert watcher.snapshot()["is_cut"] is False

        committed(at, "one-more")
        told = watcher.snapshot()

        assert (len(told["groups"]), len(told["commits"]), told["is_cut"]) == (3, 3, True)

    run(story)


def test_shards_note_nothing_once_nobody_asks_and_the_next_one_needs_a_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_feed, "WATCH_SECONDS", 0.0)

    async def story() -> None:
        at = desk(orders=2)
        watcher = Watcher(at)
        await watcher.sample()
        # The loop runs what is due in order, and the end of the watch has been due for longer.
        quiet = asyncio.Event()
        asyncio.get_running_loop().call_later(0.001, quiet.set)
        await quiet.wait()

        committed(at, "g")

        assert at.shard.facts.take(1) is None
        assert await watcher.sample() is None
        assert len(watcher.snapshot()["commits"]) == 1

    run(story)


@pytest.mark.slow
@pytest.mark.alone
def test_ten_thousand_groups_are_sampled_while_others_have_their_turn(
    report: Callable[[str], None],
) -> None:
    groups = 10_000

    async def story() -> None:
        desks = [desk(orders=2) for _ in range(50)]
        watcher = Watcher(*desks)
        await watcher.sample()
        for number in range(groups):
            at = desks[number % len(desks)]
            heartbeat(at, f"g{number}", "m")
            committed(at, f"g{number}")
        turns: list[float] = []
        is_over = False

        async def others() -> None:
            while not is_over:
                before = time.thread_time()
                await asyncio.sleep(0)
                turns.append(time.thread_time() - before)

        running = asyncio.create_task(others())
        changes = await watcher.changes()
        is_over = True
        await running

        assert len(changes.groups) == len(changes.commits) == groups
        report(f"{groups} groups: {sum(turns) * 1e3:.0f} ms, longest {max(turns) * 1e3:.1f} ms")
        assert max(turns) < 0.010

    run(story)


def longest_piece(pieces: Iterator[str]) -> float:
    longest = 0.0
    piece: str | None = ""
    while piece is not None:
        before = time.thread_time()
        piece = next(pieces, None)
        longest = max(longest, time.thread_time() - before)
    return longest


@pytest.mark.slow
@pytest.mark.alone
def test_a_snapshot_of_ten_thousand_groups_is_written_in_short_pieces(
    report: Callable[[str], None],
) -> None:
    async def story() -> None:
        at = desk(orders=2)  # All in one shard, which is the worst of all.
        for number in range(10_000):
            heartbeat(at, f"g{number}", "m")
            committed(at, f"g{number}")
        watcher = Watcher(at)
        await watcher.sample()

        # The best of three, since one of them may include a garbage collection.
        longest = min(longest_piece(watcher.feed.snapshot()) for _ in range(3))
        size = sum(map(len, watcher.feed.snapshot()))

        report(f"{size / 1e6:.1f} MB, longest piece {longest * 1e3:.1f} ms")
        assert longest < 0.010

    run(story)
