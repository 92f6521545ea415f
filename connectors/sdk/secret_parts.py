"""Finds what of a value nobody else may see, where the rest of it is no secret.

Passwords within URLs, in any value of any config; and what the keys of a connector say of theirs.
Pure. A part that is a reference or a placeholder is no secret, and stays.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import unquote_plus

from connectors.sdk.configs import MASK, Span

# What stands before the host: a name and a password, or only one of them.
LOGIN: Final = re.compile(r"(?:\b|:)([A-Za-z][A-Za-z0-9+.-]{0,40})://([^/?#\s@]*(?:@[^/?#\s@]+)*)@")
# A parameter of a URL; those of JDBC may be parted by semicolons.
PARAMETER: Final = re.compile(r"[?&#]([^=&?#\s]{1,100})=([^&#\s]*)")
PARAMETER_OF_JDBC: Final = re.compile(r"[?&#;]([^=&?#;\s]{1,100})=([^&#;\s]*)")
# In names of parameters that carry a password, a token or a signature: within, and as a whole.
WORDS: Final = re.compile(
    r"passw|pwd|passphrase|secret|token|api[_-]?key|access[_-]?key|credential|signature",
    re.IGNORECASE,
)
NAMES: Final = frozenset({"key", "sig", "auth", "pass", "code", "jwt", "sas", "authorization"})
# Whose user alone may be a token.
WEB: Final = frozenset({"http", "https", "ws", "wss"})
STANDS_FOR: Final = re.compile(r"\$\{[^{}]*\}")


def of_urls(text: str) -> Iterator[Span]:
    """Yield where URLs in a text have passwords and the like."""
    if "://" not in text:
        return
    for login in LOGIN.finditer(text):
        user, colon, _ = login[2].partition(":")
        begin = login.start(2)
        if colon:
            yield begin + len(user) + 1, login.end(2)
        elif login[1].lower() in WEB:
            yield begin, login.end(2)
    pattern = PARAMETER_OF_JDBC if text.lower().startswith("jdbc:") else PARAMETER
    for parameter in pattern.finditer(text):
        if parameter[1].lower() in NAMES or WORDS.search(parameter[1]):
            yield parameter.span(2)


def of_pairs(text: str, separator: str) -> Iterator[Span]:
    """Yield where the values of a text `name:value` stand, of several with a separator between."""
    begin = 0
    for piece in text.split(separator) if separator else [text]:
        name, colon, value = piece.partition(":")
        stripped = value.strip()
        if colon and stripped:
            at = begin + len(name) + 1 + value.index(stripped)
            yield at, at + len(stripped)
        begin += len(piece) + len(separator)


def shown(text: str, spans: Iterable[Span]) -> str:
    """Return a text with a mask in the place of each part."""
    pieces, at = [], 0
    for begin, end in _secret(text, spans):
        pieces += [text[at:begin], MASK]
        at = end
    return "".join([*pieces, text[at:]])


def secrets(text: str, spans: Iterable[Span]) -> Iterator[str]:
    """Yield the parts, as they stand and as they are read."""
    for begin, end in _secret(text, spans):
        yield text[begin:end]
        yield unquote_plus(text[begin:end])


def _secret(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """Yield parts that are secrets, in their order; of two that overlap, the first."""
    last = 0
    for begin, end in sorted(spans):
        if begin >= last and begin < end and not STANDS_FOR.fullmatch(text, begin, end):
            yield begin, end
            last = end
