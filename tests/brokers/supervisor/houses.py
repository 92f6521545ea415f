"""Homes with fake components, run by a supervisor in this process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from brokers.clock import SystemClock
from brokers.supervisor.daemon import Supervisor
from brokers.supervisor.home import Home
from brokers.supervisor.options import Options
from tests.brokers.supervisor.fake_house import Fakes

# Far above what anything takes here, also on a machine that is busy with other tests.
PATIENCE = 20


class Audience:
    """A front that remembers what it was told, and wakes whoever waits for a line."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._changed = asyncio.Event()

    def say(self, line: str) -> None:
        self.lines.append(line)
        self._changed.set()

    def finish(self, lines: Sequence[str], *, complaint: str = "") -> None:
        self.lines += [complaint or "all is healthy", *lines]
        self._changed.set()

    async def hears(self, *words: str, times: int = 1) -> None:
        """Wait until as many lines have all the words."""

        def heard() -> int:
            return sum(all(word in line for word in words) for line in self.lines)

        async with asyncio.timeout(PATIENCE):
            while heard() < times:
                self._changed.clear()
                await self._changed.wait()


class House:
    """A running home."""

    def __init__(self, supervisor: Supervisor, audience: Audience, home: Home) -> None:
        self.supervisor = supervisor
        self.audience = audience
        self.home = home
        self.clock = SystemClock()

    async def status(self) -> Mapping[str, Any]:
        return await self.supervisor.status()

    async def component(self, name: str) -> Mapping[str, Any]:
        told = await self.status()
        return next(entry for entry in told["components"] if entry["name"] == name)


def options_for(folder: Path, **options: Any) -> Options:
    return Options(**{"home": folder, "brokers": 1, "port": 0, "web_port": None, **options})


@asynccontextmanager
async def running(
    folder: Path,
    modes: Mapping[str, str] | None = None,
    *,
    stop_seconds: float = 5,
    ready_seconds: float = 30,
    **options: Any,
) -> AsyncIterator[House]:
    """Run a home until the block ends; it is stopped in order then."""
    home = Home(folder)
    audience = Audience()
    supervisor = Supervisor(
        options_for(folder, **options),
        clock=SystemClock(),
        front=audience,
        home=home,
        components=Fakes(modes or {}, stop_seconds, ready_seconds),
    )
    life = asyncio.create_task(supervisor.run())
    greeting = asyncio.create_task(audience.hears("Samsa is starting"))
    await asyncio.wait({life, greeting}, return_when=asyncio.FIRST_COMPLETED)
    greeting.cancel()
    try:
        if not life.done():
            yield House(supervisor, audience, home)
    finally:
        supervisor.stop()
        await life


def within(scenario: Callable[[], Any]) -> Any:
    """Run a coroutine function to its end."""
    return asyncio.run(asyncio.wait_for(scenario(), 3 * PATIENCE))
