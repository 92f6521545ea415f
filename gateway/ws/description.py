"""Describes all frames for programs: AsyncAPI, with a JSON Schema for each.

It complements `/v3/openapi.json`, which describes the calls and links to this document.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, get_args

import msgspec

from gateway.rest.calls import JSON, Receive, Scope, Send
from gateway.ws.frames import PROTOCOL, ClientFrame, ServerFrame

ADDRESS: Final = "/ws/v1"
PATH: Final = "/ws/v1/frames.json"
METHODS: Final = ("GET", "HEAD")
ABOUT: Final = """\
One socket, whose text messages are JSON objects; the field `type` names the frame.

A program sends its token in the handshake (`Authorization: Bearer …`), a page in its first frame.
The server sends records only within the credit of their subscription. Error codes are those of
REST; a close code is 4000 plus the HTTP status of its reason, or 1012 when the worker stops.
"""
# The purpose of each frame; a frame without a row fails the test of this module.
OF_CLIENT: Final[Mapping[str, str]] = {
    "auth": "Authenticate with a token, as the first frame; later renew it with another token of "
    "the same name.",
    "produce": "Write a record; answered by `receipt` or `error`, perhaps after `throttle`.",
    "subscribe": "Read topics, those that match a pattern, or partitions; with `group` as a "
    "member.",
    "credit": "Allow the server to send more records.",
    "ack": "Commit offsets of a group: the offset after the last processed record.",
    "pause": "Pause a subscription, or some of its partitions.",
    "resume": "Resume the subscription, or some of its partitions.",
    "seek": "Seek in partitions of the subscription.",
    "unsubscribe": "End a subscription.",
    "ping": "Ask for a `pong`.",
}
OF_SERVER: Final[Mapping[str, str]] = {
    "ready": "The user or program of the socket, and its cluster.",
    "receipt": "A record is written.",
    "throttle": "The caller exceeds its write limit; the record is sent after this number of "
    "milliseconds.",
    "assigned": "The partitions of a subscription and their positions; later the added ones.",
    "batch": "Consecutive records of one partition.",
    "acked": "The offsets that are now committed for a group.",
    "gap": "Offsets that are not delivered, and why.",
    "revoked": "Partitions that a subscription no longer reads, and whether it has ended.",
    "error": "The failure of an `id`, of a `sid`, or of the socket.",
    "pong": "The answer to `ping`.",
}
CHANNEL: Final = {"$ref": "#/channels/socket"}


async def application(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001 - ASGI's own
    """Answer with the description, without authentication."""
    is_asked = scope["method"] in METHODS
    body = text() if is_asked else b""
    headers = [
        (b"content-type", JSON.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"allow", ", ".join(METHODS).encode()),
    ]
    status = 200 if is_asked else 405
    await send({"type": "http.response.start", "status": status, "headers": headers})
    sent = b"" if scope["method"] == "HEAD" else body
    await send({"type": "http.response.body", "body": sent})


@cache
def text() -> bytes:
    return json.dumps(document()).encode()


def document() -> dict[str, Any]:
    kinds = (*get_args(ClientFrame), *get_args(ServerFrame))
    _, schemas = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    messages = {
        name: {
            "name": name,
            "summary": sentence,
            "contentType": JSON,
            "payload": {"$ref": f"#/components/schemas/{name.capitalize()}"},
        }
        for name, sentence in {**OF_CLIENT, **OF_SERVER}.items()
    }
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Samsa, over WebSockets", "version": PROTOCOL, "description": ABOUT},
        "defaultContentType": JSON,
        "channels": {
            "socket": {
                "address": ADDRESS,
                "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in messages},
            }
        },
        # From the server's side, as AsyncAPI requires.
        "operations": {
            "hear": {"action": "receive", "channel": CHANNEL, "messages": _named(OF_CLIENT)},
            "tell": {"action": "send", "channel": CHANNEL, "messages": _named(OF_SERVER)},
        },
        "components": {"messages": messages, "schemas": schemas},
    }


def _named(names: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"$ref": f"#/channels/socket/messages/{name}"} for name in names]
