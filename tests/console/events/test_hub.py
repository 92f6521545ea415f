"""Streams of tabs: the newest value of each topic, and never more."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from console.events.hub import (
    MAX_KEPT_TOPICS,
    Hub,
    NotServing,
    Owner,
    Stream,
    TooManyStreams,
)
from gateway.access.grants import Rights

ALICE = Owner(user_id=1, session_key="a", rights=Rights())
BOB = Owner(user_id=2, session_key="b", rights=Rights())
NEVER = 60.0


def run(test: Callable[[Hub], Awaitable[None]], hub: Hub | None = None) -> None:
    asyncio.run(test(hub or Hub()))  # type: ignore[arg-type]  # a coroutine function's


def test_a_stream_is_told_what_is_published_on_its_topics() -> None:
    async def told(hub: Hub) -> None:
        stream = hub.open(ALICE, ["cluster:x", "cluster:z"])

        hub.publish("cluster:x", "1")
        hub.publish("cluster:y", "2")

        assert await stream.take(patience_s=NEVER) == {"cluster:x": "1"}

    run(told)


def test_a_stream_that_is_not_read_holds_one_value_for_each_topic() -> None:
    async def told(hub: Hub) -> None:
        stream = hub.open(ALICE, ["cluster:x", "cluster:y"])

        for version in range(10_000):
            hub.publish("cluster:x", str(version))
        hub.publish("cluster:y", "1")

        assert stream.pending == 2
        assert await stream.take(patience_s=NEVER) == {"cluster:x": "9999", "cluster:y": "1"}

    run(told)


def test_a_new_stream_begins_with_what_is_known() -> None:
    async def told(hub: Hub) -> None:
        hub.publish("cluster:x", "7")

        assert await hub.open(ALICE, ["cluster:x"]).take(patience_s=NEVER) == {"cluster:x": "7"}

    run(told)


def test_the_same_value_again_is_not_told_again() -> None:
    async def told(hub: Hub) -> None:
        stream = hub.open(ALICE, ["cluster:x"])
        hub.publish("cluster:x", "7")
        await stream.take(patience_s=NEVER)

        hub.publish("cluster:x", "7")

        assert stream.pending == 0
        assert await stream.take(patience_s=0) == {}

    run(told)


def test_values_of_topics_long_ago_are_forgotten() -> None:
    async def told(hub: Hub) -> None:
        for number in range(MAX_KEPT_TOPICS + 1):
            hub.publish(f"cluster:{number}", "1")

        assert hub.open(ALICE, ["cluster:0"]).pending == 0
        assert hub.open(ALICE, ["cluster:1"]).pending == 1

    run(told)


def test_one_user_does_not_use_up_the_streams_of_all() -> None:
    async def opened(hub: Hub) -> None:
        first = hub.open(ALICE, ["cluster:x"])
        hub.open(ALICE, ["cluster:x"])
        with pytest.raises(TooManyStreams, match="this user has 2 tabs open"):
            hub.open(ALICE, ["cluster:x"])
        hub.open(BOB, ["cluster:x"])

        with pytest.raises(TooManyStreams, match="this web server has 3 event streams open"):
            hub.open(BOB, ["cluster:x"])
        hub.close(first)
        hub.open(ALICE, ["cluster:x"])

    run(opened, Hub(max_streams=3, max_per_user=2))


def test_signing_out_ends_the_streams_of_that_session_only() -> None:
    async def ended(hub: Hub) -> None:
        alice, bob = hub.open(ALICE, ["cluster:x"]), hub.open(BOB, ["cluster:x"])

        hub.end_session("a")

        assert (alice.ended, bob.ended) == ("signed out", "")
        # Nobody waits for it.
        assert await alice.take(patience_s=NEVER) == {}

    run(ended)


def test_a_server_that_stops_ends_all_and_opens_none() -> None:
    async def drained(hub: Hub) -> None:
        stream = hub.open(ALICE, ["cluster:x"])

        hub.drain()

        assert stream.ended == "restarting"
        with pytest.raises(NotServing):
            hub.open(BOB, ["cluster:x"])

    run(drained)


def test_other_threads_publish_and_end_by_way_of_the_loop() -> None:
    async def told(hub: Hub) -> None:
        stream: Stream = hub.open(ALICE, ["cluster:x"])

        await asyncio.to_thread(hub.publish_soon, "cluster:x", "7")
        values = await stream.take(patience_s=NEVER)
        await asyncio.to_thread(hub.end_session_soon, "a")
        await stream.take(patience_s=NEVER)

        assert (values, stream.ended) == ({"cluster:x": "7"}, "signed out")

    run(told)


def test_what_is_published_before_the_first_stream_is_kept_for_it() -> None:
    hub = Hub()
    hub.publish_soon("cluster:x", "7")

    async def told(hub: Hub) -> None:
        assert hub.open(ALICE, ["cluster:x"]).pending == 1

    run(told, hub)
