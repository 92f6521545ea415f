"""A browser as uvicorn shows one to a bare ASGI application, and who says whose it is."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from console.events.hub import Owner
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Role

ADMIN = Rights([Grant(role=Role.ADMIN)])
ALICE = Owner(user_id=1, session_key="a", rights=ADMIN)


class FakeAsker:
    def __init__(self, owner: Owner | None = ALICE) -> None:
        self.owner = owner
        self.asked: list[dict[str, str]] = []
        self.began = self.ended = 0
        self._more = asyncio.Event()

    async def owner_of(self, cookies: dict[str, str]) -> Owner | None:
        self.asked.append(cookies)
        return self.owner

    def begin(self) -> None:
        self.began += 1
        self._more.set()

    def end(self) -> None:
        self.ended += 1

    async def wait_for(self, streams: int) -> None:
        """Wait until so many have begun."""
        while self.began < streams:
            self._more.clear()
            await self._more.wait()


class Browser:
    """One request: its sender may stop reading, and leave."""

    def __init__(
        self, query: str = "topic=cluster:x", *, path: str = "/events", **headers: str
    ) -> None:
        self.told: list[Mapping[str, Any]] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self._heard = asyncio.Event()
        self._left = asyncio.Event()
        named = {"host": "localhost", "cookie": "a=1", **headers}
        self.scope: dict[str, Any] = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": query.encode(),
            "headers": [(k.replace("_", "-").encode(), v.encode()) for k, v in named.items()],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", 8000),
        }

    async def receive(self) -> Mapping[str, Any]:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Mapping[str, Any]) -> None:
        await self.reads.wait()
        self.told.append(message)
        self._heard.set()

    def leave(self) -> None:
        self._left.set()

    @property
    def status(self) -> int:
        status: int = self.told[0]["status"]
        return status

    @property
    def text(self) -> str:
        return b"".join(part.get("body", b"") for part in self.told[1:]).decode()

    @property
    def is_complete(self) -> bool:
        return not self.told[-1].get("more_body", False)

    async def hear(self, text: str) -> None:
        while text not in self.text:
            self._heard.clear()
            await self._heard.wait()


@asynccontextmanager
async def streaming(
    endpoint: Callable[..., Awaitable[None]], browser: Browser
) -> AsyncIterator["asyncio.Task[None]"]:
    task = asyncio.ensure_future(endpoint(browser.scope, browser.receive, browser.send))
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
