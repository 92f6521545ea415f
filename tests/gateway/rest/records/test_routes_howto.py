"""The lines of docs/howto/read-over-http.md, run as they stand."""

import asyncio
import re
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import uvicorn

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Role
from gateway.kafka.connection import Connection
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import NewRecord
from gateway.rest.calls import Scope, headers_of
from gateway.rest.codes import ApiError, Code
from gateway.rest.mounts import mounts
from gateway.rest.route import Door
from gateway.rest.worker import Place, Worker
from tests.fakes.broker_thread import broker_beside

pytestmark = pytest.mark.slow

HOWTO: Final = Path("docs/howto/read-over-http.md")
BLOCK: Final = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
TOKEN: Final = "the-token"  # noqa: S105 - nobody else knows it
SECONDS: Final = 60


class Known:
    async def of(self, scope: Scope) -> Caller:
        if headers_of(scope).get("authorization") != f"Bearer {TOKEN}":
            raise ApiError(Code.NOT_AUTHENTICATED, "show a token")
        rights = Rights([Grant(role=Role.OPERATOR)])
        return Caller(kind=CallerKind.TOKEN, name="t", rights=rights, number=1)

    async def watch(self, caller: Caller, holds: Callable[[Caller], bool]) -> ApiError:
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve what a worker serves beside a broker; return the address."""
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "cluster-id").write_text("c")
    with broker_beside(folder / "broker", topics={"orders": 1}) as broker:
        producer = TopicWriter(Connection(bootstrap=broker.bootstrap), "orders")
        for number in range(5):
            producer.send(NewRecord(value=b'{"n":%d}' % number))
        producer.flush()
        worker = Worker(Place(name="w", home=folder, sockets=folder, bootstrap=broker.bootstrap))
        worker.__dict__["callers"] = Known()
        found = mounts(worker, Door.GATEWAY)

        async def application(scope: Scope, receive: Any, send: Any) -> None:
            served = found.find(scope)
            assert served is not None
            await served(scope, receive, send)

        config = uvicorn.Config(application, port=0, log_level="warning", lifespan="off")
        server = uvicorn.Server(config)
        listener = config.bind_socket()
        # A connection before the server is ready waits for it.
        listener.listen()

        async def serve() -> None:
            await server.serve([listener])
            await worker.close()

        thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(SECONDS)


def run(script: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env={"PATH": "/usr/bin:/bin", **environment},
        text=True,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )


def test_every_line_works(gateway: str) -> None:
    first, *blocks = BLOCK.findall(HOWTO.read_text())
    environment = {"GATEWAY": gateway, "TOKEN": TOKEN}
    assert len(blocks) >= 5

    for block in blocks:
        found = run(first + block, environment)
        assert found.returncode == 0, f"{block}\n{found.stdout}\n{found.stderr}"
        assert '"offset":' in found.stdout, block

    refused = run(first + blocks[0], {**environment, "TOKEN": "another"})
    assert "40101" in refused.stdout
