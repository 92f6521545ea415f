"""The aggregates of a group, each with its argument and result kinds. Pure.

`folding` computes them in Python, and `spark_columns` on Spark.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from spark_integration.streams.errors import refused
from spark_integration.streams.expressions import Expression, column_or, json_of, kind_of, text_of
from spark_integration.streams.fields import NUMBERS, Columns, Kind

# A group keeps all of them in its state, and writes all of them at each change.
MOST_COLLECTED: Final = 1000


class Function(Enum):
    # Counts rows; with an argument, rows in which it has a value.
    COUNT = "count"
    # Exact for longs, and absent if it does not fit into 64 bits; sums of doubles are rounded in
    # the order in which Spark adds them.
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"
    # By the time of the row, then by partition and offset; absent if that row has no value.
    FIRST = "first"
    LAST = "last"
    # The last values, up to a limit, in the same order.
    COLLECT = "collect"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Aggregate:
    function: Function
    argument: Expression | None = None
    # The longest list.
    at_most: int = 0

    def to_json(self) -> Any:
        argument = None if self.argument is None else json_of(self.argument)
        return {
            "function": self.function.value,
            "argument": argument,
            "at_most": self.at_most,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    takes: str
    answer: Callable[[Kind | None], Kind | None]


def count() -> Aggregate:
    """Count rows."""
    return Aggregate(function=Function.COUNT)


def count_of(term: object) -> Aggregate:
    """Count rows in which a field or an expression has a value."""
    return Aggregate(function=Function.COUNT, argument=column_or(term))


def sum_of(term: object) -> Aggregate:
    return Aggregate(function=Function.SUM, argument=column_or(term))


def min_of(term: object) -> Aggregate:
    return Aggregate(function=Function.MIN, argument=column_or(term))


def max_of(term: object) -> Aggregate:
    return Aggregate(function=Function.MAX, argument=column_or(term))


def avg_of(term: object) -> Aggregate:
    return Aggregate(function=Function.AVG, argument=column_or(term))


def first_of(term: object) -> Aggregate:
    return Aggregate(function=Function.FIRST, argument=column_or(term))


def last_of(term: object) -> Aggregate:
    return Aggregate(function=Function.LAST, argument=column_or(term))


def collect_of(term: object, *, at_most: int) -> Aggregate:
    """Collect the last values by time, in ascending order."""
    if not 1 <= at_most <= MOST_COLLECTED:
        raise refused(
            "collect_of",
            f"at_most is {at_most!r}, and a group keeps this many values",
            f"give 1 to {MOST_COLLECTED}",
        )
    return Aggregate(function=Function.COLLECT, argument=column_or(term), at_most=at_most)


def number(kind: Kind | None) -> Kind | None:
    return kind if kind in NUMBERS else None


NUMBER: Final = "a long or a double"
# Kinds with the same order in Java and Python, and a JSON form.
ORDERED: Final = Rule(
    takes="a text, number, boolean or time",
    answer=lambda kind: None if kind is Kind.BYTES else kind,
)
# Kinds with a native JSON form.
IN_LISTS: Final = NUMBERS | {Kind.TEXT, Kind.BOOLEAN}
RULES: Final = {
    Function.COUNT: Rule(takes="anything", answer=lambda _kind: Kind.LONG),
    Function.SUM: Rule(takes=NUMBER, answer=number),
    Function.MIN: ORDERED,
    Function.MAX: ORDERED,
    Function.AVG: Rule(takes=NUMBER, answer=lambda kind: number(kind) and Kind.DOUBLE),
    Function.FIRST: ORDERED,
    Function.LAST: ORDERED,
    Function.COLLECT: Rule(
        takes="a text, number or boolean; of a time take millis",
        answer=lambda kind: Kind.LIST if kind in IN_LISTS else None,
    ),
}


def kind_of_aggregate(name: str, aggregate: object, columns: Columns) -> Kind:
    """Return the result kind of an aggregate, or refuse it."""
    if not isinstance(aggregate, Aggregate):
        raise refused(
            "aggregate",
            f"{name!r} is {aggregate!r}",
            "give count(), sum_of('amount') or another of the aggregates",
        )
    argument = aggregate.argument
    kind = None if argument is None else kind_of("aggregate", argument, columns)
    rule = RULES[aggregate.function]
    answer = rule.answer(kind)
    if answer is None:
        told = (
            "nothing" if argument is None or kind is None else f"{text_of(argument)}, {kind.value}"
        )
        raise refused(
            "aggregate",
            f"{name!r} is {aggregate.function.value} of {told}",
            f"{aggregate.function.value} takes {rule.takes}",
        )
    return answer
