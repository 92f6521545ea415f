"""Computes expressions over rows in Python, exactly as Spark does. Pure."""

import math
import operator as python
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from spark_integration.streams.durations import MICROS_PER_MS
from spark_integration.streams.expressions import LONGS, Expression
from spark_integration.streams.fields import Row, Value
from spark_integration.streams.operators import Operator

# Texts accepted as numbers, so that Python's and Java's extensions (spaces, "NaN", "1f") do not.
LONG_TEXT: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
DOUBLE_TEXT: Final = re.compile(
    r"[+-]?[0-9]{1,300}(\.[0-9]{1,300})?([eE][+-]?[0-9]{1,3})?", re.ASCII
)
CAPITALS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SMALL: Final = CAPITALS.lower()
TO_SMALL: Final = str.maketrans(CAPITALS, SMALL)
TO_CAPITALS: Final = str.maketrans(SMALL, CAPITALS)

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Times are within the years 1 to 9999, which both sides support.
FIRST_TIME_MS: Final = -62_135_596_800_000
LAST_TIME_MS: Final = 253_402_300_799_999
HOUR_MICROS: Final = 3_600_000_000
# RFC 3339, to the microsecond, with an offset that Java accepts.
TIME_TEXT: Final = re.compile(
    r"(?!0000)([0-9]{4}-[0-9]{2}-[0-9]{2})T(([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])(\.[0-9]{1,6})?"
    r"(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9])",
    re.ASCII,
)


def evaluate(expression: Expression, row: Row) -> Any:
    if expression.field is not None:
        return row[expression.field]
    if expression.operator is None:
        return expression.literal
    arguments = [evaluate(argument, row) for argument in expression.arguments]
    if (lenient := WITH_NULLS.get(expression.operator)) is not None:
        return lenient(*arguments)
    if any(argument is None for argument in arguments):
        return None
    return OF_VALUES[expression.operator](*arguments)


def time_of_text(text: str) -> int | None:
    """Parse a time as microseconds since 1970; None if it is invalid."""
    if not TIME_TEXT.fullmatch(text):
        return None
    try:
        return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)
    except ValueError:
        return None


def fitted(number: float) -> float | int | None:
    """Return a result if it fits its kind, otherwise None."""
    if isinstance(number, int):
        return number if number in LONGS else None
    return number if math.isfinite(number) else None


def promoted(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Convert a long next to a double, as Spark does before it compares or computes."""

    def compute_promoted(left: Any, right: Any) -> Any:
        if isinstance(left, float) != isinstance(right, float):
            left, right = float(left), float(right)
        return compute(left, right)

    return compute_promoted


def calculated(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return promoted(lambda left, right: fitted(compute(left, right)))


def divide(left: float, right: float) -> float | int | None:
    return fitted(float(left) / float(right)) if right else None


def remainder(left: int, right: int) -> int | None:
    if right == 0:
        return None
    return abs(left) % abs(right) * (-1 if left < 0 else 1)


def both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def either(left: bool | None, right: bool | None) -> bool | None:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def first_there(*values: Value) -> Value:
    return next((value for value in values if value is not None), None)


def text_of_value(value: Value) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    return str(value)


def long_of_value(value: str | float) -> int | None:
    if isinstance(value, str):
        if not LONG_TEXT.fullmatch(value):
            return None
        return int(value) if int(value) in LONGS else None
    # Truncates towards zero; a double at the limit may round past it.
    return int(value) if int(value) in LONGS else None


def double_of_value(value: str | float) -> float | int | None:
    if isinstance(value, str) and not DOUBLE_TEXT.fullmatch(value):
        return None
    return fitted(float(value))


def time_of_millis(value: int) -> int | None:
    return value * MICROS_PER_MS if FIRST_TIME_MS <= value <= LAST_TIME_MS else None


def truncate(time: int, length_ms: int) -> int | None:
    start = time - time % (length_ms * MICROS_PER_MS)
    return start if start >= FIRST_TIME_MS * MICROS_PER_MS else None


# Operators with a value even if an argument is absent.
WITH_NULLS: Final[dict[Operator, Callable[..., Any]]] = {
    Operator.AND: both,
    Operator.OR: either,
    Operator.IS_NULL: lambda value: value is None,
    Operator.COALESCE: first_there,
    Operator.CHOOSE: lambda condition, then, otherwise: then if condition else otherwise,
}
OF_VALUES: Final[dict[Operator, Callable[..., Any]]] = {
    Operator.EQUAL: promoted(python.eq),
    Operator.UNEQUAL: promoted(python.ne),
    # Python orders texts by code point, and Spark by UTF-8 bytes: the same order.
    Operator.LESS: promoted(python.lt),
    Operator.AT_MOST: promoted(python.le),
    Operator.MORE: promoted(python.gt),
    Operator.AT_LEAST: promoted(python.ge),
    Operator.NOT: python.not_,
    Operator.ADD: calculated(python.add),
    Operator.SUBTRACT: calculated(python.sub),
    Operator.MULTIPLY: calculated(python.mul),
    Operator.DIVIDE: divide,
    Operator.REMAINDER: remainder,
    Operator.LENGTH: len,
    Operator.LOWER: lambda text: text.translate(TO_SMALL),
    Operator.UPPER: lambda text: text.translate(TO_CAPITALS),
    Operator.TRIM: lambda text: text.strip(" "),
    Operator.SUBSTRING: lambda text, start, count: text[start : start + count],
    Operator.CONCAT: lambda *texts: "".join(texts),
    Operator.CONTAINS: lambda text, part: part in text,
    Operator.STARTS_WITH: lambda text, part: text.startswith(part),
    Operator.ENDS_WITH: lambda text, part: text.endswith(part),
    Operator.AS_TEXT: text_of_value,
    Operator.AS_LONG: long_of_value,
    Operator.AS_DOUBLE: double_of_value,
    Operator.MILLIS: lambda time: time // MICROS_PER_MS,
    Operator.TIME_OF_MILLIS: time_of_millis,
    Operator.TRUNCATE: truncate,
    Operator.HOUR: lambda time: time // HOUR_MICROS % 24,
}
