"""Takes secrets out of what is shown, as they were written and as others write them.

A server may repeat a password percent-encoded, in base64 or within JSON; whoever reads a trace
decodes that in a moment. Pure.
"""

import base64
import html
import json
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus

from connectors.sdk.configs import MASK

# Shorter secrets are words that stand in every trace; a mask would only tell where.
MIN_SECRET_CHARS: Final = 3
# Each secret is looked for in some thirty forms, and a trace is cut to 16,000 characters later on:
# of a text that is longer than this nobody sees the end.
MAX_TEXT_CHARS: Final = 262_144
# Of a longer secret (a chain of certificates) forms are made of its beginning, and of its lines.
MAX_ENCODED_CHARS: Final = 16_384
# Lines of a secret that are masked each by itself: those of a key, and no words.
MIN_LINE_CHARS: Final = 16
MAX_LINES: Final = 500
# A piece of base64 that stands for fewer characters of a secret is a word that many texts have.
MIN_PIECE_CHARS: Final = 6


def masked(text: str, secrets: Iterable[str]) -> str:
    """Return a text with a mask in the place of each secret; a long text is cut."""
    forms = _forms(secrets)
    if not forms:
        return text
    is_cut = len(text) > MAX_TEXT_CHARS
    text = text[:MAX_TEXT_CHARS]
    for form in forms:
        text = text.replace(form, MASK)
    # What was cut may have cut a secret, of which a part would stay.
    return text[: max(0, len(text) - len(forms[0]))] if is_cut else text


def holds(text: str, secrets: Iterable[str]) -> bool:
    """Tell whether a text has a secret in it, in any form."""
    return any(form in text for form in _forms(secrets))


def _forms(secrets: Iterable[str]) -> list[str]:
    """Return all that is to be masked, the longest first: one secret may be a part of another."""
    found = {
        form
        for secret in secrets
        if len(secret) >= MIN_SECRET_CHARS
        for form in _written(secret)
        if len(form) >= MIN_SECRET_CHARS
    }
    return sorted(found, key=lambda form: (-len(form), form))


def _written(secret: str) -> Iterator[str]:
    yield secret
    yield from _lines(secret)
    begin = secret[:MAX_ENCODED_CHARS]
    # As it stands in the repr of a text, in JSON, in HTML.
    yield repr(begin)[1:-1]
    yield json.dumps(begin)[1:-1]
    yield json.dumps(begin).replace("/", "\\/")[1:-1]
    yield json.dumps(begin, ensure_ascii=False)[1:-1]
    yield html.escape(begin)
    try:
        data = begin.encode()
    except UnicodeEncodeError:
        # Half a character, which no other form has.
        return
    for encoded in (quote(begin), quote(begin, safe=""), quote_plus(begin)):
        yield encoded
        yield _with_small_escapes(encoded)
    yield repr(data)[2:-1]
    yield data.hex()
    yield data.hex().upper()
    yield from _base64(data)


def _lines(secret: str) -> Iterator[str]:
    lines = [line.strip() for line in secret.splitlines()[:MAX_LINES]]
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= MIN_LINE_CHARS)


def _with_small_escapes(encoded: str) -> str:
    """Return a percent-encoded text with its hexadecimal digits in lower case."""
    parts = encoded.split("%")
    return "%".join([parts[0], *(part[:2].lower() + part[2:] for part in parts[1:])])


def _base64(data: bytes) -> Iterator[str]:
    """Yield what of a secret's base64 does not depend on what stands around it.

    Three bytes become four characters, so a secret within a longer text (`user:password`) begins
    at one of three places of such a group.
    """
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + data).decode()
        # The first characters hold bits of what is before, and the last ones of what is behind.
        skipped = (0, 2, 3)[before]
        kept = 4 * (before + len(data)) // 3
        for form in (whole[skipped:kept], whole[skipped:].rstrip("=") if before == 0 else ""):
            if len(form) * 3 // 4 >= MIN_PIECE_CHARS or (before == 0 and form):
                yield form
                yield form.replace("+", "-").replace("/", "_")
