"""Sends single requests for which librdkafka has no call, encoded by the brokers' own codec.

One connection per request, without authentication: if brokers require it, the request fails.
"""

import socket
import struct
from typing import Final, TypeVar

from brokers.protocol.codec import codec
from brokers.protocol.errors import DecodeError, EncodeError
from brokers.protocol.schema import Message
from gateway.kafka.connection import Connection, Deadline
from gateway.kafka.errors import failure

A = TypeVar("A", bound=Message)

# The longest answer here has a sentence for each of some configs.
MAX_ANSWER_BYTES: Final = 1_048_576
CORRELATION: Final = 1
PLAIN: Final = "plaintext"


def ask(
    connection: Connection,
    request: Message,
    answer: type[A],
    value: str,
    *,
    version: int,
    max_bytes: int = MAX_ANSWER_BYTES,
) -> A:
    """Return the answer of the first broker that accepts the request."""
    if connection.properties.get("security.protocol", PLAIN).lower() != PLAIN:
        raise failure("UNSUPPORTED_VERSION", value, "not supported if brokers require a login")
    try:
        frame = _frame(connection.client_id, request, version)
    except (EncodeError, UnicodeEncodeError) as error:
        raise failure("INVALID_REQUEST", value, str(error)) from error
    deadline = connection.deadline()
    failed = failure("BROKER_NOT_AVAILABLE", connection.bootstrap)
    for address in connection.bootstrap.split(","):
        host, _, port = address.strip().rpartition(":")
        try:
            data = _exchange((host.strip("[]"), int(port)), frame, deadline, max_bytes)
            return codec(answer, version).decode(data[_head_bytes(request, version) :])
        except TimeoutError:
            failed = failure("REQUEST_TIMED_OUT", value)
        except (OSError, ValueError, DecodeError) as error:
            failed = failure("BROKER_NOT_AVAILABLE", address.strip(), str(error))
    raise failed


def _frame(client_id: str, request: Message, version: int) -> bytes:
    assert request.KEY is not None, "a part of a message cannot be sent by itself"
    name = client_id.encode()
    head = struct.pack(">hhih", request.KEY, version, CORRELATION, len(name)) + name
    if _is_flexible(request, version):
        # No tagged fields.
        head += b"\0"
    body = b"".join(codec(type(request), version).encode(request))
    return struct.pack(">i", len(head) + len(body)) + head + body


def _head_bytes(request: Message, version: int) -> int:
    """Return the length of an answer's head: the correlation id, and no tagged fields."""
    return 5 if _is_flexible(request, version) else 4


def _is_flexible(request: Message, version: int) -> bool:
    return request.FLEXIBLE is not None and version >= request.FLEXIBLE


def _exchange(
    address: tuple[str, int], frame: bytes, deadline: Deadline, max_bytes: int
) -> memoryview:
    with socket.create_connection(address, deadline.left()) as link:
        link.sendall(frame)
        [size] = struct.unpack(">i", _receive(link, 4, deadline))
        if not 4 <= size <= max_bytes:
            raise ValueError(f"an answer of {size} bytes is not a Kafka response")
        return memoryview(_receive(link, size, deadline))


def _receive(link: socket.socket, size: int, deadline: Deadline) -> bytes:
    found = bytearray()
    while len(found) < size:
        link.settimeout(deadline.left())
        piece = link.recv(size - len(found))
        if not piece:
            raise ConnectionResetError("the broker hung up")
        found += piece
    return bytes(found)
