"""Matches topics for subscriptions by regular expression.

Expressions come from untrusted clients, so the engine is RE2, whose time is linear in the name and
whose memory is bounded; Kafka's is RE2/J, the same language. Knows no group; the work over many
topics is done in steps, so that it blocks no other request.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import re2  # type: ignore[import-untyped]

from brokers.coordination.groups.settings import MAX_REGEX_BYTES
from brokers.protocol.errors import ErrorCode, KafkaError

# The memory of one compiled expression, its cache of states included. With more, the engine tries
# for longer to keep its states before it gives up on them.
MAX_MEMORY: Final = 256 * 1024
# Instructions of a compiled expression. A name of 249 characters costs at worst about a microsecond
# for each, so this keeps one match under 4 ms; an ordinary expression has less than 100.
MAX_PROGRAM: Final = 3_000
# Instructions times names in one step: about 2 ms at worst, mostly far less.
_WORK_PER_STEP: Final = 2_000
_MAX_NAMES_PER_STEP: Final = 200


def compile_checked(text: str) -> re2._Regexp:
    """Compile an expression; INVALID_REGULAR_EXPRESSION with RE2's own words if it is invalid.

    One with many repetitions can be valid and still refused, for its size.
    """
    if (size := len(text.encode("utf-8", "surrogatepass"))) > MAX_REGEX_BYTES:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"the regular expression has {size} bytes, and {MAX_REGEX_BYTES} are allowed",
        )
    options = re2.Options()
    options.max_mem = MAX_MEMORY
    options.log_errors = False
    options.never_capture = True
    try:
        pattern = re2.compile(text, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{text}` is not a valid regular expression: {_words(error)}.",
        ) from error
    if pattern.programsize > MAX_PROGRAM:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"the regular expression takes {pattern.programsize} instructions, and {MAX_PROGRAM} "
            "are allowed",
        )
    return pattern


def _words(error: Exception) -> str:
    words = error.args[0] if error.args else "unknown"
    return words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)


@dataclass(slots=True)
class Resolution:
    """The work of matching some expressions with the names of all topics. Done once.

    One that cannot be compiled (it was written by another version) matches nothing.
    """

    regexes: tuple[str, ...]
    names: Iterable[str]
    found: dict[str, frozenset[str]] = field(default_factory=dict)

    def steps(self) -> Iterator[None]:
        names = tuple(self.names)
        for text in self.regexes:
            yield
            try:
                pattern = compile_checked(text)
            except KafkaError:
                self.found[text] = frozenset()
                continue
            matched: list[str] = []
            size = min(max(_WORK_PER_STEP // pattern.programsize, 1), _MAX_NAMES_PER_STEP)
            for start in range(0, len(names), size):
                yield
                some = names[start : start + size]
                matched.extend(name for name in some if pattern.fullmatch(name) is not None)
            self.found[text] = frozenset(matched)
