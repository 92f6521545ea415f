"""The operators of expressions, each with its argument and result kinds. Pure.

`evaluation` computes them in Python and `spark_columns` on Spark; tests check that both support
every row, with the same results.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from spark_integration.streams.fields import NUMBERS, Kind

Kinds: TypeAlias = tuple[Kind, ...]


class Operator(Enum):
    EQUAL = "=="
    UNEQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="
    AND = "and"
    OR = "or"
    NOT = "not"
    IS_NULL = "is_null"
    COALESCE = "coalesce"
    CHOOSE = "choose"
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    REMAINDER = "%"
    LENGTH = "length"
    LOWER = "lower"
    UPPER = "upper"
    TRIM = "trim"
    SUBSTRING = "substring"
    CONCAT = "concat"
    CONTAINS = "contains"
    STARTS_WITH = "starts_with"
    ENDS_WITH = "ends_with"
    AS_TEXT = "as_text"
    AS_LONG = "as_long"
    AS_DOUBLE = "as_double"
    MILLIS = "millis"
    TIME_OF_MILLIS = "time_of_millis"
    TRUNCATE = "truncate"
    HOUR = "hour"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    # Its arguments in words, for errors.
    takes: str
    # The result kind, or None for invalid arguments.
    answer: Callable[[Kinds], Kind | None]
    # The arguments that have to be literals.
    literals: frozenset[int] = frozenset()


def exactly(*kinds: Kind, answers: Kind) -> Callable[[Kinds], Kind | None]:
    return lambda given: answers if given == kinds else None


def one_of(kinds: frozenset[Kind], answers: Kind) -> Callable[[Kinds], Kind | None]:
    return lambda given: answers if len(given) == 1 and given[0] in kinds else None


def comparison(given: Kinds) -> Kind | None:
    is_fit = len(given) == 2 and (len(set(given)) == 1 or set(given) <= NUMBERS)
    return Kind.BOOLEAN if is_fit else None


def arithmetic(given: Kinds) -> Kind | None:
    if len(given) != 2 or not set(given) <= NUMBERS:
        return None
    return Kind.DOUBLE if Kind.DOUBLE in given else Kind.LONG


def division(given: Kinds) -> Kind | None:
    return Kind.DOUBLE if arithmetic(given) else None


def all_alike(given: Kinds) -> Kind | None:
    return given[0] if given and len(set(given)) == 1 else None


def choice(given: Kinds) -> Kind | None:
    if len(given) != 3 or given[0] is not Kind.BOOLEAN:
        return None
    return all_alike(given[1:])


def anything(given: Kinds) -> Kind | None:
    return Kind.BOOLEAN if len(given) == 1 else None


def texts(given: Kinds) -> Kind | None:
    return Kind.TEXT if given and set(given) == {Kind.TEXT} else None


COMPARED: Final = "two values of one kind, or two numbers"
CALCULATED: Final = "two numbers"
TEXT: Final = Kind.TEXT
LONG: Final = Kind.LONG
BOOLEAN: Final = Kind.BOOLEAN

OF_TEXT: Final = Signature(takes="one text", answer=exactly(TEXT, answers=TEXT))
OF_TWO_TEXTS: Final = Signature(takes="two texts", answer=exactly(TEXT, TEXT, answers=BOOLEAN))
COMPARISON: Final = Signature(takes=COMPARED, answer=comparison)
ARITHMETIC: Final = Signature(takes=CALCULATED, answer=arithmetic)
LOGIC: Final = Signature(takes="two booleans", answer=exactly(BOOLEAN, BOOLEAN, answers=BOOLEAN))

SIGNATURES: Final = {
    Operator.EQUAL: COMPARISON,
    Operator.UNEQUAL: COMPARISON,
    Operator.LESS: COMPARISON,
    Operator.AT_MOST: COMPARISON,
    Operator.MORE: COMPARISON,
    Operator.AT_LEAST: COMPARISON,
    Operator.AND: LOGIC,
    Operator.OR: LOGIC,
    Operator.NOT: Signature(takes="one boolean", answer=exactly(BOOLEAN, answers=BOOLEAN)),
    Operator.IS_NULL: Signature(takes="one value", answer=anything),
    Operator.COALESCE: Signature(takes="values of one kind", answer=all_alike),
    Operator.CHOOSE: Signature(takes="a boolean and two values of one kind", answer=choice),
    Operator.ADD: ARITHMETIC,
    Operator.SUBTRACT: ARITHMETIC,
    Operator.MULTIPLY: ARITHMETIC,
    # Always a double, so 1 / 2 is a half.
    Operator.DIVIDE: Signature(takes=CALCULATED, answer=division),
    # With the sign of the dividend.
    Operator.REMAINDER: Signature(takes="two longs", answer=exactly(LONG, LONG, answers=LONG)),
    # Code points.
    Operator.LENGTH: Signature(takes="one text", answer=exactly(TEXT, answers=LONG)),
    # ASCII letters only: Java and Python support different versions of Unicode.
    Operator.LOWER: OF_TEXT,
    Operator.UPPER: OF_TEXT,
    # Spaces only.
    Operator.TRIM: OF_TEXT,
    # The first code point, counted from 0, and the length.
    Operator.SUBSTRING: Signature(
        takes="a text, a position and a length, both literals",
        answer=exactly(TEXT, LONG, LONG, answers=TEXT),
        literals=frozenset({1, 2}),
    ),
    Operator.CONCAT: Signature(takes="texts", answer=texts),
    Operator.CONTAINS: OF_TWO_TEXTS,
    Operator.STARTS_WITH: OF_TWO_TEXTS,
    Operator.ENDS_WITH: OF_TWO_TEXTS,
    # No double: Java writes 1.0E10 where Python writes 10000000000.0.
    Operator.AS_TEXT: Signature(
        takes="one long, boolean, text, or bytes that are UTF-8",
        answer=one_of(frozenset({LONG, BOOLEAN, TEXT, Kind.BYTES}), TEXT),
    ),
    # Towards zero.
    Operator.AS_LONG: Signature(takes="one number or text", answer=one_of(NUMBERS | {TEXT}, LONG)),
    Operator.AS_DOUBLE: Signature(
        takes="one number or text", answer=one_of(NUMBERS | {TEXT}, Kind.DOUBLE)
    ),
    Operator.MILLIS: Signature(takes="one time", answer=exactly(Kind.TIME, answers=LONG)),
    Operator.TIME_OF_MILLIS: Signature(takes="one long", answer=exactly(LONG, answers=Kind.TIME)),
    # Rounds down to a multiple of milliseconds since 1970.
    Operator.TRUNCATE: Signature(
        takes="a time and a duration",
        answer=exactly(Kind.TIME, LONG, answers=Kind.TIME),
        literals=frozenset({1}),
    ),
    # Of the day in UTC.
    Operator.HOUR: Signature(takes="one time", answer=exactly(Kind.TIME, answers=LONG)),
}
