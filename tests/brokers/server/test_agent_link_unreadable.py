"""The broker's link, where something on it cannot be read: a whole image, and never a hot loop."""

import asyncio
from pathlib import Path

import msgspec

from brokers.cluster import link
from brokers.cluster.image import ClusterImage, Position
from brokers.cluster.store import MetadataStore
from brokers.server import agent_link
from tests.brokers.server.test_agent_link import PATIENCE_SECONDS, LinkKeeper
from tests.contracts.keeper import joined
from tests.fakes.agent_server import AgentServer

UNKNOWN_TAG = 31


class UnreadableServer(AgentServer):
    """Says something of an unknown kind to whoever follows from a position, each time anew."""

    def __init__(self, path: Path, keeper: LinkKeeper) -> None:
        super().__init__(path, keeper.door)
        self.at: Position | None = None
        self.follows: list[Position] = []

    async def _feed(
        self, store: MetadataStore, after: Position, writer: asyncio.StreamWriter
    ) -> None:
        self.follows.append(after)
        if after == self.at:
            writer.write(unknown(Position(version=after.version + 1, id=after.id)))
            return
        await super()._feed(store, after, writer)


def unknown(position: Position) -> bytes:
    message = [
        link.TAGS[link.ChangeFrame],
        [position.version, position.id],
        [[UNKNOWN_TAG, "?"]],
        True,
    ]
    body = msgspec.msgpack.encode(message)
    return link.LENGTH.pack(len(body)) + body


def test_a_change_that_cannot_be_read_twice_leads_to_a_whole_image(tmp_path: Path) -> None:
    async def story() -> None:
        keeper = LinkKeeper(tmp_path / "agent.sock")
        server = UnreadableServer(keeper.path, keeper)
        await server.start()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                reader = await joined(keeper)
                assert reader.image is not None
                server.at = reader.image.position
                server.follows.clear()
                keeper.twin.create_topic("behind-it")
                server.cut()
                await reader.reach(lambda image: "behind-it" in image.topics)

                assert isinstance(reader.seen[-1], ClusterImage)
                assert server.follows == [server.at, server.at, Position()]
                assert keeper.lines.events.count("agent_link.begins_anew") == 1
                await reader.close()
        finally:
            await keeper.close()
            await server.stop()

    asyncio.run(story())


def test_an_image_that_cannot_be_read_is_asked_for_ever_more_rarely(tmp_path: Path) -> None:
    made = LinkKeeper(tmp_path / "agent.sock").link()
    pauses = []
    for _ in range(12):
        made._note_end(link.MalformedFrame("?"), lasted=0.0)  # noqa: SLF001 - it has no other door
        pauses.append(made._first_pause())  # noqa: SLF001

    assert pauses == sorted(pauses)
    assert pauses[-1] == agent_link.LONGEST_UNREADABLE_SECONDS
    assert sum(pauses) > 10

    made._note_end(ConnectionError("the agent has hung up"), lasted=0.0)  # noqa: SLF001
    assert made._first_pause() == agent_link.FIRST_PAUSE_SECONDS  # noqa: SLF001


def test_a_connection_that_lasted_was_well_whatever_ended_it(tmp_path: Path) -> None:
    made = LinkKeeper(tmp_path / "agent.sock").link()
    for _ in range(12):
        made._note_end(link.MalformedFrame("?"), lasted=60.0)  # noqa: SLF001 - as above

    assert made._first_pause() <= 2 * agent_link.FIRST_PAUSE_SECONDS  # noqa: SLF001
