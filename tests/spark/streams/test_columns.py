"""Every operator and aggregate answers on Spark as it does in Python."""

import math
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from spark_integration.streams.aggregates import (
    avg_of,
    collect_of,
    count,
    count_of,
    first_of,
    last_of,
    max_of,
    min_of,
    sum_of,
)
from spark_integration.streams.evaluation import evaluate
from spark_integration.streams.expressions import (
    Expression,
    as_double,
    as_long,
    as_text,
    choose,
    coalesce,
    concat,
    contains,
    ends_with,
    field,
    hour,
    is_null,
    kind_of,
    length,
    lower,
    millis,
    starts_with,
    substring,
    text_of,
    time_of_millis,
    trim,
    truncate,
    upper,
)
from spark_integration.streams.fields import HAPPENED, Kind
from spark_integration.streams.folding import Member, fold
from spark_integration.streams.operators import Operator
from tests.extras import requires

pytestmark = [requires("java", "spark"), pytest.mark.slow]

COLUMNS = {
    "t": Kind.TEXT,
    "u": Kind.TEXT,
    "l": Kind.LONG,
    "m": Kind.LONG,
    "d": Kind.DOUBLE,
    "e": Kind.DOUBLE,
    "b": Kind.BOOLEAN,
    "c": Kind.BOOLEAN,
    "w": Kind.TIME,
    "x": Kind.TIME,
    "y": Kind.BYTES,
    "z": Kind.BYTES,
}
EDGES: dict[Kind, list[Any]] = {
    Kind.TEXT: [
        *("", " ", "a", "A", "ä", "ß", "ﬀ", "😀", "a😀b", "  a\t ", "Ab", "a\n", "\x00"),
        *("0", "-1", "+5", " 7", "7 ", "1\n", "9223372036854775807", "9223372036854775808", "٣"),
        *("1.5", "1e3", "1e999", "-1e-400", "NaN", "Infinity", "1f", ".5", "5.", "0x10", "true"),
    ],
    Kind.LONG: [0, 1, -1, 2, -7, 3600, 2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 1, -(2**63)],
    Kind.DOUBLE: [
        *(0.0, -0.0, 1.0, -1.5, 0.1, 1e-320, 2.0**53, 2.0**63, -(2.0**63), 9.3e18, 1e300, -1e308),
        *(float(2**63 - 513), 1.7976931348623157e308),
    ],
    Kind.BOOLEAN: [True, False],
    Kind.TIME: [0, -1, 1, 999, 3_600_000_000, -62_135_596_800_000_000, 253_402_300_799_999_999],
    Kind.BYTES: [b"", b"a", b"\xff", "ä".encode(), b"\xed\xa0\x80", b"\xc0\x80", b"b\x00"],
}
T, U, L, M, D, E, B, C, W, X, Y, Z = map(field, COLUMNS)
COMPARED = [
    pair
    for left, right in [(T, U), (L, M), (D, E), (L, D), (B, C), (W, X), (Y, Z)]
    for pair in (
        *(left == right, left != right, left < right),
        *(left <= right, left > right, left >= right),
    )
]
CALCULATED = [
    pair
    for left, right in [(L, M), (D, E), (L, D), (D, M)]
    for pair in (left + right, left - right, left * right, left / right)
]
EXPRESSIONS = [
    *COMPARED,
    *CALCULATED,
    *(L % M, L + 1, 1 - L, D * 2, 2.5 / D, T == "a", B & C, B | C, ~B),
    *(is_null(T), is_null(Y), coalesce(L, M, 0), coalesce(T, U), choose(B, T, U)),
    *(choose(is_null(D), 0.0, D), length(T), lower(T), upper(T), trim(T)),
    *(substring(T, start=0, count=1), substring(T, start=1, count=2), concat(T, "-", U)),
    *(contains(T, U), starts_with(T, U), ends_with(T, U), contains(T, "a")),
    *(as_text(T), as_text(L), as_text(B), as_text(Y), as_long(T), as_long(L), as_long(D)),
    *(as_double(T), as_double(L), as_double(D), millis(W), time_of_millis(L)),
    *(truncate(W, "1h"), truncate(W, "7ms"), hour(W), truncate(W, "7ms") == X),
    *((L + M > 0) & ~is_null(T) | (D / E < 1), as_long(as_double(L)), L * M - 1 > D),
]
AGGREGATES = [
    count(),
    *(count_of(name) for name in COLUMNS),
    *(sum_of("l"), sum_of(L % 1000), avg_of("l"), avg_of("m"), sum_of(L * M)),
    *(sum_of(as_double(L % 100)), avg_of(as_double(L % 100) / 4)),
    *(make(name) for make in (min_of, max_of) for name in COLUMNS if name not in "yz"),
    *(collect_of(name, at_most=3) for name in "tuldbc"),
    *(make(name) for make in (first_of, last_of) for name in COLUMNS if name not in "yz"),
]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rows_of_edges(count: int) -> list[dict[str, Any]]:
    """Every edge of each kind once, and then at random."""
    draw = random.Random(7)
    rows = []
    for at in range(count):
        row = {}
        for name, kind in COLUMNS.items():
            edges = [None, *EDGES[kind]]
            first = at < len(edges) and name in "tldbwy"
            row[name] = edges[at] if first else draw.choice(edges)
        rows.append(row)
    return rows


def to_spark(name: str, value: Any) -> Any:
    is_time = value is not None and COLUMNS.get(name, Kind.TIME) is Kind.TIME
    return EPOCH + timedelta(microseconds=value) if is_time else value


def from_spark(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return bytes(value) if isinstance(value, bytearray) else value


def as_told(column: Any, kind: Kind) -> Any:
    from pyspark.sql import functions  # noqa: PLC0415 (an extra)

    return functions.unix_micros(column) if kind is Kind.TIME else column


def is_same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-15) or left == right
    return left == right and type(left) is type(right)


def test_every_operator_is_tried() -> None:
    tried: set[Operator] = set()

    def walk(expression: Expression) -> None:
        if expression.operator is not None:
            tried.add(expression.operator)
        for argument in expression.arguments:
            walk(argument)

    for expression in EXPRESSIONS:
        walk(expression)

    assert tried == set(Operator)


def test_expressions_answer_as_in_python(spark: Any) -> None:
    from spark_integration.streams.spark_columns import TYPES, column_of  # noqa: PLC0415 (an extra)

    rows = rows_of_edges(150)
    schema = "at int, " + ", ".join(f"{name} {TYPES[kind]}" for name, kind in COLUMNS.items())
    data = [(at, *(to_spark(name, row[name]) for name in COLUMNS)) for at, row in enumerate(rows)]
    frame = spark.createDataFrame(data, schema)
    told = [
        as_told(column_of(term, COLUMNS), kind_of("test", term, COLUMNS)).alias(f"e{at}")
        for at, term in enumerate(EXPRESSIONS)
    ]

    answers = frame.select("at", *told).collect()

    differing = [
        (text_of(term), row, expected, found)
        for answer in answers
        for at, term in enumerate(EXPRESSIONS)
        for row in [rows[answer.at]]
        for expected, found in [(evaluate(term, row), from_spark(answer[f"e{at}"]))]
        if not is_same(expected, found)
    ]
    assert differing == []


def test_aggregates_answer_as_in_python(spark: Any) -> None:
    from spark_integration.streams.aggregates import kind_of_aggregate  # noqa: PLC0415
    from spark_integration.streams.spark_columns import (  # noqa: PLC0415 (an extra)
        OFFSET,
        PARTITION,
        TYPES,
        aggregate_of,
    )

    rows = [{**row, "g": at % 17, "o": at} for at, row in enumerate(rows_of_edges(150))]
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in COLUMNS.items())
    schema = f"g int, {OFFSET} bigint, {PARTITION} int, {HAPPENED} timestamp, {columns}"
    data = [
        (row["g"], row["o"], 0, *(to_spark(name, row[name]) for name in ["w", *COLUMNS]))
        for row in rows
    ]
    told = [
        as_told(aggregate_of(term, COLUMNS), kind_of_aggregate("a", term, COLUMNS)).alias(f"a{at}")
        for at, term in enumerate(AGGREGATES)
    ]

    answers = spark.createDataFrame(data, schema).groupBy("g").agg(*told).collect()

    differing = []
    for answer in answers:
        members = [
            Member(row=row, place=None if row["w"] is None else (row["w"], 0, row["o"]))
            for row in rows
            if row["g"] == answer.g
        ]
        for at, term in enumerate(AGGREGATES):
            expected, found = fold(term, members), from_spark(answer[f"a{at}"])
            if not is_same(expected, found):
                differing.append((term.to_json(), expected, found))
    assert differing == []
    assert len(answers) == 17
