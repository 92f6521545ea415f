"""Reads and writes the headers in front of the body of every request and response.

The version of a header follows from the API and its version: flexible APIs end their headers with
tagged fields. Two exceptions are Kafka's own: the client id keeps its two-byte length in every
version, and an ApiVersions response never has tags, so that a client can read the refusal of an
unsupported version.
"""

import struct
from dataclasses import dataclass
from typing import Final

from brokers.protocol.apis import Api
from brokers.protocol.errors import DecodeError
from brokers.protocol.primitives import skip_tags

API_VERSIONS_KEY: Final = 18

_REQUEST_HEAD: Final = struct.Struct(">hhih")  # key, version, correlation id, length of client id
_RESPONSE_HEAD: Final = struct.Struct(">ii")  # size of the rest, correlation id
_RESPONSE_HEAD_TAGGED: Final = struct.Struct(">iiB")
_MAX_RESPONSE_BYTES: Final = 2**31 - 1  # the size prefix is an int32


@dataclass(slots=True)
class Request:
    """One request on its way to a handler.

    `body` is a view of received bytes, valid only until control returns to the event loop.
    """

    api: Api
    version: int
    correlation_id: int
    client_id: str | None
    body: memoryview
    place: int  # its place in the order of answers


def read_request(frame: memoryview, apis: dict[int, Api], place: int) -> Request:
    """Return the request in a frame; DecodeError if the connection has to be closed.

    An ApiVersions request of any version is accepted: its answer names the supported ones.
    """
    size = len(frame)
    if size < _REQUEST_HEAD.size:
        raise DecodeError(f"a frame of {size} bytes is too short for a request header")
    key, version, correlation_id, length = _REQUEST_HEAD.unpack_from(frame)
    api = apis.get(key)
    if api is None:
        raise DecodeError(f"api key {key} is not served here")
    if not api.serves(version) and (key != API_VERSIONS_KEY or version < 0):
        raise DecodeError(f"{api.name} version {version} is outside of {api.versions}")
    position = _REQUEST_HEAD.size
    client_id = None
    if length >= 0:
        stop = position + length
        if stop > size:
            raise DecodeError(f"a client id of {length} bytes runs past the frame of {size}")
        try:
            client_id = str(frame[position:stop], "utf-8")
        except UnicodeDecodeError as error:
            raise DecodeError(f"the client id is not UTF-8: {error.reason}") from error
        position = stop
    if api.is_flexible(version):
        position = _after_tags(frame, position)
    return Request(api, version, correlation_id, client_id, frame[position:], place)


def _after_tags(frame: memoryview, position: int) -> int:
    try:
        tags = frame[position]
        return skip_tags(frame, position + 1, tags) if tags else position + 1
    except IndexError as error:
        raise DecodeError("the frame ends inside the tagged fields of the header") from error


def response_head(api: Api, version: int, correlation_id: int, body_size: int) -> bytes:
    """Return the size prefix and header of a response whose body has `body_size` bytes."""
    assert body_size <= _MAX_RESPONSE_BYTES - 5, f"no frame can hold {body_size} bytes"
    if api.is_flexible(version) and api.key != API_VERSIONS_KEY:
        return _RESPONSE_HEAD_TAGGED.pack(body_size + 5, correlation_id, 0)
    return _RESPONSE_HEAD.pack(body_size + 4, correlation_id)
