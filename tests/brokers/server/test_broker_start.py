"""A start that comes to nothing: it leaves a log dir that was closed cleanly as it was."""

import asyncio
import socket
from pathlib import Path

import pytest

from brokers.clock import SystemClock
from brokers.config import BrokerConfig
from brokers.server.broker import Broker, StartFailed
from brokers.server.logs import Log
from brokers.storage.names import CLEAN_SHUTDOWN
from tests.fakes.broker import running_broker
from tests.fakes.listener import HOST
from tests.fakes.twin import Twin


async def closed_cleanly(tmp_path: Path) -> tuple[Twin, str]:
    """The cluster of a broker that has ended well, and its mark of that."""
    twin = Twin()
    async with running_broker(tmp_path, twin=twin, topics={"orders": 3}) as running:
        epoch = running.context.broker_epoch
    text = (tmp_path / "data" / CLEAN_SHUTDOWN).read_text(encoding="ascii")
    assert f'"brokerEpoch":{epoch}}}' in text
    return twin, text


async def start_in_vain(tmp_path: Path, twin: Twin, config: BrokerConfig) -> None:
    door, clock = twin.attach(), SystemClock()
    try:
        log = Log(clock, write=lambda _line: None)
        await Broker(config, store=door, modules=(), clock=clock, log=log).run()
    finally:
        door.kill()


def mark(tmp_path: Path) -> str:
    return (tmp_path / "data" / CLEAN_SHUTDOWN).read_text(encoding="ascii")


def test_a_taken_port_costs_no_recovery(tmp_path: Path) -> None:
    async def story() -> None:
        twin, before = await closed_cleanly(tmp_path)
        with socket.socket() as taken:
            taken.bind((HOST, 0))
            taken.listen()
            config = BrokerConfig(
                agent_socket="",
                log_dir=str(tmp_path / "data"),
                bind=HOST,
                port=taken.getsockname()[1],
            )

            with pytest.raises(StartFailed, match="is taken"):
                await start_in_vain(tmp_path, twin, config)

        assert mark(tmp_path) == before

    asyncio.run(story())


def test_a_cluster_that_refuses_the_broker_costs_no_recovery(tmp_path: Path) -> None:
    async def story() -> None:
        _twin, before = await closed_cleanly(tmp_path)
        config = BrokerConfig(agent_socket="", log_dir=str(tmp_path / "data"), bind=HOST)
        other = Twin(cluster_id="other-cluster-00000000")

        with pytest.raises(StartFailed, match="INCONSISTENT_CLUSTER_ID"):
            await start_in_vain(tmp_path, other, config)

        assert mark(tmp_path) == before

    asyncio.run(story())
