"""A gateway's process over a real socket, in a thread: bare calls, Django behind, real tokens.

For what is only true of all parts together: statuses, headers, who is let in.
"""

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from django.core.asgi import get_asgi_application
from django.db import connections

from gateway import rest as modules
from gateway.addresses import Network
from gateway.dispatch import Dispatch
from gateway.forwarding import Forwarded
from gateway.host_names import Request
from gateway.kafka.connection import Connection
from gateway.rest import mounts, route
from gateway.rest import worker as workers
from gateway.rest.callers import Callers
from gateway.rest.identity import Identity
from gateway.rest.limits import Limits, Rates
from gateway.rest.worker import Place, Worker
from gateway.server import Http
from gateway.ws import endpoint

WAIT_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What was answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> tuple[int, int]:
        """The status, and the code of an error body, which is checked."""
        found = self.json()
        assert set(found) == {"error_code", "message"}
        assert found["message"]
        return self.status, found["error_code"]


@dataclass(slots=True, kw_only=True)
class WholeDoor:
    """The addresses are those of the web server's door."""

    port: int
    worker: Worker
    token: str = ""

    def ask(
        self,
        method: str,
        target: str,
        body: object = None,
        *,
        media_type: str = "application/json",
        **headers: str,
    ) -> Told:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        shown = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token and "authorization" not in shown:
            shown["authorization"] = f"Bearer {self.token}"
        if data is not None:
            shown.setdefault("content-type", media_type)
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)) as line:
            line.request(method, target, data, shown)
            answer = line.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return Told(status=answer.status, headers=told, body=answer.read())


@contextmanager
def whole_door(
    folder: Path,
    bootstrap: str,
    *,
    cluster: str,
    limits: Limits | None = None,
    timeout_s: float = WAIT_S,
    trusted: Sequence[Network] = (),
) -> Iterator[WholeDoor]:
    """Serve until the block ends; the databases are those that Django is pointed at.

    One within another has Django's views for itself as long as it is there.
    """
    (folder / "cluster-id").write_text(cluster)
    ready: Future[WholeDoor] = Future()
    stop: Future[None] = Future()
    before = workers._Process.worker  # noqa: SLF001 - its one name
    limited, limits_before = limits or Limits(Rates()), modules.limits.of_process

    async def serve() -> None:
        worker = Worker(Place(name="web", home=folder, sockets=folder, bootstrap=bootstrap))
        worker.__dict__["callers"] = worker.held(Callers(Identity(), limited))
        if bootstrap:
            connection = Connection(bootstrap=bootstrap, timeout_s=timeout_s)
            worker.__dict__["connection"] = connection
        calls = mounts.mounts(worker, route.Door.WEB, sockets=[endpoint.PATH])
        workers.take(worker)
        modules.limits.of_process = lambda: limited  # type: ignore[assignment]
        prefixes: Sequence[str] = route.PREFIXES[route.Door.WEB]
        django = get_asgi_application()
        django.request_class = Request
        whole = Dispatch(
            {},
            calls=calls,
            callers=worker.callers,
            budget=worker.incoming,
            traffic=worker.traffic,
            programs=prefixes,
            otherwise=django,
        )
        config = uvicorn.Config(
            Forwarded(whole, trusted),
            http=Http,
            interface="asgi3",
            port=0,
            lifespan="off",
            log_level="warning",
            proxy_headers=False,
        )
        config.load()
        server = uvicorn.Server(config)
        listener = config.bind_socket()
        listener.listen()
        serving = asyncio.create_task(server._serve([listener]))  # noqa: SLF001 - without signals
        ready.set_result(WholeDoor(port=listener.getsockname()[1], worker=worker))
        await asyncio.wrap_future(stop)
        worker.drain()
        await worker.close()
        server.should_exit = True
        await serving

    def work() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            # Whatever it was, the test that waits must hear of it.
            if not ready.done():
                ready.set_exception(error)
            raise
        finally:
            connections.close_all()

    thread = threading.Thread(target=work, name="whole-door", daemon=True)
    thread.start()
    try:
        yield ready.result(WAIT_S)
    finally:
        stop.set_result(None)
        thread.join(WAIT_S)
        workers.take(before)
        modules.limits.of_process = limits_before
