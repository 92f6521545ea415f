"""Derives the keys by which processes of a cluster authenticate, from the cluster's secrets.

A secret is 32 random bytes that only the database and the agents know. An agent hands out keys
derived from it by HKDF-SHA256 (RFC 5869), each with a label of its own, so that a key reveals
neither the secret nor any other key.
"""

import hashlib
import hmac
from enum import Enum
from typing import Final

SECRET_BYTES: Final = 32
# The size of the hash: more would add no security.
KEY_BYTES: Final = 32
HASH_BYTES: Final = 32
MAX_BLOCKS: Final = 255


class Purpose(Enum):
    """The use of a key. The value is its name in the database and the name of its file."""

    INSPECTION = "inspection"  # every page of a broker's inspection port
    METRICS = "metrics"  # `/metrics` of that port, and nothing else
    SESSION = "session"  # signs the sessions of the web servers
    PEER = "peer"  # for authentication between brokers
    TOKEN = "token"  # noqa: S105 - a word; will sign what users show to brokers


def derived(*, secret: bytes, purpose: Purpose, cluster_id: str, key_id: int) -> str:
    """Return a key in text form: its number, a dot, and 64 hexadecimal digits."""
    assert len(secret) == SECRET_BYTES, f"a secret has {SECRET_BYTES} bytes, not {len(secret)}"
    label = f"samsa {purpose.value} {key_id}".encode("ascii")
    key = hkdf_sha256(secret, salt=cluster_id.encode("ascii"), info=label, length=KEY_BYTES)
    return f"{key_id}.{key.hex()}"


def hkdf_sha256(secret: bytes, *, salt: bytes, info: bytes, length: int) -> bytes:
    """Extract and expand, according to RFC 5869."""
    assert 0 < length <= MAX_BLOCKS * HASH_BYTES, f"HKDF cannot make {length} bytes"
    pseudorandom = hmac.digest(salt or bytes(HASH_BYTES), secret, hashlib.sha256)
    made, block = b"", b""
    for number in range(1, -(-length // HASH_BYTES) + 1):
        block = hmac.digest(pseudorandom, block + info + bytes([number]), hashlib.sha256)
        made += block
    return made[:length]
