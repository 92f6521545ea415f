"""The channel layer keeps what Channels asks of one, beside a server and without one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from channels.exceptions import ChannelFull

from gateway.shared import layer as module
from gateway.shared.layer import NEWS, Message, SharedChannelLayer
from gateway.shared.store import Shared
from tests.gateway.shared.test_store import connected, served

HELLO: Message = {
    "type": "hello",
    "bytes": b"\xff",
    "list": [1, 2.5, None, True],
    "map": {"a": "é"},
}


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Layers:
    """The layers of two processes, on one server or each alone."""

    def __init__(self, url: str) -> None:
        self.is_alone = not url
        self.clock = Clock()
        self.shared = [Shared(url, cluster="c") for _ in range(2)]
        self.one, self.other = (
            SharedChannelLayer(shared, capacity=3, monotonic=self.clock) for shared in self.shared
        )

    @asynccontextmanager
    async def heard(self) -> AsyncIterator[None]:
        """Let both processes hear each other, if there is a server."""
        self.one.begin()
        self.other.begin()
        try:
            if not self.is_alone:
                for sender, receiver in ((self.one, self.other), (self.other, self.one)):
                    await first_message(sender, receiver)
            yield
        finally:
            await asyncio.gather(*(shared.close() for shared in self.shared))


async def first_message(sender: SharedChannelLayer, receiver: SharedChannelLayer) -> None:
    """Send until a message arrives: the receiver subscribes within moments."""
    channel = await receiver.new_channel()
    receiving = asyncio.create_task(receiver.receive(channel))
    while not receiving.done():
        await sender.send(channel, {"type": "ready"})
        await asyncio.wait([receiving], timeout=0.01)
    await receiver.flush()


@pytest.fixture(scope="module", params=["with a server", "alone"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "alone":
        yield ""
        return
    folder: Path = tmp_path_factory.mktemp("valkey")
    with served(folder):
        url = f"unix://{folder / 's'}"
        asyncio.run(answering(url))
        yield url


async def answering(url: str) -> None:
    shared = Shared(url, cluster="c")
    await connected(shared)
    await shared.close()


def run(url: str, scenario: Callable[[Layers], Awaitable[None]]) -> None:
    async def work() -> None:
        layers = Layers(url)
        async with asyncio.timeout(30), layers.heard():
            await scenario(layers)

    asyncio.run(work())


async def is_empty(layer: SharedChannelLayer, channel: str) -> bool:
    """Tell whether a channel has no message."""
    receiving = asyncio.create_task(layer.receive(channel))
    done, _ = await asyncio.wait([receiving], timeout=0.02)
    receiving.cancel()
    return not done


@pytest.mark.slow
def test_messages_of_a_channel_arrive_in_their_order(url: str) -> None:
    async def scenario(layers: Layers) -> None:
        channel = await layers.one.new_channel()
        for message in (HELLO, {"type": "second"}):
            await layers.one.send(channel, message)

        assert await layers.one.receive(channel) == HELLO
        assert await layers.one.receive(channel) == {"type": "second"}
        assert await is_empty(layers.one, channel)
        assert await layers.one.new_channel() != channel

    run(url, scenario)


@pytest.mark.slow
def test_members_of_a_group_get_its_messages_in_every_process(url: str) -> None:
    async def scenario(layers: Layers) -> None:
        one, other = layers.one, layers.other
        here, left, there = "here", await one.new_channel(), await other.new_channel()
        for layer, channel in ((one, here), (one, left), (other, there)):
            await layer.group_add("access", channel)
        await one.group_discard("access", left)

        await one.group_send("access", HELLO)
        await one.group_send("others", HELLO)

        assert await one.receive(here) == HELLO
        assert await is_empty(one, here), "once, although the server returns it"
        assert await is_empty(one, left)
        if layers.is_alone:
            assert await is_empty(other, there)
        else:
            assert await other.receive(there) == HELLO

    run(url, scenario)


@pytest.mark.slow
def test_full_channel_refuses_its_sender_and_misses_what_its_group_gets(url: str) -> None:
    async def scenario(layers: Layers) -> None:
        one = layers.one
        full, free = await one.new_channel(), await one.new_channel()
        await one.group_add("access", full)
        await one.group_add("access", free)
        for number in range(3):
            await one.send(full, {"type": "n", "n": number})

        with pytest.raises(ChannelFull):
            await one.send(full, HELLO)
        await one.group_send("access", HELLO)

        assert await one.receive(free) == HELLO
        assert [(await one.receive(full))["n"] for _ in range(3)] == [0, 1, 2]
        assert await is_empty(one, full)

    run(url, scenario)


@pytest.mark.slow
def test_unread_message_expires_and_takes_its_channel_out_of_its_groups(url: str) -> None:
    async def scenario(layers: Layers) -> None:
        one, clock = layers.one, layers.clock
        channel = await one.new_channel()
        await one.group_add("access", channel)
        await one.send(channel, HELLO)

        clock.now += one.expiry + 1

        assert await is_empty(one, channel)
        await one.group_send("access", HELLO)
        assert await is_empty(one, channel)

    run(url, scenario)


@pytest.mark.slow
def test_membership_expires(url: str) -> None:
    async def scenario(layers: Layers) -> None:
        one, clock = layers.one, layers.clock
        channel = await one.new_channel()
        await one.group_add("access", channel)

        clock.now += one.group_expiry + 1
        await one.group_send("access", HELLO)

        assert await is_empty(one, channel)

    run(url, scenario)


@pytest.mark.slow
def test_closed_or_flushed_layer_has_forgotten_its_messages_and_groups(url: str) -> None:
    async def scenario(layers: Layers) -> None:
        for forget in (layers.one.flush, layers.one.close):
            channel = await layers.one.new_channel()
            await layers.one.group_add("access", channel)
            await layers.one.send(channel, HELLO)

            await forget()
            await layers.one.group_send("access", HELLO)

            assert await is_empty(layers.one, channel)

    run(url, scenario)


def test_channels_members_and_messages_are_bounded() -> None:
    async def scenario(layers: Layers) -> None:
        one, clock = layers.one, layers.clock
        for number in range(module.MAX_CHANNELS):
            await one.send(f"c{number}", HELLO)
        with pytest.raises(ChannelFull):
            await one.send("one-more", HELLO)
        clock.now += one.expiry + 1
        await one.send("one-more", HELLO)

        for number in range(module.MAX_MEMBERS):
            await one.group_add(f"g{number % 7}", f"c{number}")
        with pytest.raises(ChannelFull):
            await one.group_add("g", "one-more")

        with pytest.raises(ValueError, match="4096 fit"):
            await one.send("c", {"type": "x" * module.MAX_MESSAGE_BYTES})

    run("", scenario)


@pytest.mark.parametrize("name", ["", "a b", "é", "x" * 100])
def test_names_are_those_that_channels_allows(name: str) -> None:
    async def scenario(layers: Layers) -> None:
        for work in (
            layers.one.send(name, HELLO),
            layers.one.receive(name),
            layers.one.group_add(name, "c"),
            layers.one.group_add("g", name),
            layers.one.group_send(name, HELLO),
        ):
            with pytest.raises(TypeError):
                await work

    run("", scenario)


def test_packet_that_is_not_ours_is_dropped() -> None:
    async def scenario() -> None:
        listeners: list[Callable[[bytes], None]] = []

        class News:
            async def publish(self, _channel: str, _value: bytes) -> bool:
                return True

            def listen(self, channel: str, heard: Callable[[bytes], None]) -> None:
                assert channel == NEWS
                listeners.append(heard)

        layer = SharedChannelLayer(News())
        layer.begin()
        await layer.group_add("access", "c")
        [hear] = listeners

        for value in (b"", b"\xff", b"{}", b"\x94\xa1o\x01\xa6access\xa0", b"x" * 10_000):
            hear(value)
        hear(b"\x94\xa1o\x80\xa6access\xa0")

        assert await layer.receive("c") == {}
        assert await is_empty(layer, "c")

    asyncio.run(scenario())
