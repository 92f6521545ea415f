"""The port of Kafka Connect's REST: what comes there is what comes below its prefix."""

import asyncio
from typing import Any

import pytest

from gateway.connect_port import AT_ROOT, ConnectPort

Scope = dict[str, Any]


def asked(scope: Scope, *, port: int) -> Scope:
    """Return what the application behind the port is asked."""
    seen: list[Scope] = []

    async def application(scope: Scope, _receive: Any, _send: Any) -> None:
        seen.append(scope)

    async def nothing(*_: Any) -> Any:
        raise AssertionError("nobody asks")

    door = ConnectPort(application)
    door.port = port
    asyncio.run(door(scope, nothing, nothing))
    return seen[0]


def call(path: str, server: tuple[str, int | None] | None, raw: bytes | None = None) -> Scope:
    return {"type": "http", "path": path, "raw_path": raw, "server": server}


def test_a_call_at_its_port_is_one_below_the_prefix() -> None:
    found = asked(call("/connectors/a/b", ("::1", 8083), b"/connectors/a%2Fb"), port=8083)

    assert found["path"] == "/connect/connectors/a/b"
    assert found["raw_path"] == b"/connect/connectors/a%2Fb"
    assert found[AT_ROOT]


@pytest.mark.parametrize(
    ("server", "port"),
    [(("127.0.0.1", 8000), 8083), (("/run/web.sock", None), 8083), (("::1", 8083), 0), (None, 1)],
)
def test_other_calls_stay_what_they_are(server: Any, port: int) -> None:
    scope = call("/connectors", server)

    assert asked(scope, port=port) == scope
