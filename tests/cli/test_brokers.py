"""`./samsa brokers` gives its orders to the supervisor of the home, and says what came of them."""

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.brokers import brokers
from tests.brokers.supervisor.houses import running, within


def called(*arguments: str) -> Result:
    return CliRunner().invoke(brokers, arguments)


@pytest.mark.slow
def test_a_broker_is_stopped_and_started(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, brokers=2) as house:
            await house.audience.hears("all is healthy")

            stopped = await asyncio.to_thread(called, "stop", "broker-1", "--home", str(tmp_path))
            assert stopped.exit_code == 0
            assert "stays stopped until it is started by hand" in stopped.output
            restarted = await asyncio.to_thread(
                called, "restart", "broker-1", "--home", str(tmp_path)
            )
            assert restarted.exit_code == 1
            assert "on this host: start it instead" in restarted.output
            started = await asyncio.to_thread(called, "start", "broker-1", "--home", str(tmp_path))
            assert "broker-1 (broker 7) serves" in started.output

    within(scenario)


def test_a_home_that_does_not_run_takes_no_orders(tmp_path: Path) -> None:
    result = called("stop", "1", "--home", str(tmp_path))

    assert result.exit_code == 1
    assert "is not running" in result.output
