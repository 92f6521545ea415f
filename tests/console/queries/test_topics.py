"""What the list of topics shows."""

import base64

import pytest
from django.db import DatabaseError

from console.queries.reading import State
from console.queries.topics import PAGE_ROWS, Topics, topics
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Kind, Operation, Role
from tests.console import cluster_rows

ALL = Rights([Grant(role=Role.VIEWER)])


def shown(contains: str = "", page: int = 1, rights: Rights = ALL) -> Topics:
    data = topics(None, contains, page, rights).data
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

    reading = topics(None, "zzz", 1, ALL)

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


def limited(*patterns: str) -> Rights:
    return Rights(
        Grant(operation=Operation.VIEW, kind=Kind.TOPIC, pattern=pattern) for pattern in patterns
    )


def test_only_topics_that_the_user_may_see_are_shown_and_counted() -> None:
    orders = cluster_rows.cluster()
    for name in ("orders.a", "orders.b", "Orders.c", "orders_x", "payments", "secret"):
        cluster_rows.topic(orders, name)

    some = shown(rights=limited("orders.*", "payments"))
    none = shown(rights=limited("nothing*"))

    # Case matters, and a dot is a dot.
    assert [row.name for row in some.rows] == ["orders.a", "orders.b", "payments"]
    assert (some.total, some.is_whole) == (3, False)
    assert (none.rows, none.total) == ((), 0)


def test_what_was_read_for_one_user_is_not_shown_to_another_as_stale(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster_rows.topic(cluster_rows.cluster(), "secret")
    shown()

    def away() -> None:
        raise DatabaseError("away")

    monkeypatch.setattr("brokers.controlplane.selectors.clusters", away)

    assert topics(None, "", 1, ALL).state is State.STALE
    assert topics(None, "", 1, limited("orders.*")).state is State.FAILED


def test_a_cluster_that_the_user_has_no_right_on_is_not_there() -> None:
    cluster_rows.cluster()
    elsewhere = Rights([Grant(role=Role.VIEWER, cluster="another-cluster")])

    data = shown(rights=elsewhere)

    assert data.frame.shown is None
    assert data.frame.is_hidden
