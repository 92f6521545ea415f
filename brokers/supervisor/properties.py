"""Parses files in the syntax of Java's properties, as Kafka's server.properties uses it.

A line is `key=value`, `key: value` or `key value`; `#` and `!` begin comments; a backslash at the
end continues in the next line, and one elsewhere removes the special meaning of the next character.
A key that occurs twice is refused: Java silently takes the last one.
"""

import re
from collections.abc import Iterator
from typing import Final

_SPACE: Final = " \t\f"
_COMMENT: Final = "#!"
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.)|$)")
# Up to the first separator without a backslash before it.
_KEY: Final = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)


def parse(text: str) -> dict[str, str]:
    """Parse settings; ValueError names an invalid line."""
    found: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in _logical_lines(text):
        match = _KEY.fullmatch(line)
        if match is None:
            raise ValueError(f"line {number} ends in the middle of an escape")
        key, value = _unescaped(match[1]), _unescaped(match[2])
        if not key:
            raise ValueError(f"line {number} has no key in front of its value")
        if key in found:
            raise ValueError(f"{key} is set twice, in lines {lines[key]} and {number}")
        found[key], lines[key] = value, number
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its number, comments and empty ones left out, continued ones joined."""
    begun, first = "", 0
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), start=1):
        line = raw.lstrip(_SPACE)
        if not begun:
            if not line or line[0] in _COMMENT:
                continue
            first = number
        body = line.rstrip("\\")
        # An even number of backslashes are that many escaped ones.
        if (len(line) - len(body)) % 2:
            begun += line[:-1]
            continue
        yield first, begun + line
        begun = ""
    if begun:
        yield first, begun


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(
        lambda match: (
            chr(int(match[1], 16)) if match[1] else _ESCAPES.get(match[2], match[2] or "")
        ),
        text,
    )
