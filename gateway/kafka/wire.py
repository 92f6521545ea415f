"""Sends single requests in Kafka's protocol, for which the client library has no call.

One connection per request, without authentication: if brokers require it, the request fails.
"""

import socket
import struct
from typing import Final

from gateway.kafka.connection import Connection, Deadline
from gateway.kafka.errors import KafkaFailure, failure, name_of

# The longest answer here has a sentence for each of some configs.
MAX_ANSWER_BYTES: Final = 1_048_576
CORRELATION: Final = 1
PLAIN: Final = "plaintext"

DESCRIBE_CONFIGS: Final = 32
INCREMENTAL_ALTER_CONFIGS: Final = 44
DESCRIBE_ACLS: Final = 29
FIND_COORDINATOR: Final = 10
CONSUMER_GROUP_HEARTBEAT: Final = 68
DESCRIBE_GROUPS: Final = 15
LIST_GROUPS: Final = 16
CONSUMER_GROUP_DESCRIBE: Final = 69


class Reader:
    """Decodes an answer from its front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, form: str) -> int:
        [found] = struct.unpack_from(f">{form}", self._data, self._at)
        self._at += struct.calcsize(form)
        return int(found)

    def text(self) -> str:
        """Return a string; a null one is empty."""
        return self._taken(self.number("h")).decode("utf-8", "replace")

    def nullable_text(self) -> str | None:
        size = self.number("h")
        return None if size < 0 else self._taken(size).decode("utf-8", "replace")

    def data(self) -> bytes:
        """Return bytes; null ones are empty."""
        return self._taken(self.number("i"))

    def count(self) -> int:
        """Return the length of a list."""
        return self._checked(self.number("i"))

    # The encoding of flexible versions: lengths plus one, as varints of seven bits a byte.

    def compact_text(self) -> str:
        return self._taken(self._varint() - 1).decode("utf-8", "replace")

    def compact_count(self) -> int:
        return self._checked(self._varint() - 1)

    def skip_tags(self) -> None:
        """Skip tagged fields."""
        for _ in range(self._checked(self._varint())):
            self._varint()
            self._taken(self._varint())

    def skip(self, size: int) -> None:
        self._taken(size)

    def _varint(self) -> int:
        found = shift = 0
        # A length has 32 bits.
        for shift in range(0, 35, 7):
            byte = self.number("B")
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
        raise struct.error("a length has more than five bytes")

    def _taken(self, size: int) -> bytes:
        size = self._checked(size)
        self._at += size
        return self._data[self._at - size : self._at]

    def _checked(self, size: int) -> int:
        """Return a size that fits into the rest; 0 for that of null, which is negative."""
        if size > len(self._data) - self._at:
            raise struct.error(f"a field of {size} bytes has only {len(self._data) - self._at}")
        return max(0, size)


def text(words: str | None) -> bytes:
    """Return a string with its length before it."""
    if words is None:
        return struct.pack(">h", -1)
    data = words.encode()
    if len(data) >= 2**15:
        raise failure("INVALID_REQUEST", f"{words[:40]}…", f"has {len(data)} bytes, 32767 fit")
    return struct.pack(">h", len(data)) + data


def compact(words: str) -> bytes:
    """Return a string in the encoding of flexible versions."""
    data = words.encode()
    return varint(len(data) + 1) + data


def varint(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def ask(
    connection: Connection,
    api: int,
    version: int,
    body: bytes,
    value: str,
    *,
    max_bytes: int = MAX_ANSWER_BYTES,
) -> Reader:
    """Return the answer of the first broker that accepts the request."""
    if connection.properties.get("security.protocol", PLAIN).lower() != PLAIN:
        raise failure("UNSUPPORTED_VERSION", value, "this cannot be asked of brokers with a login")
    deadline = connection.deadline()
    told = failure("BROKER_NOT_AVAILABLE", connection.bootstrap)
    for address in connection.bootstrap.split(","):
        host, _, port = address.strip().rpartition(":")
        try:
            return _asked(
                (host.strip("[]"), int(port)),
                _framed(connection, api, version, body),
                deadline,
                max_bytes,
            )
        except TimeoutError:
            told = failure("REQUEST_TIMED_OUT", value)
        except (OSError, ValueError, struct.error) as error:
            told = failure("BROKER_NOT_AVAILABLE", address.strip(), str(error))
    raise told


def _framed(connection: Connection, api: int, version: int, body: bytes) -> bytes:
    head = struct.pack(">hhi", api, version, CORRELATION) + text(connection.client_id)
    return struct.pack(">i", len(head) + len(body)) + head + body


def _asked(address: tuple[str, int], question: bytes, deadline: Deadline, max_bytes: int) -> Reader:
    with socket.create_connection(address, deadline.left()) as link:
        link.sendall(question)
        [size] = struct.unpack(">i", _taken(link, 4, deadline))
        if not 4 <= size <= max_bytes:
            raise ValueError(f"an answer of {size} bytes is not a Kafka response")
        answer = Reader(_taken(link, size, deadline))
    answer.number("i")
    return answer


def _taken(link: socket.socket, size: int, deadline: Deadline) -> bytes:
    found = bytearray()
    while len(found) < size:
        link.settimeout(deadline.left())
        piece = link.recv(size - len(found))
        if not piece:
            raise ConnectionResetError("the broker hung up")
        found += piece
    return bytes(found)


def refused(code: int, words: str, value: str) -> KafkaFailure:
    return failure(name_of(code), value, words)
