"""Creates and recognises the text of an API token, and detects typing errors.

Pure. A token is 256 random bits and a checksum, with a prefix that scanners for leaked secrets can
find. Only a digest is stored, and it needs no slow hash: random bits cannot be guessed.
"""

import base64
import hashlib
import re
import secrets
from typing import Final
from zlib import crc32

PREFIX: Final = "samsa_"
RANDOM_BYTES: Final = 32
CHECKSUM_BYTES: Final = 4
# 36 bytes in base64, without any padding.
BODY_CHARS: Final = 48
CHARS: Final = len(PREFIX) + BODY_CHARS
# Shown to recognise a token: 36 of its 256 bits.
SHOWN_CHARS: Final = len(PREFIX) + 6
FORM: Final = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{{BODY_CHARS}}}", re.ASCII)


class BadToken(ValueError):
    """An invalid token; the sentence says why and never repeats the text."""


def new(random: bytes | None = None) -> str:
    """Return the text of a new token, of 32 random bytes."""
    body = secrets.token_bytes(RANDOM_BYTES) if random is None else random
    assert len(body) == RANDOM_BYTES, "as many as the form has room for"
    return f"{PREFIX}{base64.urlsafe_b64encode(body + checksum(body)).decode('ascii')}"


def check(text: str) -> None:
    """Raise BadToken for a text that was cut or mistyped, or is no token."""
    if not text.startswith(PREFIX):
        raise BadToken(f"this is not a token of Samsa: one begins with {PREFIX}")
    if len(text) != CHARS:
        raise BadToken(f"the token has {len(text)} characters of {CHARS}: copy all of it")
    if not FORM.fullmatch(text):
        raise BadToken("the token has characters that no token has: copy it again")
    decoded = base64.urlsafe_b64decode(text[len(PREFIX) :])
    if checksum(decoded[:RANDOM_BYTES]) != decoded[RANDOM_BYTES:]:
        raise BadToken("the token was mistyped, its checksum is wrong: copy it again")


def digest(text: str) -> str:
    """Return the digest under which a token is stored."""
    return hashlib.sha256(text.encode()).hexdigest()


def shown(text: str) -> str:
    """Return the beginning of a token, by which people recognise it."""
    return text[:SHOWN_CHARS]


def holds_token(text: str) -> bool:
    """Tell whether a text, such as a URL, contains a token."""
    return FORM.search(text) is not None


def checksum(body: bytes) -> bytes:
    return crc32(body).to_bytes(CHECKSUM_BYTES, "big")
