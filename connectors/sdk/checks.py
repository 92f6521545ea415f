"""Parses the text of a key and checks its value, with the messages of Kafka's ConfigDef.

Independent of connectors. A check returns the end of a message, such as "Value must be at least
1"; `problem` adds the key and the value before it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from connectors.sdk.configs import MASK, MAX_VALUE_CHARS, Check, Key, Kind, Secret

# The characters that Java's `trim` removes: everything up to the space.
BLANKS: Final = "".join(map(chr, range(0x21)))
COMMA: Final = re.compile(r"\s*,\s*")
# Longer texts are not numbers, and Python takes long to reject them.
MAX_NUMBER_CHARS: Final = 400
WHOLE: Final = re.compile(r"[+-]?[0-9]+")
REAL: Final = re.compile(r"[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)")
BITS: Final = {Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}
# Connect's texts for the expected value; those for the given value are Python's.
EXPECTED: Final = {
    Kind.BOOLEAN: "Expected value to be either true or false",
    Kind.STRING: "Expected value to be a string, but it was a {type}",
    Kind.PASSWORD: "Expected value to be a string, but it was a {type}",
    Kind.SHORT: "Expected value to be a 16-bit integer (short), but it was a {type}",
    Kind.INT: "Expected value to be a 32-bit integer, but it was a {type}",
    Kind.LONG: "Expected value to be a 64-bit integer (long), but it was a {type}",
    Kind.DOUBLE: "Expected value to be a double, but it was a {type}",
    Kind.LIST: "Expected a comma separated list.",
    Kind.CLASS: "Expected a Class instance or class name.",
}
# The length of a value in a message.
MAX_SHOWN_CHARS: Final = 1000


class Message(str):
    """A complete message of a check, to which no key and value are added."""

    __slots__ = ()


class InvalidValue(ValueError):
    """A text is invalid for its key's type; the message is complete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf:
    """Checks that a text is one of some words, which forms offer as choices."""

    words: tuple[str, ...]
    sentence: str
    fold: Callable[[str], str]

    def __call__(self, value: Any) -> str | None:
        if isinstance(value, str) and self.fold(value) in map(self.fold, self.words):
            return None
        return f"{self.sentence} {', '.join(self.words)}"


def parse(key: Key, text: Any) -> Any:
    """Parse the value of a key. Raises InvalidValue, whose message names the key and the value.

    LIST becomes a list of texts, PASSWORD a Secret, CLASS stays a name; None stays None.
    """
    if text is None:
        return None
    if isinstance(text, str):
        if len(text) > MAX_VALUE_CHARS:
            limit = f"Value has {len(text)} characters, at most {MAX_VALUE_CHARS} are allowed"
            raise InvalidValue(problem(key, text, limit))
        text = text.strip(BLANKS)
    return _PARSERS[key.kind](key, text)


def default_of(key: Key) -> Any:
    """Return the default of a key that has one; a text is parsed."""
    return parse(key, key.default) if isinstance(key.default, str) else key.default


def check(key: Key, value: Any) -> str | None:
    """Return the complete message about a parsed value, or None."""
    wrong = key.check(value) if key.check else None
    return wrong if wrong is None or isinstance(wrong, Message) else problem(key, value, wrong)


def missing(key: Key) -> str:
    return f'Missing required configuration "{key.name}" which has no default value.'


def problem(key: Key, value: Any, wrong: str) -> str:
    """Return Kafka's message: the value, the key, and the problem."""
    shown = MASK if key.kind is Kind.PASSWORD and value is not None else show(value)
    return f"Invalid value {shown} for configuration {key.name}: {wrong}"


def show(value: Any) -> str:
    """Return a value as Java prints it, cut if it is long."""
    if value is None:
        text = "null"
    elif isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, (list, tuple)):
        text = f"[{', '.join(map(show, value))}]"
    else:
        text = str(value)
    return text if len(text) <= MAX_SHOWN_CHARS else text[:MAX_SHOWN_CHARS] + "…"


def to_text(key: Key, value: Any) -> str | None:
    """Return a parsed value or a default as text, for `validate`."""
    if value is None:
        return None
    if isinstance(value, Secret) or key.kind is Kind.PASSWORD:
        return MASK
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return show(value) if isinstance(value, bool) else str(value)


# Functions that return checks. The value is None if none was given, or if parsing failed.


def in_range(low: float | None = None, high: float | None = None) -> Check:
    def check_range(value: Any) -> str | None:
        if value is None:
            return "Value must be non-null"
        if low is not None and value < low:
            return f"Value must be at least {low}"
        if high is not None and value > high:
            return f"Value must be no more than {high}"
        return None

    return check_range


def one_of(*words: str) -> Check:
    return OneOf(words=words, sentence="String must be one of:", fold=str)


def one_of_ignoring_case(*words: str) -> Check:
    sentence = "String must be one of (case insensitive):"
    return OneOf(words=words, sentence=sentence, fold=str.upper)


def each_of(*words: str) -> Check:
    """Return a check of lists: each word must be one of these."""
    single = one_of(*words)

    def check_each(value: Any) -> str | None:
        return next((wrong for one in value or () if (wrong := single(one))), None)

    return check_each


def non_empty(value: Any) -> str | None:
    """Check a text that may be missing, but not empty."""
    return "String must be non-empty" if value is not None and len(value) == 0 else None


def non_null(value: Any) -> str | None:
    return "entry must be non null" if value is None else None


def without_control_characters(value: Any) -> str | None:
    """Check a name: not empty, and without characters that break a log line."""
    if value is None:
        return None
    if not value:
        return "String may not be empty"
    codes = [str(ord(char)) for char in value if ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0]
    if codes:
        return (
            "String may not contain control sequences but had the following ASCII chars: "
            + ", ".join(codes)
        )
    return None


def at_most_items(count: int) -> Check:
    def check_count(value: Any) -> str | None:
        too_many = value is not None and len(value) > count
        return f"exceeds maximum list size of [{count}]" if too_many else None

    return check_count


def pattern(value: Any) -> str | None:
    """Check a regular expression of Python."""
    try:
        re.compile(value or "")
    except re.error as error:
        return f"Must be a valid regular expression: {error}"
    return None


def all_of(*checks: Check) -> Check:
    """Return a check that returns the first error of these."""

    def check_all(value: Any) -> str | None:
        return next((wrong for one in checks if (wrong := one(value)) is not None), None)

    return check_all


def _unexpected(key: Key, value: Any) -> InvalidValue:
    return InvalidValue(problem(key, value, EXPECTED[key.kind].format(type=type(value).__name__)))


def _parse_boolean(key: Key, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise _unexpected(key, value)


def _parse_text(key: Key, value: Any) -> str:
    if isinstance(value, str):
        return value
    raise _unexpected(key, value)


def _parse_secret(key: Key, value: Any) -> Secret:
    return value if isinstance(value, Secret) else Secret(_parse_text(key, value))


def _parse_whole(key: Key, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise _unexpected(key, value)
    if isinstance(value, str):
        if len(value) > MAX_NUMBER_CHARS or not WHOLE.fullmatch(value):
            raise _no_number(key, value)
        number = int(value)
    else:
        number = value
    half = 1 << (BITS[key.kind] - 1)
    if not -half <= number < half:
        raise _no_number(key, value)
    return number


def _parse_real(key: Key, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise _unexpected(key, value)
    if isinstance(value, str) and (len(value) > MAX_NUMBER_CHARS or not REAL.fullmatch(value)):
        raise _no_number(key, value)
    try:
        return float(value.rstrip("fFdD") if isinstance(value, str) else value)
    except (ValueError, OverflowError):
        # "Infinity" and "NaN" end in other letters, so this is a number out of range.
        raise _no_number(key, value) from None


def _parse_list(key: Key, value: Any) -> list[str]:
    if isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value):
        return list(value)
    if isinstance(value, str):
        return COMMA.split(value) if value else []
    raise _unexpected(key, value)


def _no_number(key: Key, value: Any) -> InvalidValue:
    return InvalidValue(problem(key, value, f"Not a number of type {key.kind.value}"))


_PARSERS: Final[dict[Kind, Callable[[Key, Any], Any]]] = {
    Kind.BOOLEAN: _parse_boolean,
    Kind.STRING: _parse_text,
    Kind.PASSWORD: _parse_secret,
    Kind.SHORT: _parse_whole,
    Kind.INT: _parse_whole,
    Kind.LONG: _parse_whole,
    Kind.DOUBLE: _parse_real,
    Kind.LIST: _parse_list,
    Kind.CLASS: _parse_text,
}
