"""The agent's status: what it says while its database is well, away, or set back."""

import asyncio
from pathlib import Path

import pytest

from brokers.clock import ManualClock
from brokers.cluster.image import Position
from brokers.cluster.store import MetadataRegressed
from tests.brokers.controlplane.host import Host, new_cluster, running_host

from brokers.controlplane import condition  # isort: skip
from brokers.controlplane.agent.status import AWAY_AFTER_MS, condition_of, keep_status  # isort: skip

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def said(of: str, clock: ManualClock) -> tuple[str, str]:
    """Return condition and message of a host in one of the three states."""

    async def story() -> tuple[str, str]:
        async with running_host(new_cluster_id, clock=clock) as host:
            host.store.regressed = (
                MetadataRegressed(Position(), Position()) if of == condition.REGRESSED else None
            )
            if of == condition.DATABASE_AWAY:
                host.following.cancel()
                clock.advance(AWAY_AFTER_MS + 1000)
            told = condition_of(host.store, clock)
            assert told.cluster_id == new_cluster_id
            assert told.version == host.store.image.version
            return told.condition, told.message

    new_cluster_id = new_cluster()
    return asyncio.run(story())


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (condition.WELL, ""),
        (condition.REGRESSED, "METADATA_REGRESSED"),
        (condition.DATABASE_AWAY, "has not answered for 6 s"),
    ],
)
def test_an_agent_says_how_its_database_is(database: str, state: str, words: str) -> None:
    told, message = said(state, ManualClock())

    assert told == state
    assert words in message


def test_a_status_is_there_while_the_agent_runs(database: str, tmp_path: Path) -> None:
    async def story(host: Host, clock: ManualClock) -> None:
        keeping = asyncio.create_task(keep_status(host.store, tmp_path, clock))
        async with asyncio.timeout(10):
            # It is written by a thread, which tells nobody.
            while condition.read(tmp_path) is None:  # noqa: ASYNC110
                await asyncio.sleep(0)
        keeping.cancel()
        await asyncio.wait([keeping])
        assert condition.read(tmp_path) is None

    async def run() -> None:
        clock = ManualClock()
        async with running_host(cluster_id, clock=clock) as host:
            await story(host, clock)

    cluster_id = new_cluster()
    asyncio.run(run())
