"""A client of an ASGI application, without a server between them."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote


@dataclass(slots=True, kw_only=True)
class Answer:
    status: int
    headers: dict[str, str]
    pieces: list[bytes] = field(default_factory=list)
    is_ended: bool = False

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    def json(self) -> Any:
        return json.loads(self.body)


def scope_of(method: str, target: str, headers: Mapping[str, str]) -> dict[str, Any]:
    """Return the scope that uvicorn makes of a request."""
    path, _, query = target.partition("?")
    return {
        "type": "http",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 50_000),
        "scheme": "http",
    }


async def asked(
    application: Callable[[dict[str, Any], Any, Any], Awaitable[None]],
    method: str,
    target: str,
    *,
    body: Sequence[bytes] = (),
    headers: Mapping[str, str],
) -> Answer | None:
    """Ask, send the body in these pieces, and leave; None where nothing was answered."""
    coming = [
        {"type": "http.request", "body": piece, "more_body": place < len(body) - 1}
        for place, piece in enumerate(body or [b""])
    ]
    answers: list[Answer] = []

    async def receive() -> Mapping[str, Any]:
        return coming.pop(0) if coming else {"type": "http.disconnect"}

    async def send(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            told = {name.decode(): value.decode() for name, value in message["headers"]}
            answers.append(Answer(status=message["status"], headers=told))
            return
        answers[-1].pieces.append(message["body"])
        answers[-1].is_ended = not message.get("more_body")

    await application(scope_of(method, target, headers), receive, send)
    return answers[-1] if answers else None
