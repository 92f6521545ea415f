"""Two topologies can be compared by their forms in JSON."""

import json

from spark_integration.streams.aggregates import count
from spark_integration.streams.building import stream
from spark_integration.streams.expressions import field
from spark_integration.streams.formats import json_format
from spark_integration.streams.topology import differences
from spark_integration.streams.windows import hopping, tumbling

ORDERS = stream("orders", json_format({"country": "text", "amount": "long"}))


def test_difference_is_reported_by_its_path() -> None:
    windowed = ORDERS.group("country").window(tumbling("5m")).aggregate(orders=count())
    hopped = ORDERS.group("country").window(hopping("5m", slide="1m")).aggregate(orders=count())

    before = json.loads(json.dumps(windowed.to("totals").to_json()))

    assert differences(before, windowed.to("totals").to_json()) == []
    assert differences(before, hopped.final().to("totals").to_json()) == [
        'grouping.window.shape: was "tumbling", is "hopping"',
        "grouping.window.slide_ms: was 300000, is 60000",
        "grouping.final: was false, is true",
    ]


def test_additional_step_is_reported_as_a_whole() -> None:
    before, after = ORDERS.to("a"), ORDERS.where(field("amount") > 1).to("a")

    (line,) = differences(before.to_json(), after.to_json())

    assert line.startswith("steps: was [], is [")


def test_a_plan_reads_from_top_to_bottom() -> None:
    topology = (
        ORDERS.select("country", double=field("amount") * 2)
        .group("country")
        .window(tumbling("5m"))
        .aggregate(orders=count())
        .final()
        .to("totals")
    )

    assert topology.describe().splitlines() == [
        "stream orders (json, time the time of the record)",
        "select country = country, double = (amount * 2)",
        "group country",
        "window tumbling 300000 ms by 300000 ms",
        "aggregate orders = count()",
        "final",
        "to totals",
    ]
