"""Made-up records are mostly good, sometimes wrong, and the same for the same chance."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from random import Random

from spark_integration.examples.made_up import MadeUp, clicks, orders, products, spread

END = datetime(2026, 1, 1, 12, tzinfo=UTC)


def drawn_clicks(seed: int) -> list[MadeUp]:
    return list(clicks(Random(seed), spread(END, count=500, over=timedelta(hours=1))))


def test_moments_are_spread_up_to_the_end() -> None:
    moments = list(spread(END, count=4, over=timedelta(hours=1)))

    assert [(END - moment).total_seconds() / 60 for moment in moments] == [45, 30, 15, 0]


def test_no_moments_make_no_records() -> None:
    assert list(clicks(Random(1), spread(END, count=0, over=timedelta(0)))) == []


def test_clicks_have_ids_of_their_own_but_for_those_that_are_sent_twice() -> None:
    made = drawn_clicks(7)

    good = [json.loads(click.value) for click in made if click.value != b"no click"]
    ids = Counter(click["id"] for click in good)
    assert made == drawn_clicks(7)
    assert 0 < len(made) - len(good) < 50
    assert set(ids.values()) == {1, 2}
    late = [
        click
        for click in made
        if click.value != b"no click"
        and datetime.fromisoformat(json.loads(click.value)["at"]).timestamp() * 1000
        < click.at_ms - 3_600_000
    ]
    assert 0 < len(late) < 60


def test_some_orders_are_of_a_product_that_no_table_has() -> None:
    made = orders(Random(7), spread(END, count=300, over=timedelta(hours=1)))
    known = {(product.key or b"").decode() for product in products(END)}

    found = [json.loads(order.value)["product"] for order in made if order.value != b"no order"]
    assert known < set(found)
    assert len(set(found) - known) == 1
