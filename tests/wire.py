"""A client that blocks and believes nothing: one connection, one request at a time, our codecs.

For tests that must say exactly what is asked, of any broker of Kafka's protocol, and hear exactly
what is answered. A broker that is gone is an OSError.
"""

import socket
import struct
from types import TracebackType
from typing import Any, Self

from brokers.protocol.apis import APIS
from brokers.protocol.codec import codec
from brokers.protocol.schema import Message
from tests.fakes.listener import request_frame

SECONDS = 30.0
SIZE = struct.Struct(">i")
API_VERSIONS = 18


class Wire:
    """One connection. Used as a context manager."""

    def __init__(self, address: str, *, seconds: float = SECONDS) -> None:
        host, _, port = address.split(",", maxsplit=1)[0].rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=seconds)
        self._stream = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def send(self, message: Message, version: int) -> None:
        self._socket.sendall(request_frame(message, version))

    def answer(self, message: Message, version: int) -> Any:
        """The answer to what was sent."""
        assert message.KEY is not None
        api = APIS[message.KEY]
        (size,) = SIZE.unpack(self._read(SIZE.size))
        # The correlation id, and tagged fields of which there are none.
        head = 5 if api.is_flexible(version) and api.key != API_VERSIONS else 4
        return codec(api.response, version).decode(self._read(size)[head:])

    def ask(self, message: Message, version: int) -> Any:
        self.send(message, version)
        return self.answer(message, version)

    def _read(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            raise ConnectionResetError("the broker has closed the connection")
        return data
