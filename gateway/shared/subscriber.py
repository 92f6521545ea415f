"""Hears what workers publish: one connection for all channels of a worker."""

import asyncio
from collections.abc import Callable

from gateway.shared.link import Address, Link, LinkError, opened


class Subscriber:
    """Belongs to one event loop. After a failure it connects again, `pause_s` later."""

    def __init__(
        self, address: Address, *, lost: Callable[[Exception], None], pause_s: float
    ) -> None:
        self._address = address
        self._lost = lost
        self._pause_s = pause_s
        self._heard: dict[bytes, Callable[[bytes], None]] = {}
        self._link: Link | None = None
        self._running = asyncio.get_running_loop().create_task(self._run())

    def listen(self, channel: str, heard: Callable[[bytes], None]) -> None:
        """Call `heard` with everything that is published to a channel from now on."""
        assert channel.encode() not in self._heard, "a channel has one listener"
        self._heard[channel.encode()] = heard
        if self._link is not None:
            self._link.write([("SUBSCRIBE", channel)])

    async def close(self) -> None:
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                await self._hear()
            except (LinkError, OSError) as error:
                self._lost(error)
            await asyncio.sleep(self._pause_s)

    async def _hear(self) -> None:
        link = await opened(self._address)
        try:
            self._link = link
            link.write([("SUBSCRIBE", *self._heard)])
            while True:
                # Without a deadline: messages may be hours apart.
                kind, channel, value = await link.next()
                if kind == b"message":
                    self._heard[channel](value)
        finally:
            self._link = None
            link.close()
