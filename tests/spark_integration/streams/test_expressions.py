"""Expressions know their kinds before they run, and refuse what has none."""

from collections.abc import Callable
from typing import Any

import pytest

from spark_integration.streams.errors import StreamRefused
from spark_integration.streams.expressions import (
    Expression,
    as_text,
    call,
    choose,
    coalesce,
    concat,
    expression_of,
    field,
    is_null,
    json_of,
    kind_of,
    length,
    literal,
    substring,
    text_of,
    truncate,
)
from spark_integration.streams.fields import Kind
from spark_integration.streams.operators import Operator

COLUMNS = {
    "name": Kind.TEXT,
    "amount": Kind.DOUBLE,
    "number": Kind.LONG,
    "is_new": Kind.BOOLEAN,
    "at": Kind.TIME,
    "raw": Kind.BYTES,
}


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        (field("amount") > 0, Kind.BOOLEAN),
        (field("number") + 1, Kind.LONG),
        (1 - field("amount"), Kind.DOUBLE),
        (field("number") / 2, Kind.DOUBLE),
        ((field("number") % 2 == 0) & ~field("is_new"), Kind.BOOLEAN),
        (concat(field("name"), "!"), Kind.TEXT),
        (coalesce(field("name"), "none"), Kind.TEXT),
        (choose(is_null(field("at")), 0, length(field("name"))), Kind.LONG),
        (truncate(field("at"), "1h"), Kind.TIME),
        (as_text(field("raw")), Kind.TEXT),
    ],
    ids=lambda value: text_of(value) if isinstance(value, Expression) else value.value,
)
def test_a_kind_follows_from_those_of_the_fields(expression: Expression, kind: Kind) -> None:
    assert kind_of("select", expression, COLUMNS) is kind


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        (field("amout") > 0, "where: there is no field 'amout'; the fields are name (text)"),
        (field("name") > 0, "where: (name > 0) is over text, long; > takes two values of one kind"),
        (field("amount") & field("is_new"), "and takes two booleans"),
        (field("number") % 2.0, "% takes two longs"),
        (as_text(field("amount")), "as_text(amount) is over double"),
        (coalesce("a", 1), "coalesce takes values of one kind"),
        (coalesce(), "coalesce() is over nothing"),
        (call(Operator.TRUNCATE, field("at"), field("number")), "truncate takes"),
    ],
    ids=lambda value: text_of(value) if isinstance(value, Expression) else None,
)
def test_unsuitable_expression_is_refused_by_step_and_text(
    expression: Expression, told: str
) -> None:
    with pytest.raises(StreamRefused) as caught:
        kind_of("where", expression, COLUMNS)

    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: field("a") > 1 and field("b") > 1, "write & for and"),
        (lambda: 1 < field("a") < 3, "write & for and"),
        (lambda: literal(float("nan")), "nan cannot be a literal"),
        (lambda: field("a") == 2**63, "does not fit into 64 bits"),
        (lambda: literal(None), "None cannot be a literal"),
        (lambda: literal("\ud800"), "a lone surrogate"),
        (lambda: literal("x" * 10_001), "10001 characters"),
        (lambda: substring(field("a"), start=-1, count=1), "start is -1"),
        (lambda: truncate(field("a"), "soon"), "truncate: 'soon'"),
    ],
)
def test_meaningless_expression_is_refused_where_it_is_written(
    make: Callable[[], Any], told: str
) -> None:
    with pytest.raises(StreamRefused) as caught:
        make()

    assert told in str(caught.value)


def test_a_tree_that_is_too_deep_is_refused() -> None:
    expression = field("number")

    with pytest.raises(StreamRefused, match="101 operators deep"):
        sum(range(200), expression)


def test_an_expression_has_a_text_and_a_form_in_json() -> None:
    expression = (field("number") + 1 > 2.0) | is_null(field("name"))

    assert text_of(expression) == "(((number + 1) > 2.0) or is_null(name))"
    assert json_of(expression)["arguments"][1] == {
        "operator": "is_null",
        "arguments": [{"field": "name"}],
    }
    assert json_of(expression_of(1)) != json_of(expression_of(1.0))
