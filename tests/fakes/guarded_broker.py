"""A broker that requires authentication: it answers with our codecs, optionally over TLS.

It has no topics. Each connection is served in a thread until the other side goes.
"""

import base64
import hashlib
import hmac
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from brokers.protocol.apis import APIS
from brokers.protocol.codec import codec
from brokers.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from brokers.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from brokers.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from brokers.protocol.messages.sasl_handshake import SaslHandshakeResponse
from brokers.protocol.schema import Message

HOST = "127.0.0.1"
HEAD = struct.Struct(">hhih")
SIZE = struct.Struct(">i")
API_VERSIONS, METADATA, HANDSHAKE, AUTHENTICATE = 18, 3, 17, 36
SALT, ITERATIONS = b"salt-of-tests", 4096
FAILED = 58
UNSUPPORTED = 33


@dataclass
class GuardedBroker:
    """One user, one mechanism."""

    user: str
    password: str = field(repr=False)
    mechanism: str = "PLAIN"
    # Of certificate and key; without, it speaks plain.
    context: ssl.SSLContext | None = None
    # Who got in, in order.
    logins: list[str] = field(default_factory=list)
    port: int = 0

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"


@contextmanager
def guarded(broker: GuardedBroker) -> Iterator[GuardedBroker]:
    with socket.create_server((HOST, 0)) as server:
        broker.port = server.getsockname()[1]
        threading.Thread(target=accept, args=(server, broker), daemon=True).start()
        yield broker
        # Wakes the thread, which close alone would not.
        server.shutdown(socket.SHUT_RDWR)


def accept(server: socket.socket, broker: GuardedBroker) -> None:
    while True:
        try:
            plain, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=serve, args=(plain, broker), daemon=True).start()


def serve(plain: socket.socket, broker: GuardedBroker) -> None:
    try:
        with plain if broker.context is None else secured(plain, broker.context) as connection:
            talk(connection, broker)
    except OSError:
        # The other side did not like us, or has gone.
        plain.close()


def secured(plain: socket.socket, context: ssl.SSLContext) -> socket.socket:
    return context.wrap_socket(plain, server_side=True)


def talk(connection: socket.socket, broker: GuardedBroker) -> None:
    stream = connection.makefile("rb")
    login = Scram(broker) if broker.mechanism.startswith("SCRAM") else Plain(broker)
    is_known = False
    while size := stream.read(SIZE.size):
        data = stream.read(SIZE.unpack(size)[0])
        key, version, correlation, length = HEAD.unpack_from(data)
        api = APIS[key]
        body = data[HEAD.size + length + (1 if api.is_flexible(version) else 0) :]
        asked: Any = codec(api.request, version).decode(body)
        if key == API_VERSIONS:
            answer: Message = every_version()
        elif key == HANDSHAKE:
            is_offered = asked.mechanism == broker.mechanism
            code = 0 if is_offered else UNSUPPORTED
            answer = SaslHandshakeResponse(error_code=code, mechanisms=[broker.mechanism])
        elif key == AUTHENTICATE:
            answer, is_known = login.step(bytes(asked.auth_bytes))
        elif is_known:
            row = MetadataResponseBroker(node_id=1, host=HOST, port=broker.port)
            answer = MetadataResponse(brokers=[row], topics=[])
        else:
            return
        head = SIZE.pack(correlation)
        if api.is_flexible(version) and key != API_VERSIONS:
            head += b"\0"
        packed = head + b"".join(codec(api.response, version).encode(answer))
        connection.sendall(SIZE.pack(len(packed)) + packed)


def every_version() -> ApiVersionsResponse:
    rows = [
        ApiVersion(api_key=key, min_version=0, max_version=99)
        for key in (1, 2, METADATA, HANDSHAKE, API_VERSIONS, AUTHENTICATE)
    ]
    return ApiVersionsResponse(error_code=0, api_keys=rows)


def refusal() -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=FAILED, error_message="who?", auth_bytes=b"")


class Plain:
    def __init__(self, broker: GuardedBroker) -> None:
        self._broker = broker

    def step(self, token: bytes) -> tuple[SaslAuthenticateResponse, bool]:
        if token != f"\0{self._broker.user}\0{self._broker.password}".encode():
            return refusal(), False
        self._broker.logins.append(self._broker.user)
        return SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=b""), True


class Scram:
    """The other side of RFC 5802, with SHA-512."""

    def __init__(self, broker: GuardedBroker) -> None:
        self._broker = broker
        self._first = self._said = ""

    def step(self, token: bytes) -> tuple[SaslAuthenticateResponse, bool]:
        text = token.decode()
        if not self._first:
            self._first = text.removeprefix("n,,")
            nonce = self._first.partition("r=")[2] + "of-the-broker"
            self._said = f"r={nonce},s={base64.b64encode(SALT).decode()},i={ITERATIONS}"
            return self._answer(self._said), False
        without_proof, _, proof = text.rpartition(",p=")
        exchange = f"{self._first},{self._said},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac("sha512", self._broker.password.encode(), SALT, ITERATIONS)
        key = hmac.digest(salted, b"Client Key", "sha512")
        signature = hmac.digest(hashlib.sha512(key).digest(), exchange, "sha512")
        expected = bytes(one ^ other for one, other in zip(key, signature, strict=True))
        if base64.b64decode(proof) != expected:
            return refusal(), False
        self._broker.logins.append(self._broker.user)
        server = hmac.digest(hmac.digest(salted, b"Server Key", "sha512"), exchange, "sha512")
        return self._answer(f"v={base64.b64encode(server).decode()}"), True

    def _answer(self, text: str) -> SaslAuthenticateResponse:
        return SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=text.encode())
