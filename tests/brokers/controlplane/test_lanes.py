"""The agent's lanes: who waits for whom, for how long, and what becomes of connections."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest
from django.db import OperationalError

from tests.brokers.controlplane.host import SOON_S

from brokers.controlplane.database import connection  # isort: skip
from brokers.controlplane.lanes import Busy, Lane, Lanes  # isort: skip

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def run(story: Callable[[Lanes], Awaitable[None]]) -> None:
    async def told() -> None:
        lanes = Lanes()
        try:
            async with asyncio.timeout(SOON_S):
                await story(lanes)
        finally:
            await lanes.close()

    asyncio.run(told())


async def occupied(lane: Lane) -> tuple[threading.Event, "asyncio.Task[bool]"]:
    """Give a lane something that lasts until the event is set; return when it has begun."""
    begun, may_go_on = threading.Event(), threading.Event()

    def wait() -> bool:
        begun.set()
        return may_go_on.wait(SOON_S)

    waiting = asyncio.create_task(lane.run(wait))
    assert await asyncio.to_thread(begun.wait, SOON_S)
    return may_go_on, waiting


def is_connected() -> bool:
    return connection().connection is not None


def connect() -> int:
    with connection().cursor() as cursor:
        cursor.execute("SELECT 1")
    return id(connection().connection)


def test_a_question_that_waits_holds_up_its_own_lane_only(database: str) -> None:
    async def story(lanes: Lanes) -> None:
        may_go_on, waiting = await occupied(lanes.proposals)

        assert await lanes.liveness.run(connect)
        assert await lanes.feed.run(connect)

        assert not waiting.done()
        may_go_on.set()
        assert await waiting

    run(story)


def test_each_lane_has_a_connection_of_its_own_with_its_own_patience(database: str) -> None:
    def settings() -> object:
        return connection().settings_dict["OPTIONS"]["timeout"]

    async def story(lanes: Lanes) -> None:
        each = (lanes.liveness, lanes.feed, lanes.proposals)
        assert len({await lane.run(connect) for lane in each}) == len(each)
        assert [await lane.run(settings) for lane in each] == [1.0, 3.0, 2.5]

    run(story)


def test_a_question_that_nobody_waits_for_any_more_is_taken_back(database: str) -> None:
    async def story(lanes: Lanes) -> None:
        may_go_on, waiting = await occupied(lanes.proposals)
        asked: list[str] = []
        with pytest.raises(Busy, match=r"has not answered within 0\.01 s"):
            await lanes.proposals.run(lambda: asked.append("late"), patience_s=0.01)

        may_go_on.set()
        await waiting
        await lanes.proposals.run(lambda: asked.append("next"))

        assert asked == ["next"]

    run(story)


def test_a_lock_that_is_not_to_be_had_leaves_the_connection_alone(database: str) -> None:
    def find_it_locked() -> None:
        connect()
        raise OperationalError("database is locked: waited 1 s")

    async def story(lanes: Lanes) -> None:
        with pytest.raises(Busy, match="waited 1 s"):
            await lanes.liveness.run(find_it_locked)
        assert await lanes.liveness.run(is_connected)

    run(story)


def test_a_connection_that_fails_is_made_anew(database: str) -> None:
    def fail() -> None:
        connect()
        raise OperationalError("the server closed the connection")

    async def story(lanes: Lanes) -> None:
        with pytest.raises(ConnectionError, match="closed the connection") as away:
            await lanes.feed.run(fail)
        assert not isinstance(away.value, Busy)
        assert not await lanes.feed.run(is_connected)
        assert await lanes.feed.run(connect)

    run(story)


def test_a_lane_that_is_told_to_reconnect_does_before_the_next_question(database: str) -> None:
    async def story(lanes: Lanes) -> None:
        await lanes.feed.run(connect)
        lanes.reconnect()
        assert not await lanes.feed.run(is_connected)

    run(story)


def test_a_lane_that_is_closed_has_hung_up(database: str) -> None:
    async def story() -> None:
        lane = Lane("some", lock_timeout_s=1.0)
        await lane.run(connect)
        wrapper = await lane.run(connection)
        assert wrapper.connection is not None
        await lane.close()
        assert wrapper.connection is None

    asyncio.run(story())
