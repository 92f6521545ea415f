"""What a rebalance of a thousand members costs the loop, in all and at once."""

from collections.abc import Callable
from functools import partial
from time import process_time

import pytest

from brokers.coordination.groups.classic_records import written
from tests.builders.classic_groups import ClassicDesk

MEMBERS = 1_000
# Of CPU on the machine that the figures were made for; the test grants twice as much.
ALL_JOINS_MS = 50
ONE_STEP_MS = 10
ROOM = 2
METADATA = b"\0\1\0\0\0\1\0\5topic" + b"\xff" * 64

pytestmark = [pytest.mark.alone, pytest.mark.slow]


def spent_ms(work: Callable[[], object]) -> float:
    before = process_time()
    work()
    return (process_time() - before) * 1_000


def test_a_thousand_members_rebalance_without_a_pause(report: Callable[[str], None]) -> None:
    desk = ClassicDesk()
    ways = [("range", METADATA), ("cooperative-sticky", METADATA)]
    members = desk.stable(members=MEMBERS, ways=ways, session_ms=1_800_000)

    joins = [spent_ms(partial(desk.join, member, ways=ways)) for member in members]
    followers = [spent_ms(partial(desk.sync, member)) for member in members[1:]]
    led = spent_ms(lambda: desk.sync(members[0], assignments=dict.fromkeys(members, METADATA)))
    record = spent_ms(lambda: written(desk.there))
    left = spent_ms(lambda: desk.leave(*((member, None) for member in members)))

    report(
        f"{MEMBERS} members: joins {sum(joins):.1f} ms, the last {joins[-1]:.1f}; "
        f"syncs {sum(followers):.1f}, the leader's {led:.1f}; the record {record:.1f}; "
        f"all leave together {left:.1f}"
    )
    assert len(desk.parked) == 0
    assert sum(joins) <= ALL_JOINS_MS * ROOM
    assert max(*joins, *followers, led) <= ONE_STEP_MS * ROOM
    assert max(record, left) <= ONE_STEP_MS * ROOM
