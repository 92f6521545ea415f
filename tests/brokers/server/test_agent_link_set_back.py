"""The broker's link to an agent whose store was restored to an older state."""

import asyncio
from pathlib import Path

import pytest

from brokers.cluster import link
from brokers.cluster.proposals import CreateTopic
from brokers.cluster.store import MetadataRegressed
from brokers.server.agent_link import AgentLink
from tests.brokers.server.test_agent_link import LinkKeeper, run
from tests.contracts.keeper import joined, proposal
from tests.fakes.agent_server import AgentServer
from tests.fakes.twin import Twin


def test_a_store_that_was_set_back_is_told_to_the_reader(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        reader = await joined(keeper)
        old = keeper.twin.image
        keeper.twin.create_topic("lost")
        await reader.reach(lambda image: "lost" in image.topics)

        keeper.twin.set_back(old)
        server.cut()
        with pytest.raises(MetadataRegressed, match="METADATA_REGRESSED"):
            await reader.reach(lambda _: False)

        assert reader.image is not None
        assert "lost" in reader.image.topics

    run(story, tmp_path / "agent.sock")


def test_nothing_is_proposed_to_a_store_that_was_set_back(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        reader = await joined(keeper)
        assert isinstance(reader.store, AgentLink)
        old = keeper.twin.image
        keeper.twin.create_topic("lost")
        await reader.reach(lambda image: "lost" in image.topics)
        keeper.twin.set_back(old)
        server.cut()
        with pytest.raises(MetadataRegressed):
            await reader.reach(lambda _: False)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await reader.store.propose([proposal(CreateTopic(name="new", partitions=1))])

        assert not [each for each in server.seen if isinstance(each, link.Propose)]
        assert "new" not in keeper.twin.image.topics

    run(story, tmp_path / "agent.sock")


def test_a_broker_is_no_new_one_for_a_store_that_was_set_back(tmp_path: Path) -> None:
    async def story(keeper: LinkKeeper, server: AgentServer) -> None:
        reader = await joined(keeper)
        await server.stop()
        keeper.twin = Twin(cluster_id=keeper.cluster_id)
        await server.start()

        with pytest.raises(MetadataRegressed, match="METADATA_REGRESSED"):
            await reader.reach(lambda _: False)

        # Nothing was written on the way, so the right database can still be put back.
        assert keeper.twin.image.version == 0
        assert reader.image is not None
        assert reader.registered.broker_id in reader.image.brokers

    run(story, tmp_path / "agent.sock")
