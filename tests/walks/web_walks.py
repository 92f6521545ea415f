"""The walks of requests to the web server, handed to its application or to Django."""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from tests.database import project_home, sqlite_databases

# Before any import of a model, which needs the project set up.
project_home()

from django.test import Client  # noqa: E402
from django.test.utils import override_settings  # noqa: E402
from django.urls import resolve  # noqa: E402

from console.queries import live  # noqa: E402
from gateway.access.token_scopes import Scope, grants_of  # noqa: E402
from gateway.asgi import Program  # noqa: E402
from gateway.rest.router import Router  # noqa: E402
from tests.builders import tokens, users  # noqa: E402
from tests.builders.live import Told, topic  # noqa: E402
from tests.console import cluster_rows  # noqa: E402
from tests.fakes.broker_thread import BesideBroker  # noqa: E402
from tests.walks.broker_walks import TOPIC  # noqa: E402
from tests.walks.tracer import TIMES, Tracer, Walk, common  # noqa: E402

V2_TYPE: Final = b"application/vnd.kafka.binary.v2+json"
V2_BODY: Final = b'{"records":[{"value":"AAE="}]}'
OK: Final = 200
# Calls before the one that is recorded: the first ones open clients and fill caches.
WARM: Final = 2


def rest_produce(tracer: Tracer, folder: Path, broker: BesideBroker) -> Walk:
    """Produce a record by version 2, with a token that is known."""
    bootstrap = override_settings(SAMSA_GATEWAY_BOOTSTRAP=broker.bootstrap)
    with sqlite_databases(folder), bootstrap:
        token = tokens.token(grants=grants_of(Scope.ADMIN))
        program = Program()

        async def work() -> Walk:
            scope = posted(f"/rest/topics/{TOPIC}", token)
            for _ in range(WARM):
                assert await answered(program.application, scope) == OK
            # The broker of this process is another process in a home.
            serve = Router.serve.__code__
            walks = []
            for _ in range(TIMES):
                with tracer.recording(serve, packages=("gateway", "console", "connectors")) as walk:
                    assert await answered(program.application, scope) == OK
                walks.append(walk)
            await program.close()
            return common(walks)

        return asyncio.run(work())


def posted(path: str, token: str) -> dict[str, Any]:
    headers = {
        b"host": b"127.0.0.1",
        b"authorization": f"Bearer {token}".encode(),
        b"content-type": V2_TYPE,
        b"content-length": str(len(V2_BODY)).encode(),
    }
    return {
        "type": "http",
        "http_version": "1.1",
        "scheme": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": list(headers.items()),
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 8000),
    }


async def answered(application: Callable[..., Any], scope: Mapping[str, Any]) -> int:
    """Hand a scope to an application, and return the status of its answer."""
    body = [{"type": "http.request", "body": V2_BODY, "more_body": False}]
    statuses: list[int] = []

    async def receive() -> Mapping[str, Any]:
        if not body:
            await asyncio.Event().wait()
        return body.pop()

    async def send(message: Mapping[str, Any]) -> None:
        statuses.extend([message["status"]] if "status" in message else [])

    await application(dict(scope), receive, send)
    return statuses[0]


def console_page(tracer: Tracer, folder: Path) -> Walk:
    """Open the list of topics as an administrator."""
    collector = Told()
    live.use(collector)
    with sqlite_databases(folder):
        cluster = cluster_rows.cluster()
        cluster_rows.broker(cluster, 1)
        cluster_rows.topic(cluster, TOPIC)
        collector.put(topic(TOPIC))
        browser = Client()
        browser.force_login(users.user("alice"))
        for _ in range(WARM):
            assert browser.get("/topics").status_code == OK
        view = inspect.unwrap(resolve("/topics").func).__code__
        walks = []
        for _ in range(TIMES):
            with tracer.recording(view) as walk:
                assert browser.get("/topics").status_code == OK
            walks.append(walk)
    live.use(None)
    return common(walks)
