"""A shape that cannot run is refused by the step that asks for it."""

from collections.abc import Callable
from typing import Any

import pytest

from spark_integration.streams.aggregates import (
    Aggregate,
    Function,
    collect_of,
    count,
    last_of,
    max_of,
    sum_of,
)
from spark_integration.streams.building import Stream, stream
from spark_integration.streams.errors import StreamRefused
from spark_integration.streams.expressions import as_text, field
from spark_integration.streams.formats import bytes_format, json_format, text_format
from spark_integration.streams.windows import session, tumbling

WRONG: Any = "wrong"
FIELDS = {"country": "text", "amount": "double", "number": "long", "at": "time"}
ORDERS = stream("orders", json_format(FIELDS), time="at", grace="1m")
GROUPED = ORDERS.group("country")
COUNTED = GROUPED.aggregate(orders=count())


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (lambda: stream("a b", text_format()), "stream: 'a b' is not a valid topic name"),
        (lambda: stream("a", WRONG), "stream: 'wrong' is not a format"),
        (lambda: stream("a", json_format({})), "0 fields"),
        (lambda: json_format({"a": "number"}), "json_format: 'a' is of kind 'number'"),
        (lambda: json_format({"a": "bytes"}), "'a' is of kind 'bytes'; give one of text, long"),
        (lambda: collect_of("a", at_most=0), "collect_of: at_most is 0"),
        (lambda: GROUPED.aggregate(a=collect_of("at", at_most=1)), "of a time take millis"),
        (lambda: json_format({"a.b": "text"}), "'a.b' is not a valid field name"),
        (lambda: json_format({"a": "text", "A": "text"}), "differ only in case"),
        (lambda: json_format({"window_start": "time"}), "'window_start' is taken"),
        (lambda: stream("a", json_format(FIELDS), time="amount"), "time='amount' is of kind"),
        (lambda: stream("a", json_format(FIELDS), time="then"), "no field 'then'"),
        (lambda: stream("a", text_format(), grace="-1s"), "stream: '-1s'"),
        (lambda: stream("a", text_format(), bad_records="a"), "own topic"),
        (lambda: stream("a", bytes_format(), bad_records="b"), "never bad"),
        (lambda: ORDERS.where(field("amount")), "where: amount is of kind 'double'"),
        (lambda: ORDERS.select("record_time"), "'record_time' is taken"),
        (lambda: ORDERS.select("amount", amount=field("number")), "'amount' is given twice"),
        (ORDERS.select, "select: 0 fields"),
        (ORDERS.group, "group: the fields are []"),
        (lambda: ORDERS.group("amount"), "'amount' is of kind 'double'"),
        (lambda: ORDERS.group("record_key"), "no field 'record_key'"),
        (lambda: GROUPED.where(field("amount") > 0), "where: it cannot follow group"),
        (lambda: GROUPED.to("totals"), "to: it cannot follow group; a group needs aggregate"),
        (GROUPED.final, "final: it cannot follow group"),
        (lambda: GROUPED.window(WRONG), "'wrong' is not a window"),
        (lambda: GROUPED.window(tumbling("5m")).to("a"), "to: it cannot follow window"),
        (GROUPED.aggregate, "aggregate: 0 are given"),
        (lambda: GROUPED.aggregate(country=count()), "the name of a field of the group"),
        (lambda: GROUPED.aggregate(total=sum_of("country")), "sum takes a long or a double"),
        (lambda: GROUPED.aggregate(total=Aggregate(function=Function.SUM)), "sum of nothing"),
        (lambda: GROUPED.aggregate(key=last_of("record_key")), "last takes a text, number"),
        (lambda: GROUPED.aggregate(total=WRONG), "'total' is 'wrong'"),
        (lambda: COUNTED.window(tumbling("5m")), "put window right after group"),
        (lambda: COUNTED.aggregate(again=count()), "aggregate: it cannot follow aggregate"),
        (lambda: COUNTED.where(field("orders") > 1), "a second topology"),
        (COUNTED.final, "final: groups without a window never end"),
        (lambda: COUNTED.to("orders"), "'orders' is the topic of the stream"),
        (
            lambda: GROUPED.window(session("5m")).aggregate(orders=count()).to("totals"),
            "add final() after aggregate",
        ),
        (lambda: stream("a", bytes_format()).select(raw=field("value")).to("b"), "as_text"),
    ],
)
def test_a_shape_that_cannot_run_is_refused(build: Callable[[], Any], told: str) -> None:
    with pytest.raises(StreamRefused) as caught:
        build()

    assert told in str(caught.value)


def test_two_topologies_continue_one_stream() -> None:
    large = ORDERS.where(field("amount") > 100)

    assert large.to("large").columns == ORDERS.to("all").columns
    assert large.to("large").describe().splitlines() == [
        "stream orders (json, time at)",
        "where (amount > 100)",
        "to large",
    ]
    assert ORDERS.steps == ()


def test_steps_that_change_the_answer_change_the_fingerprint() -> None:
    def total(base: Stream) -> str:
        summed = base.group("country").window(tumbling("5m"))
        return summed.aggregate(top=max_of("amount")).final().to("t").fingerprint()

    prints = {
        total(ORDERS),
        total(ORDERS.where(field("amount") > 0)),
        total(ORDERS.where(field("amount") > 0.0)),
        total(stream("orders", json_format(FIELDS), time="at", grace="2m")),
        total(stream("orders", json_format(FIELDS), grace="1m")),
    }

    assert len(prints) == 5
    assert total(ORDERS) in prints


def test_a_key_of_the_record_can_be_read_as_a_text() -> None:
    keyed = ORDERS.select("amount", customer=as_text(field("record_key"))).group("customer")

    topology = keyed.aggregate(total=sum_of("amount")).to("totals")

    assert topology.key_is_text


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("flat_map", "makes one row of each row"),
        ("flatMapValues", "makes one row of each row"),
        ("join", "join-a-stream-with-a-table"),
        ("toTable", "reads one topic"),
        ("filter", "use where"),
        ("groupByKey", "use group"),
        ("reduce", "aggregate\\(n=count\\(\\)\\)"),
    ],
)
def test_step_of_kafka_streams_that_is_absent_is_refused_with_advice(
    name: str, advice: str
) -> None:
    with pytest.raises(StreamRefused, match=f"^{name}: streams have no such step; .*{advice}"):
        getattr(ORDERS, name)

    assert not hasattr(ORDERS, name)
    assert not hasattr(ORDERS, "colour")
