"""The control socket answers its commands and survives whatever else arrives on it."""

import asyncio
import json
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from brokers.supervisor import client, control
from brokers.supervisor.home import Home
from brokers.supervisor.ownership import owned


async def ready(_request: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"ready": True}


def with_server(home: Home, act: Callable[[], Any]) -> Any:
    """Call a function in a thread while a control socket is served."""

    async def scenario() -> Any:
        home.prepare()
        async with owned(home), control.serve(home, {"status": control.Command(run=ready)}):
            return await asyncio.to_thread(act)

    return asyncio.run(scenario())


def sent(home: Home, block: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(home.control_socket()))
        connection.sendall(block)
        return connection.recv(65_536)


def test_a_command_is_answered(tmp_path: Path) -> None:
    home = Home(tmp_path)

    assert with_server(home, lambda: client.ask(home, "status")) == {"ready": True}


@pytest.mark.parametrize("block", [b'{"command": "fly"}\n', b'{"command": [1]}\n', b"[]\n"])
def test_an_unknown_command_is_told_so(tmp_path: Path, block: bytes) -> None:
    home = Home(tmp_path)

    assert json.loads(with_server(home, lambda: sent(home, block))) == {"error": "unknown command"}


@pytest.mark.parametrize("block", [b"no json\n", b"x" * 100_000, b"\xff\xfe\n", b"\n"])
def test_what_is_no_request_ends_its_connection_only(tmp_path: Path, block: bytes) -> None:
    home = Home(tmp_path)

    def act() -> Mapping[str, Any]:
        # It may hang up while we are still sending.
        with suppress(ConnectionError):
            assert sent(home, block) == b""
        return client.ask(home, "status")

    assert with_server(home, act) == {"ready": True}
