"""The steps of a login: PLAIN (RFC 4616) and SCRAM (RFC 5802), as tokens in and out.

Pure but for the nonce, which the caller may give. A broker has to prove that it knows the password
too, before a SCRAM login counts.
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
# RFC 7677 asks for no fewer; more than a million would keep an executor busy for seconds.
MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 1_000_000
# The client binds to no channel: `n,,` as the broker sees it again.
NO_BINDING: Final = "biws"


def steps(login: Login, *, nonce: str | None = None) -> Generator[bytes, bytes, None]:
    """Yield each token to send; send in what the broker answers to it."""
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
            f"the broker could not prove that it knows the password of {login.user!r}:"
            f" it said {final.get('e', 'nothing')}"
        )


def fields_of(token: bytes) -> dict[str, str]:
    try:
        pairs = [pair.partition("=") for pair in token.decode().split(",")]
    except UnicodeDecodeError:
        return {}
    return {name: value for name, equals, value in pairs if equals}


def parameters_of(said: dict[str, str], nonce: str) -> tuple[bytes, int]:
    """Check what the broker answered first; return the salt and the number of rounds."""
    iterations = said.get("i", "")
    try:
        salt = base64.b64decode(said.get("s", ""), validate=True)
    except binascii.Error:
        salt = b""
    if not said.get("r", "").startswith(nonce) or not salt or not iterations.isdecimal():
        raise Refused("the broker's answer to a SCRAM login has no nonce of ours or no salt")
    if not MIN_ITERATIONS <= int(iterations) <= MAX_ITERATIONS:
        raise Refused(
            f"the broker asks for {iterations} rounds of SCRAM, which has to be"
            f" {MIN_ITERATIONS} to {MAX_ITERATIONS}"
        )
    return salt, int(iterations)
