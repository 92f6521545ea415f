"""A home has one owner at a time."""

import asyncio
import os
from pathlib import Path

import pytest

from brokers.supervisor.errors import StartRefused
from brokers.supervisor.home import Home
from brokers.supervisor.ownership import owned


def test_a_home_has_one_owner_at_a_time(tmp_path: Path) -> None:
    home = Home(tmp_path)

    async def scenario() -> None:
        async with owned(home):
            assert home.is_owned()
            assert home.owner() == os.getpid()
            with pytest.raises(StartRefused, match=f"process {os.getpid()}"):
                async with owned(Home(tmp_path)):
                    pass
        assert not home.is_owned()
        async with owned(Home(tmp_path)):
            pass

    asyncio.run(scenario())


def test_a_home_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with owned(Home(tmp_path / "missing")):
            pass

    with pytest.raises(StartRefused, match="cannot be written"):
        asyncio.run(scenario())
