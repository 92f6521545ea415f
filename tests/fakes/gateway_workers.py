"""Several workers of a gateway in one process, and a client that asks them in turn.

Each serves the calls that others pass on at a socket of its own, by the server that a worker has.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn

from gateway.access.callers import Caller
from gateway.rest.calls import Scope
from gateway.rest.mounts import Mounts, mounts
from gateway.rest.route import Door
from gateway.rest.worker import Place, Worker
from tests.fakes.asgi import Answer, scope_of
from tests.fakes.rest_door import WRITER, Known

WAIT_S = 60


class RunningWorker:
    """One worker, its calls, and its socket."""

    def __init__(self, place: Place, caller: Caller) -> None:
        self.worker = Worker(place)
        self.callers = Known(caller)
        self.worker.__dict__["callers"] = self.callers
        self.mounts: Mounts = mounts(self.worker, Door.GATEWAY)
        config = uvicorn.Config(
            self._own,
            uds=str(place.socket_of(place.name)),
            interface="asgi3",
            lifespan="off",
            log_level="warning",
            timeout_graceful_shutdown=1,
        )
        self.server = uvicorn.Server(config)
        self.server.config.load()

    async def _own(self, scope: Scope, receive: Any, send: Any) -> None:
        await self.mounts.find_own(scope)(scope, receive, send)


class Gateway:
    """Workers behind a balancer that is not sticky."""

    def __init__(self, workers: list[RunningWorker]) -> None:
        self.workers = workers
        self._turns = itertools.cycle(workers)

    async def ask(
        self,
        method: str,
        target: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        worker: RunningWorker | None = None,
        leaves: bool = False,
    ) -> Answer:
        """Ask the next worker, or the one that is named; `leaves` is a client that has gone."""
        asked = worker or next(self._turns)
        text = b"" if body is None else body if isinstance(body, bytes) else dumped(body)
        scope = scope_of(method, target, {"Host": "gateway:8082", **(headers or {})})
        application = asked.mounts.find(scope)
        assert application is not None, f"{method} {target} is nobody's"
        coming = [{"type": "http.request", "body": text, "more_body": False}]
        answers: list[Answer] = []
        has_gone = asyncio.Event()
        if leaves:
            has_gone.set()

        async def receive() -> Mapping[str, Any]:
            if not coming:
                await has_gone.wait()
                return {"type": "http.disconnect"}
            return coming.pop(0)

        async def send(message: Mapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                told = {name.decode(): value.decode() for name, value in message["headers"]}
                answers.append(Answer(status=message["status"], headers=told))
                return
            answers[-1].pieces.append(message["body"])
            answers[-1].is_ended = not message.get("more_body")

        async with asyncio.timeout(WAIT_S):
            await application(scope, receive, send)
        assert answers or leaves
        return answers[-1] if answers else Answer(status=0, headers={})


def dumped(value: object) -> bytes:
    return json.dumps(value).encode()


@asynccontextmanager
async def running_gateway(
    folder: Path, bootstrap: str, *, count: int = 3, shared_url: str = "", caller: Caller = WRITER
) -> AsyncIterator[Gateway]:
    """Run workers until the block ends."""
    (folder / "cluster-id").write_text("cluster-1\n")
    workers = [
        RunningWorker(
            Place(
                name=f"gateway-{number}",
                home=folder,
                sockets=folder,
                bootstrap=bootstrap,
                shared_url=shared_url,
            ),
            caller,
        )
        for number in range(1, count + 1)
    ]
    async with asyncio.TaskGroup() as group:
        for each in workers:
            group.create_task(serve(each.server))
        async with asyncio.timeout(WAIT_S):
            while not all(each.server.started for each in workers):  # noqa: ASYNC110
                await asyncio.sleep(0)
        try:
            yield Gateway(workers)
        finally:
            for each in workers:
                each.worker.drain()
                await each.worker.close()
                each.server.should_exit = True


async def serve(server: uvicorn.Server) -> None:
    """Serve without the signal handlers of a process of its own."""
    await server._serve()  # noqa: SLF001 - `serve` is this, with signals
