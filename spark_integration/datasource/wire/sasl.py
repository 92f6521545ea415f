"""SASL authentication with PLAIN (RFC 4616) and SCRAM (RFC 5802), as tokens in and out.

Pure except for the nonce, which the caller may give. SCRAM succeeds only after the broker has
proved that it knows the password too.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Generator
from typing import Final

from spark_integration.datasource.wire.errors import Refused
from spark_integration.datasource.wire.settings import Login

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
# RFC 7677 requires at least this many; more than a million would keep an executor busy for seconds.
MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 1_000_000
# The client uses no channel binding: `n,,` in base64, as sent to the broker.
NO_BINDING: Final = "biws"


def steps(login: Login, *, nonce: str | None = None) -> Generator[bytes, bytes, None]:
    """Yield each token to send; expects the broker's answer from `send`."""
    if login.mechanism == "PLAIN":
        yield f"\0{login.user}\0{login.password}".encode()
        return
    yield from scram(login, nonce or secrets.token_urlsafe(24))


def scram(login: Login, nonce: str) -> Generator[bytes, bytes, None]:
    algorithm = HASHES[login.mechanism]
    user = login.user.replace("=", "=3D").replace(",", "=2C")
    first = f"n={user},r={nonce}"
    answer = yield f"n,,{first}".encode()
    said = fields_of(answer)
    salt, iterations = parameters_of(said, nonce)
    salted = hashlib.pbkdf2_hmac(algorithm, login.password.encode(), salt, iterations)
    without_proof = f"c={NO_BINDING},r={said['r']}"
    exchange = f"{first},{answer.decode()},{without_proof}".encode()
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    signature = hmac.digest(hashlib.new(algorithm, client_key).digest(), exchange, algorithm)
    proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
    final = fields_of((yield f"{without_proof},p={base64.b64encode(proof).decode()}".encode()))
    server_key = hmac.digest(salted, b"Server Key", algorithm)
    expected = base64.b64encode(hmac.digest(server_key, exchange, algorithm)).decode()
    if not hmac.compare_digest(final.get("v", ""), expected):
        raise Refused(
            f"the broker did not prove that it knows the password of {login.user!r}:"
            f" error {final.get('e', 'none')}"
        )


def fields_of(token: bytes) -> dict[str, str]:
    try:
        pairs = [pair.partition("=") for pair in token.decode().split(",")]
    except UnicodeDecodeError:
        return {}
    return {name: value for name, equals, value in pairs if equals}


def parameters_of(said: dict[str, str], nonce: str) -> tuple[bytes, int]:
    """Check the broker's first answer; return the salt and the iteration count."""
    iterations = said.get("i", "")
    try:
        salt = base64.b64decode(said.get("s", ""), validate=True)
    except binascii.Error:
        salt = b""
    if not said.get("r", "").startswith(nonce) or not salt or not iterations.isdecimal():
        raise Refused("the broker's SCRAM answer lacks the client's nonce or a salt")
    if not MIN_ITERATIONS <= int(iterations) <= MAX_ITERATIONS:
        raise Refused(
            f"the broker requests {iterations} SCRAM iterations; the number has to be"
            f" {MIN_ITERATIONS} to {MAX_ITERATIONS}"
        )
    return salt, int(iterations)
