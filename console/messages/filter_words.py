"""Splits a filter into tokens, each with its position. Pure.

A word ends at a space, a parenthesis or a comparison sign; names with one of these are quoted, also
within a path: value["strange name"].
"""

import json
import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from console.messages.question import BadQuestion

# People type a line; programs have no reason to send longer filters.
MAX_FILTER: Final = 4_096
MAX_TOKENS: Final = 400
SIGN: Final = re.compile(r"==|!=|<=|>=|=|<|>")
SPACE: Final = re.compile(r"\s+")
# A part of a word in brackets and quotes, or any character that does not end a word.
WORD: Final = re.compile(r'(?:\["(?:[^"\\]|\\.)*"\]|[^\s()=!<>"\']|!(?!=))+')
STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
PLAIN_STRING: Final = re.compile(r"'[^']*'")


class Kind(Enum):
    WORD = "word"
    STRING = "string"
    SIGN = "sign"
    OPEN = "("
    CLOSE = ")"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    # For a string, the text between its quotes.
    text: str
    position: int
    end: int

    @property
    def shown(self) -> str:
        return "the end" if self.kind is Kind.END else repr(self.text[:40])


def tokens_of(text: str) -> list[Token]:
    """Split a filter into its tokens; the last one marks the end."""
    if len(text) > MAX_FILTER:
        raise BadQuestion(
            f"the filter has {len(text):,} characters; at most {MAX_FILTER:,} fit",
            "look for less at a time",
            position=MAX_FILTER,
        )
    tokens, position = [], 0
    while position < len(text):
        if space := SPACE.match(text, position):
            position = space.end()
            continue
        token = _next(text, position)
        position = token.end
        tokens.append(token)
        if len(tokens) > MAX_TOKENS:
            raise BadQuestion(
                f"the filter has more than {MAX_TOKENS} words",
                "look for less at a time",
                position=token.position,
            )
    return [*tokens, Token(Kind.END, "", len(text), len(text))]


def _next(text: str, position: int) -> Token:
    first = text[position]
    if first in "()":
        return Token(Kind(first), first, position, position + 1)
    if sign := SIGN.match(text, position):
        return Token(Kind.SIGN, sign[0], position, sign.end())
    if first in "\"'":
        return _string(text, position)
    word = WORD.match(text, position)
    assert word is not None, "every other character begins a word"
    return Token(Kind.WORD, word[0], position, word.end())


def _string(text: str, position: int) -> Token:
    pattern = STRING if text[position] == '"' else PLAIN_STRING
    found = pattern.match(text, position)
    if found is None:
        raise BadQuestion(
            f"the quote at character {position + 1} is not closed",
            f"end the text with another {text[position]}",
            position=position,
        )
    return Token(Kind.STRING, unquoted(found[0], position), position, found.end())


def unquoted(quoted: str, position: int) -> str:
    """Return the text between quotes; double-quoted text has JSON escapes."""
    if quoted[0] == "'":
        return quoted[1:-1]
    try:
        text = json.loads(quoted, strict=False)
        assert isinstance(text, str), "a text in quotes"
        # No record contains a lone surrogate.
        text.encode()
    except ValueError:
        raise BadQuestion(
            f"the text at character {position + 1} has an escape that means nothing",
            r"write \\ for a backslash, \" for a quote, \u00e9 for a character by its number",
            position=position,
        ) from None
    return text
