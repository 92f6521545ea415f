"""Bodies that arrive as gzip, and are counted as what they unpack to."""

import asyncio
import gzip
import zlib
from collections.abc import Sequence

import pytest

from gateway.health import Message, Receive, Scope, Send
from gateway.rest.calls import Call
from gateway.rest.codes import ApiError, Code
from gateway.rest.incoming import Budget
from gateway.rest.inflating import COUNTED_FROM, PIECE_BYTES, plain
from gateway.rest.produce.desk import MAX_BODY_BYTES
from tests.fakes.asgi import Answer, asked, scope_of
from tests.fakes.rest_door import CLUSTER, WRITER
from tests.gateway.test_dispatch import View, dispatching

TEXT = b'{"value":{"type":"JSON","data":1}}' * 10_000


def unpacked(
    pieces: Sequence[bytes], *, encoding: str = "gzip", limit: int = MAX_BODY_BYTES
) -> tuple[bytes, int]:
    """Return the body that a call gets, and its largest piece."""
    coming = [
        {"type": "http.request", "body": piece, "more_body": place < len(pieces) - 1}
        for place, piece in enumerate(pieces)
    ]
    largest = 0

    async def receive() -> Message:
        return coming.pop(0) if coming else {"type": "http.disconnect"}

    async def read() -> bytes:
        nonlocal largest
        scope, plain_receive = plain(
            scope_of("POST", "/topics/t", {"Content-Encoding": encoding}), receive
        )
        assert not any(name == b"content-encoding" for name, _ in scope["headers"])

        async def noted() -> Message:
            nonlocal largest
            message = await plain_receive()
            largest = max(largest, len(message.get("body", b"")))
            return message

        call = Call(scope, noted, nothing, caller=WRITER, cluster_id=CLUSTER, parameters={})
        async with Budget().whole(call, limit) as found:
            return found

    return asyncio.run(read()), largest


async def nothing(_message: Message) -> None:
    raise AssertionError("nothing is answered")


@pytest.mark.parametrize("cut", [1, 10, 1_000, 10**9])
@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "x-gzip"])
def test_a_body_arrives_as_it_was_packed(cut: int, encoding: str) -> None:
    packed = gzip.compress(TEXT[: len(TEXT) // 2]) + gzip.compress(TEXT[len(TEXT) // 2 :])

    found, largest = unpacked(
        [packed[at : at + cut] for at in range(0, len(packed), cut)], encoding=encoding
    )

    assert found == TEXT
    assert largest <= PIECE_BYTES


def test_a_body_without_encoding_passes_unchanged() -> None:
    async def receive() -> Message:
        raise AssertionError("nothing is received")

    for headers in ({}, {"Content-Encoding": "identity"}, {"Content-Encoding": ""}):
        scope = scope_of("POST", "/topics/t", headers)
        assert plain(scope, receive) == (scope, receive)


@pytest.mark.parametrize(
    ("pieces", "code", "words"),
    [
        ([b"[1]"], Code.BAD_REQUEST, "is not gzip, as Content-Encoding says"),
        ([gzip.compress(TEXT)[:-9]], Code.BAD_REQUEST, "ends in the middle"),
        ([gzip.compress(TEXT), b"xxxx"], Code.BAD_REQUEST, "is not gzip"),
        ([zlib.compress(TEXT)], Code.BAD_REQUEST, "is not gzip"),
        ([gzip.compress(bytes(MAX_BODY_BYTES + 1))], Code.TOO_LARGE, "times its"),
    ],
)
def test_a_body_that_cannot_be_unpacked_is_refused(
    pieces: list[bytes], code: Code, words: str
) -> None:
    with pytest.raises(ApiError) as refused:
        unpacked(pieces)

    assert refused.value.code is code
    assert words in refused.value.message


def test_plain_bytes_count_and_not_packed_ones() -> None:
    size = COUNTED_FROM - 1
    found, largest = unpacked([gzip.compress(bytes(size))], limit=size)

    assert (len(found), largest) == (size, PIECE_BYTES)
    with pytest.raises(ApiError, match="fit: send less in one call") as refused:
        unpacked([gzip.compress(bytes(size))], limit=size - 1)
    assert refused.value.code is Code.TOO_LARGE


async def bare(_scope: Scope, receive: Receive, send: Send) -> None:
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def post(path: str, encoding: str, body: bytes) -> Answer:
    view = View()
    headers = {"content-encoding": encoding, "content-length": str(len(body))}
    answer = asyncio.run(asked(dispatching(view), "POST", path, body=[body], headers=headers))
    assert answer is not None
    answer.headers["given"] = view.body.decode("latin-1")
    return answer


@pytest.mark.parametrize("path", ["/v3/clusters", "/connect/connectors"])
def test_views_get_plain_bodies_and_other_encodings_are_refused_by_name(path: str) -> None:
    served = post(path, "gzip", gzip.compress(b"{}"))
    refused = post(path, "br", b"{}")
    page = post("/topics/new", "br", b"a=b")

    assert (served.status, served.headers["given"]) == (200, "{}")
    assert refused.status == 415
    assert "Content-Encoding is 'br'" in refused.json()["message"]
    assert refused.json()["error_code"] == 415
    # Forms of browsers are none of its business.
    assert page.status == 200
