"""Masks secrets in displayed text, in their original and in encoded forms.

A server may echo a password percent-encoded, in base64 or within JSON, which a reader of the trace
could decode. Pure.
"""

import base64
import html
import json
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus

from connectors.sdk.configs import MASK

# Shorter secrets occur in every trace by chance; a mask would only reveal where.
MIN_SECRET_CHARS: Final = 3
# The search covers some thirty forms of each secret, and a trace is cut to 16,000 characters later:
# the rest of a longer text is never shown.
MAX_TEXT_CHARS: Final = 262_144
# Only the beginning and the lines of a longer secret (a certificate chain) are encoded.
MAX_ENCODED_CHARS: Final = 16_384
# Lines of a secret at least this long are masked individually: lines of a key, not words.
MIN_LINE_CHARS: Final = 16
MAX_LINES: Final = 500
# A piece of base64 for fewer characters of a secret occurs in many texts by chance.
MIN_PIECE_CHARS: Final = 6


def masked(text: str, secrets: Iterable[str]) -> str:
    """Return a text with each secret masked; a long text is cut."""
    forms = _forms(secrets)
    if not forms:
        return text
    is_cut = len(text) > MAX_TEXT_CHARS
    text = text[:MAX_TEXT_CHARS]
    for form in forms:
        text = text.replace(form, MASK)
    # The cut may have left a part of a secret at the end.
    return text[: max(0, len(text) - len(forms[0]))] if is_cut else text


def holds(text: str, secrets: Iterable[str]) -> bool:
    """Return whether a text contains a secret, in any form."""
    return any(form in text for form in _forms(secrets))


def _forms(secrets: Iterable[str]) -> list[str]:
    """Return all forms to mask, longest first: one secret may be part of another."""
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
    # As a Python repr, in JSON and in HTML.
    yield repr(begin)[1:-1]
    yield json.dumps(begin)[1:-1]
    yield json.dumps(begin).replace("/", "\\/")[1:-1]
    yield json.dumps(begin, ensure_ascii=False)[1:-1]
    yield html.escape(begin)
    try:
        data = begin.encode()
    except UnicodeEncodeError:
        # A lone surrogate, which other encodings cannot represent.
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
    """Return a percent-encoded text with lower-case hexadecimal digits."""
    parts = encoded.split("%")
    return "%".join([parts[0], *(part[:2].lower() + part[2:] for part in parts[1:])])


def _base64(data: bytes) -> Iterator[str]:
    """Yield the parts of a secret's base64 that do not depend on the surrounding text.

    Three bytes become four characters, so a secret within a longer text (`user:password`) begins
    at one of three positions in such a group.
    """
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + data).decode()
        # The first characters hold bits of the text before, and the last ones of the text after.
        skipped = (0, 2, 3)[before]
        kept = 4 * (before + len(data)) // 3
        for form in (whole[skipped:kept], whole[skipped:].rstrip("=") if before == 0 else ""):
            if len(form) * 3 // 4 >= MIN_PIECE_CHARS or (before == 0 and form):
                yield form
                yield form.replace("+", "-").replace("/", "_")
