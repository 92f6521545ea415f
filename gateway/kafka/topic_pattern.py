"""Matches topic names with an expression. Pure.

Expressions are untrusted input, so the engine is RE2, whose time is linear in the name and whose
memory is bounded; Kafka's is RE2/J, the same language. An expression matches the whole name.
"""

from collections.abc import Iterable
from typing import Final

import re2  # type: ignore[import-untyped]

# Four times the longest name, as for consumers of REST version 2.
MAX_CHARS: Final = 1_000
# The memory of one compiled expression, including its cache of states.
MAX_MEMORY: Final = 256 * 1024
# Instructions of a compiled expression. A name of 249 characters costs at worst about a microsecond
# for each, so one match stays below a millisecond; an ordinary expression has less than 100.
MAX_PROGRAM: Final = 500


class BadPattern(ValueError):
    """An invalid or expensive expression; the text says what to change."""


class TopicPattern:
    """A compiled expression."""

    def __init__(self, text: str) -> None:
        if not 0 < len(text) <= MAX_CHARS:
            raise BadPattern(
                f"the pattern has {len(text)} characters: give an expression of 1 to {MAX_CHARS}"
            )
        options = re2.Options()
        options.max_mem = MAX_MEMORY
        options.log_errors = False
        options.never_capture = True
        try:
            self._compiled = re2.compile(text, options)
        except (re2.error, UnicodeEncodeError) as error:
            raise BadPattern(
                f"{text[:80]!r} is not an expression of RE2: {_words(error)}; orders-.* means all "
                "names that begin with orders-"
            ) from None
        if self._compiled.programsize > MAX_PROGRAM:
            raise BadPattern(
                f"the pattern takes {self._compiled.programsize} instructions, and {MAX_PROGRAM}"
                " are allowed: repeat less in it, or name the topics"
            )
        self.text: Final = text

    def among(self, names: Iterable[str]) -> list[str]:
        """Return the given names that match, in their order."""
        match = self._compiled.fullmatch
        return [name for name in names if match(name) is not None]


def _words(error: Exception) -> str:
    words = error.args[0] if error.args else "unknown"
    return words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)
