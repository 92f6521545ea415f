"""Finds the secret parts of a value that is otherwise public.

These are passwords within URLs, in any value, and the parts that a connector's keys declare. Pure.
A part that is a reference or a placeholder is not secret, and stays.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import unquote_plus

from connectors.sdk.configs import MASK, Span

# The user info before the host: name and password, or only one of them.
LOGIN: Final = re.compile(r"(?:\b|:)([A-Za-z][A-Za-z0-9+.-]{0,40})://([^/?#\s@]*(?:@[^/?#\s@]+)*)@")
# A parameter of a URL; JDBC URLs may separate them by semicolons.
PARAMETER: Final = re.compile(r"[?&#]([^=&?#\s]{1,100})=([^&#\s]*)")
PARAMETER_OF_JDBC: Final = re.compile(r"[?&#;]([^=&?#;\s]{1,100})=([^&#;\s]*)")
# Names of parameters with a password, a token or a signature: as a part, and as the whole name.
WORDS: Final = re.compile(
    r"passw|pwd|passphrase|secret|token|api[_-]?key|access[_-]?key|credential|signature",
    re.IGNORECASE,
)
NAMES: Final = frozenset({"key", "sig", "auth", "pass", "code", "jwt", "sas", "authorization"})
# Schemes in which the user name alone may be a token.
WEB: Final = frozenset({"http", "https", "ws", "wss"})
STANDS_FOR: Final = re.compile(r"\$\{[^{}]*\}")


def of_urls(text: str) -> Iterator[Span]:
    """Yield the places of passwords and tokens in the URLs of a text."""
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
    """Yield the places of the values in a list of `name:value`."""
    begin = 0
    for piece in text.split(separator) if separator else [text]:
        name, colon, value = piece.partition(":")
        stripped = value.strip()
        if colon and stripped:
            at = begin + len(name) + 1 + value.index(stripped)
            yield at, at + len(stripped)
        begin += len(piece) + len(separator)


def shown(text: str, spans: Iterable[Span]) -> str:
    """Return a text with each part masked."""
    pieces, at = [], 0
    for begin, end in _secret(text, spans):
        pieces += [text[at:begin], MASK]
        at = end
    return "".join([*pieces, text[at:]])


def secrets(text: str, spans: Iterable[Span]) -> Iterator[str]:
    """Yield the parts, raw and decoded."""
    for begin, end in _secret(text, spans):
        yield text[begin:end]
        yield unquote_plus(text[begin:end])


def _secret(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """Yield secret parts in order; of two that overlap, only the first."""
    last = 0
    for begin, end in sorted(spans):
        if begin >= last and begin < end and not STANDS_FOR.fullmatch(text, begin, end):
            yield begin, end
            last = end
