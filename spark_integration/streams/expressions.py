"""Expressions over the fields of a row: `field("amount") * 2 > 10`. Pure trees.

No value instead of an error: a result that overflows, divides by zero or cannot be converted is
absent, and so is any result computed from an absent value, except for `is_null`, `coalesce`,
`choose` and three-valued logic, all as in SQL.
"""

import math
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

from spark_integration.streams.durations import parse_duration
from spark_integration.streams.errors import StreamRefused, refused
from spark_integration.streams.fields import Columns, Kind, require_column
from spark_integration.streams.operators import SIGNATURES, Operator

Literal: TypeAlias = str | int | float | bool
# Python values accepted as expressions.
Term: TypeAlias = "Expression | str | int | float | bool"

LONGS: Final = range(-(2**63), 2**63)
# Limits for readers, and for the recursion of code that walks the tree.
MOST_DEEP: Final = 100
MOST_TEXT: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Expression:
    """A field, a literal, or an operator over expressions; Python operators build expressions."""

    field: str | None = None
    literal: Literal | None = None
    operator: Operator | None = None
    arguments: tuple["Expression", ...] = ()
    depth: int = 1

    def __eq__(self, other: object) -> "Expression":  # type: ignore[override]
        return call(Operator.EQUAL, self, other)

    def __ne__(self, other: object) -> "Expression":  # type: ignore[override]
        return call(Operator.UNEQUAL, self, other)

    def __hash__(self) -> int:
        return id(self)

    def __lt__(self, other: Term) -> "Expression":
        return call(Operator.LESS, self, other)

    def __le__(self, other: Term) -> "Expression":
        return call(Operator.AT_MOST, self, other)

    def __gt__(self, other: Term) -> "Expression":
        return call(Operator.MORE, self, other)

    def __ge__(self, other: Term) -> "Expression":
        return call(Operator.AT_LEAST, self, other)

    def __and__(self, other: Term) -> "Expression":
        return call(Operator.AND, self, other)

    def __rand__(self, other: Term) -> "Expression":
        return call(Operator.AND, other, self)

    def __or__(self, other: Term) -> "Expression":
        return call(Operator.OR, self, other)

    def __ror__(self, other: Term) -> "Expression":
        return call(Operator.OR, other, self)

    def __invert__(self) -> "Expression":
        return call(Operator.NOT, self)

    def __add__(self, other: Term) -> "Expression":
        return call(Operator.ADD, self, other)

    def __radd__(self, other: Term) -> "Expression":
        return call(Operator.ADD, other, self)

    def __sub__(self, other: Term) -> "Expression":
        return call(Operator.SUBTRACT, self, other)

    def __rsub__(self, other: Term) -> "Expression":
        return call(Operator.SUBTRACT, other, self)

    def __mul__(self, other: Term) -> "Expression":
        return call(Operator.MULTIPLY, self, other)

    def __rmul__(self, other: Term) -> "Expression":
        return call(Operator.MULTIPLY, other, self)

    def __truediv__(self, other: Term) -> "Expression":
        return call(Operator.DIVIDE, self, other)

    def __rtruediv__(self, other: Term) -> "Expression":
        return call(Operator.DIVIDE, other, self)

    def __mod__(self, other: Term) -> "Expression":
        return call(Operator.REMAINDER, self, other)

    def __rmod__(self, other: Term) -> "Expression":
        return call(Operator.REMAINDER, other, self)

    def __bool__(self) -> NoReturn:
        # Called by `and`, `or`, `not`, `if` and chains such as 1 < x < 3.
        raise StreamRefused(
            f"{text_of(self)} has no truth value before it runs; "
            "write & for and, | for or, ~ for not, each side in brackets"
        )


def field(name: str) -> Expression:
    """Return a field of the row."""
    return Expression(field=name)


def literal(value: object) -> Expression:
    """Return a literal."""
    if isinstance(value, str):
        require_text(value)
    elif isinstance(value, bool):
        pass
    elif isinstance(value, int):
        if value not in LONGS:
            raise StreamRefused(f"{value} does not fit into 64 bits; write it as a double")
    elif not isinstance(value, float) or not math.isfinite(value):
        raise StreamRefused(
            f"{value!r} cannot be a literal in an expression; "
            "give a text, a whole number, a finite number or a boolean"
        )
    return Expression(literal=value)


def require_text(value: str) -> None:
    if len(value) > MOST_TEXT:
        raise StreamRefused(f"a text of {len(value)} characters; at most {MOST_TEXT} are allowed")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise StreamRefused(f"{value!r} has a lone surrogate; give the whole character") from None


def call(operator: Operator, *terms: object) -> Expression:
    arguments = tuple(expression_of(term) for term in terms)
    depth = 1 + max((argument.depth for argument in arguments), default=0)
    if depth > MOST_DEEP:
        raise StreamRefused(
            f"an expression is {depth} operators deep, at most {MOST_DEEP} are allowed; "
            "compute a part of it in a select before"
        )
    return Expression(operator=operator, arguments=arguments, depth=depth)


def expression_of(term: object) -> Expression:
    return term if isinstance(term, Expression) else literal(term)


def column_or(term: object) -> Expression:
    """Return an expression; a text is the name of a field."""
    return field(term) if isinstance(term, str) else expression_of(term)


def is_null(term: Term) -> Expression:
    return call(Operator.IS_NULL, term)


def coalesce(*terms: Term) -> Expression:
    """Return the first value that is present."""
    return call(Operator.COALESCE, *terms)


def choose(condition: Term, then: Term, otherwise: Term) -> Expression:
    """Return `then` where the condition is true, and `otherwise` where it is false or absent."""
    return call(Operator.CHOOSE, condition, then, otherwise)


def length(term: Term) -> Expression:
    return call(Operator.LENGTH, term)


def lower(term: Term) -> Expression:
    return call(Operator.LOWER, term)


def upper(term: Term) -> Expression:
    return call(Operator.UPPER, term)


def trim(term: Term) -> Expression:
    return call(Operator.TRIM, term)


def substring(term: Term, *, start: int, count: int) -> Expression:
    """Return `count` code points from index `start`, counted from 0."""
    for name, number in (("start", start), ("count", count)):
        if not 0 <= number < 2**30:
            raise StreamRefused(f"substring: {name} is {number!r}; give 0 to {2**30 - 1}")
    return call(Operator.SUBSTRING, term, start, count)


def concat(*terms: Term) -> Expression:
    return call(Operator.CONCAT, *terms)


def contains(term: Term, part: Term) -> Expression:
    return call(Operator.CONTAINS, term, part)


def starts_with(term: Term, part: Term) -> Expression:
    return call(Operator.STARTS_WITH, term, part)


def ends_with(term: Term, part: Term) -> Expression:
    return call(Operator.ENDS_WITH, term, part)


def as_text(term: Term) -> Expression:
    return call(Operator.AS_TEXT, term)


def as_long(term: Term) -> Expression:
    return call(Operator.AS_LONG, term)


def as_double(term: Term) -> Expression:
    return call(Operator.AS_DOUBLE, term)


def millis(term: Term) -> Expression:
    return call(Operator.MILLIS, term)


def time_of_millis(term: Term) -> Expression:
    return call(Operator.TIME_OF_MILLIS, term)


def truncate(term: Term, duration: str) -> Expression:
    """Round a time down to a multiple of a duration since 1970."""
    return call(Operator.TRUNCATE, term, parse_duration("truncate", duration))


def hour(term: Term) -> Expression:
    return call(Operator.HOUR, term)


def kind_of(step: str, expression: Expression, columns: Columns) -> Kind:
    """Return the result kind of an expression, or refuse it."""
    if expression.field is not None:
        return require_column(step, columns, expression.field)
    if expression.operator is None:
        assert expression.literal is not None
        return kind_of_literal(expression.literal)
    kinds = tuple(kind_of(step, argument, columns) for argument in expression.arguments)
    signature = SIGNATURES[expression.operator]
    answer = signature.answer(kinds)
    is_written_out = all(
        argument.literal is not None
        for place, argument in enumerate(expression.arguments)
        if place in signature.literals
    )
    if answer is None or not is_written_out:
        given = ", ".join(kind.value for kind in kinds) or "nothing"
        raise refused(
            step,
            f"{text_of(expression)} is over {given}",
            f"{expression.operator.value} takes {signature.takes}",
        )
    return answer


def kind_of_literal(value: Literal) -> Kind:
    if isinstance(value, bool):
        return Kind.BOOLEAN
    if isinstance(value, str):
        return Kind.TEXT
    return Kind.LONG if isinstance(value, int) else Kind.DOUBLE


def text_of(expression: Expression) -> str:
    """Format an expression for readers."""
    if expression.field is not None:
        return expression.field
    if expression.operator is None:
        return repr(expression.literal)
    parts = [text_of(argument) for argument in expression.arguments]
    word = expression.operator.value
    if len(parts) == 2 and (not word[0].isalpha() or word in {"and", "or"}):
        return f"({parts[0]} {word} {parts[1]})"
    return f"{word}({', '.join(parts)})"


def json_of(expression: Expression) -> Any:
    """Return an expression as JSON, by which topologies are compared."""
    if expression.field is not None:
        return {"field": expression.field}
    if expression.operator is None:
        assert expression.literal is not None
        # Distinguish equal longs and doubles.
        kind = kind_of_literal(expression.literal).value
        return {"literal": expression.literal, "kind": kind}
    arguments = [json_of(argument) for argument in expression.arguments]
    return {"operator": expression.operator.value, "arguments": arguments}
