"""What the list of topics shows."""

import base64

import pytest

from console.queries.reading import State
from console.queries.topics import PAGE_ROWS, Topics, topics
from tests.console import cluster_rows


def shown(contains: str = "", page: int = 1) -> Topics:
    data = topics(None, contains, page).data
    assert data is not None
    return data


def test_a_topic_is_shown_with_what_was_set_on_it() -> None:
    orders = cluster_rows.cluster()
    cluster_rows.broker(orders, 1)
    cluster_rows.topic(orders, "payments", partitions=3, configs={"b": "2", "a": "1"})

    [row] = shown().rows

    assert (row.name, row.partitions, row.replication) == ("payments", 3, 1)
    assert [(o.key, o.value) for o in row.overrides] == [("a", "1"), ("b", "2")]
    assert (row.state, row.word) == ("ok", "Led")
    assert base64.urlsafe_b64decode(f"{row.id}==") == b"payments".ljust(16, b"\0")


def test_partitions_without_a_leader_are_counted() -> None:
    orders = cluster_rows.cluster()
    cluster_rows.broker(orders, 1, is_fenced=True)
    cluster_rows.topic(orders, "payments", partitions=3)

    [row] = shown().rows

    assert (row.state, row.word) == ("bad", "3 without leader")


def test_a_filter_finds_a_part_of_a_name() -> None:
    orders = cluster_rows.cluster()
    for name in ("orders.created", "orders.shipped", "payments"):
        cluster_rows.topic(orders, name)

    assert [row.name for row in shown(" Orders ").rows] == ["orders.created", "orders.shipped"]
    assert shown("orders").total == 2


def test_nothing_found_is_empty_and_keeps_the_filter() -> None:
    cluster_rows.topic(cluster_rows.cluster(), "payments")

    reading = topics(None, "zzz", 1)

    assert reading.state is State.EMPTY
    assert reading.data is not None
    assert reading.data.filter == "zzz"


@pytest.mark.slow
def test_a_long_list_comes_in_pages() -> None:
    orders = cluster_rows.cluster()
    for number in range(PAGE_ROWS + 5):
        cluster_rows.topic(orders, f"topic-{number:03}")

    first, second, beyond = shown(page=1), shown(page=2), shown(page=99)

    assert (first.first, first.last, first.total) == (1, PAGE_ROWS, PAGE_ROWS + 5)
    assert (first.previous_page, first.next_page) == (None, 2)
    assert (second.first, second.last) == (PAGE_ROWS + 1, PAGE_ROWS + 5)
    assert (second.previous_page, second.next_page) == (1, None)
    assert beyond == second


def test_a_filter_asks_for_no_character_that_no_name_has() -> None:
    cluster_rows.topic(cluster_rows.cluster(), "payments")

    data = shown(contains=" pay\0ments ")

    assert (data.filter, len(data.rows)) == ("payments", 1)
