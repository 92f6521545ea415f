"""The gateway's own address, which probes ask without a token."""

import asyncio
from typing import Any

import pytest

from gateway.rest import root


async def asked(method: str) -> tuple[int, dict[str, str], bytes]:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        raise AssertionError("nobody reads a body here")

    await root.application(
        {"type": "http", "method": method, "path": "/", "headers": []}, receive, send
    )
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(one.get("body", b"") for one in sent[1:])


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_probe_reads_an_empty_object(method: str) -> None:
    status, headers, body = asyncio.run(asked(method))

    assert (status, body) == (200, b"{}")
    assert headers["content-type"] == "application/vnd.kafka.v2+json"


def test_other_methods_are_told_which_there_are() -> None:
    assert asyncio.run(asked("OPTIONS"))[::2] == (200, b"")
    status, headers, body = asyncio.run(asked("POST"))

    assert (status, headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert b'"error_code": 405' in body
