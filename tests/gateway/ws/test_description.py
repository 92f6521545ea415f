"""The description of the frames: all of them, as they are."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from gateway.kafka.readers.values import Gap, GapReason
from gateway.kafka.values import Delivered, Place, Record, TimestampKind
from gateway.rest.codes import ApiError, Code
from gateway.rest.records.question import Format
from gateway.ws import description, frames
from gateway.ws.endpoint import PATH
from tests.fakes.asgi import asked

PLACE = Place(topic="orders", partition=0)
RECORD = Record(
    topic="orders",
    partition=0,
    offset=4,
    key=None,
    value=b"\xff",
    headers=(("h", b"1"), ("n", None)),
    timestamp_ms=5,
    timestamp_kind=TimestampKind.CREATE_TIME,
)
HOWTO = Path("docs/howto/use-websockets.md")
SPOKEN = [
    frames.ready("c", "token:t"),
    frames.pong(None),
    frames.pong("p"),
    frames.receipt("1", "orders", Delivered(partition=0, offset=1, timestamp_ms=None)),
    frames.throttle(0.5, "1"),
    frames.error(ApiError(Code.TOO_MANY, "full")),
    frames.error(ApiError(Code.TOO_MANY, "full"), sid="a"),
    frames.error(ApiError(Code.TOO_MANY, "full"), id="1"),
    frames.assigned("a", {PLACE: 3}),
    frames.joined("a", [PLACE]),
    frames.acked("a", {PLACE: 3}),
    frames.revoked("a", [PLACE], "unsubscribed", is_over=True),
    *(frames.gap("a", Gap(place=PLACE, start=1, next=2, reason=reason)) for reason in GapReason),
    *(frames.batch("a", [RECORD], form, end) for form in Format for end in (None, 9)),
]


def refs(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {value["$ref"]} if "$ref" in value else set().union(*map(refs, value.values()))
    return set().union(*map(refs, value)) if isinstance(value, list) else set()


def found(document: Any, ref: str) -> Any:
    for step in ref.removeprefix("#/").split("/"):
        document = document[step]
    return document


def tags(kinds: object) -> set[str]:
    return {kind.__name__.lower() for kind in get_args(kinds)}


@pytest.mark.parametrize("text", SPOKEN)
def test_what_the_server_says_is_what_is_described(text: str) -> None:
    frame = msgspec.json.decode(text, type=frames.ServerFrame)

    assert json.loads(text)["type"] == type(frame).__name__.lower()


def test_every_frame_is_tried_described_and_in_the_guide() -> None:
    guide = HOWTO.read_text()
    said, spoken = guide.partition("## Frames of the client")[2].split("## Frames of the server")
    rows = re.compile(r"^\| (`.+?) \|", re.MULTILINE)

    def named(text: str) -> set[str]:
        listed = text.partition("\n## ")[0]
        return {name for row in rows.findall(listed) for name in re.findall(r"`(\w+)`", row)}

    assert {json.loads(text)["type"] for text in SPOKEN} == set(description.OF_SERVER)
    assert named(said) == set(description.OF_CLIENT) == tags(frames.ClientFrame)
    assert named(spoken) == set(description.OF_SERVER) == tags(frames.ServerFrame)


def test_whatever_the_description_names_is_in_it() -> None:
    document = json.loads(description.text())

    for ref in refs(document):
        assert found(document, ref)
    assert len(document["channels"]["socket"]["messages"]) == 20
    assert document["channels"]["socket"]["address"] == PATH


def test_everybody_may_read_the_description() -> None:
    async def ask(method: str) -> Any:
        return await asked(description.application, method, description.PATH, headers={})

    answer = asyncio.run(ask("GET"))
    assert (answer.status, answer.json()["asyncapi"]) == (200, "3.0.0")
    assert asyncio.run(ask("HEAD")).body == b""
    refused = asyncio.run(ask("POST"))
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")
