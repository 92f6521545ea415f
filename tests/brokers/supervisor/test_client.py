"""Asking a home that does not answer ends in words."""

import asyncio
from pathlib import Path

import pytest

from brokers.supervisor import client
from brokers.supervisor.errors import NotRunning
from brokers.supervisor.home import Home
from brokers.supervisor.ownership import owned


def test_a_home_that_does_not_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotRunning, match="is not running"):
        client.ask(Home(tmp_path), "status")


def test_a_supervisor_that_does_not_answer_is_named(tmp_path: Path) -> None:
    home = Home(tmp_path)

    async def scenario() -> None:
        home.prepare()
        async with owned(home):
            with pytest.raises(NotRunning, match=r"process \d+. does not answer"):
                client.ask(home, "status")

    asyncio.run(scenario())
