"""Computes aggregates over the rows of one group in Python, exactly as Spark does. Pure."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, TypeAlias

from spark_integration.streams.aggregates import Aggregate, Function
from spark_integration.streams.evaluation import evaluate, fitted
from spark_integration.streams.expressions import LONGS
from spark_integration.streams.fields import Row, Value

# Sums of longs are kept in two halves, which cannot overflow.
HALF: Final = 2**32
Place: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One row of a group."""

    row: Row
    # Its time, partition and offset; None without a time.
    place: Place | None


def fold(aggregate: Aggregate, members: Sequence[Member]) -> Value:
    """Compute an aggregate over these rows, in order of arrival."""
    argument = aggregate.argument
    if argument is None:
        return len(members)
    values = [(member.place, evaluate(argument, member.row)) for member in members]
    if (by_place := BY_PLACE.get(aggregate.function)) is not None:
        placed = [(place, value) for place, value in values if place is not None]
        found: Value = by_place(placed, key=lambda pair: pair[0])[1] if placed else None
        return found
    if aggregate.function is Function.COLLECT:
        there_at = [(place, value) for place, value in values if place and value is not None]
        there_at.sort(key=lambda pair: pair[0])
        return tuple(value for _, value in there_at[-aggregate.at_most :])
    there = [value for _, value in values if value is not None]
    if aggregate.function is Function.COUNT:
        return len(there)
    return OF_VALUES[aggregate.function](there) if there else None


# A plain loop: `sum` of newer Pythons rounds doubles less than Spark.
def total(values: Sequence[Any]) -> Value:
    if isinstance(values[0], int):
        whole = sum(values)
        return whole if whole in LONGS else None
    return fitted(reduce(operator.add, values, 0.0))


def average(values: Sequence[Any]) -> Value:
    if isinstance(values[0], int):
        high, low = divmod(sum(values), HALF)
        return (float(high) * HALF + float(low)) / float(len(values))
    return fitted(reduce(operator.add, values, 0.0) / float(len(values)))


BY_PLACE: Final[dict[Function, Callable[..., Any]]] = {Function.FIRST: min, Function.LAST: max}
OF_VALUES: Final[dict[Function, Callable[[Sequence[Any]], Value]]] = {
    Function.SUM: total,
    Function.MIN: min,
    Function.MAX: max,
    Function.AVG: average,
}
