"""Expressions and aggregates as Spark columns, with the same results as `evaluation`.

Nothing here raises an error at run time: a missing result is NULL, even where Spark's ANSI mode
would fail the query.
"""

import sys
from collections.abc import Callable
from typing import Any, Final

from pyspark.sql import functions

from spark_integration.streams.aggregates import Aggregate, Function
from spark_integration.streams.durations import MICROS_PER_MS
from spark_integration.streams.evaluation import (
    CAPITALS,
    DOUBLE_TEXT,
    FIRST_TIME_MS,
    HOUR_MICROS,
    LAST_TIME_MS,
    LONG_TEXT,
    SMALL,
    TIME_TEXT,
)
from spark_integration.streams.expressions import Expression, kind_of, kind_of_literal
from spark_integration.streams.fields import HAPPENED, Columns, Kind
from spark_integration.streams.operators import Operator

# A DataFrame's Column; not every installation has pyspark's types.
Column = Any

TYPES: Final = {
    Kind.TEXT: "string",
    Kind.LONG: "bigint",
    Kind.DOUBLE: "double",
    Kind.BOOLEAN: "boolean",
    Kind.TIME: "timestamp",
    Kind.BYTES: "binary",
}
PARTITION: Final = "samsa_partition"
OFFSET: Final = "samsa_offset"
STEP: Final = "on Spark"
# Sums of longs are kept in two halves, which 2**31 rows cannot overflow.
HALF_BITS: Final = 32
LOW_BITS: Final = 2**HALF_BITS - 1
FIRST_LONG: Final = float(-(2**63))


def column_of(expression: Expression, columns: Columns) -> Column:
    """Return an expression as a column of a DataFrame with these columns."""
    if expression.field is not None:
        return functions.col(expression.field)
    if expression.operator is None:
        assert expression.literal is not None
        kind = kind_of_literal(expression.literal)
        return functions.lit(expression.literal).cast(TYPES[kind])
    arguments = [column_of(argument, columns) for argument in expression.arguments]
    if (by_literals := WITH_LITERALS.get(expression.operator)) is not None:
        literals = [argument.literal for argument in expression.arguments[1:]]
        return by_literals(arguments[0], *literals)
    if (by_kind := BY_KIND.get(expression.operator)) is not None:
        return by_kind[kind_of(STEP, expression.arguments[0], columns)](arguments[0])
    answer = OF_COLUMNS[expression.operator](*arguments)
    is_double = kind_of(STEP, expression, columns) is Kind.DOUBLE
    return finite(answer) if is_double and expression.operator in CALCULATED else answer


def aggregate_of(aggregate: Aggregate, columns: Columns) -> Column:
    """Return an aggregate as a column of a grouped DataFrame with these columns."""
    if aggregate.argument is None:
        return functions.count(functions.lit(1))
    values = column_of(aggregate.argument, columns)
    kind = kind_of(STEP, aggregate.argument, columns)
    if aggregate.function is Function.COLLECT:
        return collected(values, kind, aggregate.at_most)
    return AGGREGATES[aggregate.function](values, kind is Kind.LONG)


def time_of_text(text: Column) -> Column:
    """Parse a text as a time, or return NULL."""
    return functions.when(is_like(text, TIME_TEXT.pattern), text.try_cast("timestamp"))


def text_of_bytes(value: Column) -> Column:
    """Decode bytes as a text, or return NULL if they are not UTF-8."""
    text = value.cast("string")
    return functions.when(functions.is_valid_utf8(text), text)


def is_like(text: Column, pattern: str) -> Column:
    # `$` would accept a trailing newline.
    return text.rlike(rf"\A(?:{pattern})\z")


def finite(number: Column) -> Column:
    """Return a finite double or NULL; Spark orders NaN above all other values."""
    return functions.when(number.between(-sys.float_info.max, sys.float_info.max), number)


def divide(left: Column, right: Column) -> Column:
    return functions.try_divide(left.cast("double"), right.cast("double"))


def long_of_text(text: Column) -> Column:
    return functions.when(is_like(text, LONG_TEXT.pattern), text.try_cast("bigint"))


def long_of_double(number: Column) -> Column:
    # Spark rounds the limit of longs up, and converts one more to the greatest long.
    fits = (number >= FIRST_LONG) & (number < -FIRST_LONG)
    return functions.when(fits, number.try_cast("bigint"))


def double_of_text(text: Column) -> Column:
    return finite(functions.when(is_like(text, DOUBLE_TEXT.pattern), text.try_cast("double")))


def time_of_millis(number: Column) -> Column:
    fits = number.between(FIRST_TIME_MS, LAST_TIME_MS)
    return functions.timestamp_millis(functions.when(fits, number))


def truncate(time: Column, length_ms: int) -> Column:
    micros = functions.unix_micros(time)
    start = micros - functions.pmod(micros, functions.lit(length_ms * MICROS_PER_MS))
    fits = start >= FIRST_TIME_MS * MICROS_PER_MS
    return functions.timestamp_micros(functions.when(fits, start))


def hour(time: Column) -> Column:
    micros = functions.unix_micros(time)
    of_day = functions.pmod(micros, functions.lit(24 * HOUR_MICROS))
    of_hour = functions.pmod(micros, functions.lit(HOUR_MICROS))
    return ((of_day - of_hour) / HOUR_MICROS).cast("bigint")


def halves(values: Column) -> tuple[Column, Column]:
    """Return the sum of longs as a multiple of 2**32 and a remainder."""
    high = functions.try_sum(functions.shiftright(values, HALF_BITS))
    low = functions.try_sum(values.bitwiseAND(functions.lit(LOW_BITS)))
    whole = functions.try_add(high, functions.shiftright(low, HALF_BITS))
    return whole, low.bitwiseAND(functions.lit(LOW_BITS))


def total(values: Column, is_long: bool) -> Column:
    if not is_long:
        return finite(functions.sum(values))
    high, low = halves(values)
    edge = 2 ** (HALF_BITS - 1)
    return functions.when(
        high.between(-edge, edge - 1), functions.shiftleft(high, HALF_BITS).bitwiseOR(low)
    )


def average(values: Column, is_long: bool) -> Column:
    rows = functions.count(values).cast("double")
    if not is_long:
        return finite(functions.try_divide(functions.sum(values), rows))
    high, low = halves(values)
    summed = high.cast("double") * float(2**HALF_BITS) + low.cast("double")
    return functions.try_divide(summed, rows)


def place() -> Column:
    """Return the sort key of the rows of a group; NULL, which is ignored, without a time."""
    time = functions.col(HAPPENED)
    return functions.when(
        time.isNotNull(), functions.struct(time, functions.col(PARTITION), functions.col(OFFSET))
    )


def collected(values: Column, kind: Kind, at_most: int) -> Column:
    where_there = functions.when(values.isNotNull(), place())
    latest = functions.reverse(functions.max_by(values, where_there, at_most))
    return functions.coalesce(latest, functions.array().cast(f"array<{TYPES[kind]}>"))


CALCULATED: Final = {Operator.ADD, Operator.SUBTRACT, Operator.MULTIPLY, Operator.DIVIDE}
# Operators with literal arguments.
WITH_LITERALS: Final[dict[Operator, Callable[..., Column]]] = {
    Operator.SUBSTRING: lambda text, start, count: functions.substring(text, start + 1, count),
    Operator.TRUNCATE: truncate,
}
# Operators that depend on the kind.
BY_KIND: Final[dict[Operator, dict[Kind, Callable[[Column], Column]]]] = {
    Operator.AS_TEXT: {
        Kind.TEXT: lambda value: value,
        Kind.LONG: lambda value: value.cast("string"),
        Kind.BOOLEAN: lambda value: value.cast("string"),
        Kind.BYTES: text_of_bytes,
    },
    Operator.AS_LONG: {
        Kind.TEXT: long_of_text,
        Kind.LONG: lambda value: value,
        Kind.DOUBLE: long_of_double,
    },
    Operator.AS_DOUBLE: {
        Kind.TEXT: double_of_text,
        Kind.LONG: lambda value: value.cast("double"),
        Kind.DOUBLE: lambda value: value,
    },
}
OF_COLUMNS: Final[dict[Operator, Callable[..., Column]]] = {
    Operator.EQUAL: lambda left, right: left == right,
    Operator.UNEQUAL: lambda left, right: left != right,
    Operator.LESS: lambda left, right: left < right,
    Operator.AT_MOST: lambda left, right: left <= right,
    Operator.MORE: lambda left, right: left > right,
    Operator.AT_LEAST: lambda left, right: left >= right,
    Operator.AND: lambda left, right: left & right,
    Operator.OR: lambda left, right: left | right,
    Operator.NOT: lambda value: ~value,
    Operator.IS_NULL: lambda value: value.isNull(),
    Operator.COALESCE: functions.coalesce,
    Operator.CHOOSE: lambda condition, then, otherwise: functions.when(condition, then).otherwise(
        otherwise
    ),
    Operator.ADD: functions.try_add,
    Operator.SUBTRACT: functions.try_subtract,
    Operator.MULTIPLY: functions.try_multiply,
    Operator.DIVIDE: divide,
    Operator.REMAINDER: functions.try_mod,
    Operator.LENGTH: lambda text: functions.char_length(text).cast("bigint"),
    Operator.LOWER: lambda text: functions.translate(text, CAPITALS, SMALL),
    Operator.UPPER: lambda text: functions.translate(text, SMALL, CAPITALS),
    Operator.TRIM: functions.trim,
    Operator.CONCAT: functions.concat,
    Operator.CONTAINS: lambda text, part: text.contains(part),
    Operator.STARTS_WITH: lambda text, part: text.startswith(part),
    Operator.ENDS_WITH: lambda text, part: text.endswith(part),
    Operator.MILLIS: functions.unix_millis,
    Operator.TIME_OF_MILLIS: time_of_millis,
    Operator.HOUR: hour,
}
AGGREGATES: Final[dict[Function, Callable[[Column, bool], Column]]] = {
    Function.COUNT: lambda values, _: functions.count(values),
    Function.SUM: total,
    Function.MIN: lambda values, _: functions.min(values),
    Function.MAX: lambda values, _: functions.max(values),
    Function.AVG: average,
    Function.FIRST: lambda values, _: functions.min_by(values, place()),
    Function.LAST: lambda values, _: functions.max_by(values, place()),
}
