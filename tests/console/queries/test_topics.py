"""What the list of topics shows: the database's part and the brokers', joined."""

import pytest
from django.db import DatabaseError

from console.queries.reading import Reading, State
from console.queries.topics import PAGE_ROWS, Asked, Topics, asked_of, topics
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Kind, Operation, Role
from tests.builders import live
from tests.builders.live import Told
from tests.console import cluster_rows

ALL = Rights([Grant(role=Role.VIEWER)])


def read(asked: Asked | None = None, rights: Rights = ALL) -> Reading[Topics]:
    return topics(None, asked or Asked(), rights)


def shown(asked: Asked | None = None, rights: Rights = ALL) -> Topics:
    data = read(asked, rights).data
    assert data is not None
    return data


def names(asked: Asked | None = None, rights: Rights = ALL) -> list[str]:
    return [row.name for row in shown(asked, rights).rows]


def lose_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> None:
        raise DatabaseError("away")

    monkeypatch.setattr("brokers.controlplane.selectors.clusters", away)


def test_a_topic_is_shown_as_it_is_set_and_as_brokers_tell_of_it(told: Told) -> None:
    orders = cluster_rows.cluster()
    cluster_rows.broker(orders, 1)
    cluster_rows.topic(orders, "payments", partitions=3, configs={"b": "2", "a": "1"})
    told.put(live.topic("payments", size_bytes=99, records_per_s=2.5, bytes_in_per_s=10.0))

    [row] = shown().rows

    assert (row.name, row.partitions, row.replication) == ("payments", "3", "1")
    assert [(o.key, o.value) for o in row.overrides] == [("a", "1"), ("b", "2")]
    assert (row.state, row.word) == ("ok", "OK")
    assert (row.size, row.records, row.bytes_in, row.mark) == ("99 B", "2.5", "10 B", None)


def test_partitions_without_a_leader_are_counted_and_are_worse_than_lag(told: Told) -> None:
    orders = cluster_rows.cluster()
    cluster_rows.broker(orders, 1, is_fenced=True)
    cluster_rows.topic(orders, "payments", partitions=3)
    told.put(live.topic("payments", lag=5, verdict="stopped", worst_group="billing"))

    [row] = shown().rows

    assert (row.state, row.word) == ("bad", "3 without leader")
    assert row.mark is not None
    assert (row.mark.state, row.mark.word, row.group, row.lag) == ("bad", "Stopped", "billing", "5")


def test_a_group_that_the_user_may_not_see_is_not_named(told: Told) -> None:
    orders = cluster_rows.cluster()
    cluster_rows.topic(orders, "payments")
    told.put(live.topic("payments", lag=5, verdict="falling behind", worst_group="billing"))
    rights = Rights([Grant(operation=Operation.VIEW, kind=Kind.TOPIC)])

    [row] = shown(rights=rights).rows

    assert (row.lag, row.group) == ("5", "")


def test_without_the_collector_only_its_columns_are_unknown(told: Told) -> None:
    orders = cluster_rows.cluster()
    cluster_rows.broker(orders, 1)
    cluster_rows.topic(orders, "payments", partitions=2)
    told.begin_silent()

    data = shown()

    [row] = data.rows
    assert (row.partitions, row.word, row.size, row.records) == ("2", "Has leaders", "–", "–")
    assert data.frame.live is not None
    assert data.frame.live.is_away
    # Nobody knows whether groups keep up, and nobody is kept waiting for pictures.
    assert not any(chip.count for chip in data.chips)
    assert told.asked == []


def test_when_the_database_goes_away_numbers_of_the_brokers_stay_new(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = cluster_rows.cluster()
    cluster_rows.topic(orders, "payments", partitions=2)
    told.put(live.topic("payments", records_per_s=1.0))
    read()
    lose_the_database(monkeypatch)
    told.put(live.topic("payments", records_per_s=7.0))

    reading = read(asked_of(contains="pay"))

    assert reading.state is State.STALE
    assert reading.data is not None
    assert [(row.partitions, row.records) for row in reading.data.rows] == [("2", "7")]


def test_a_database_that_was_never_there_leaves_what_the_brokers_tell(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_the_database(monkeypatch)
    told.put(live.topic("payments", partitions=4))

    reading = read()

    assert reading.state is State.STALE
    assert reading.data is not None
    assert reading.data.is_without_database
    assert [(r.name, r.partitions, r.word) for r in reading.data.rows] == [
        ("payments", "4", "Not known")
    ]


def test_without_database_and_collector_the_list_has_failed(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_the_database(monkeypatch)
    told.begin_silent()

    assert read().state is State.FAILED


def test_a_filter_finds_a_part_of_a_name() -> None:
    orders = cluster_rows.cluster()
    for name in ("orders.created", "orders.shipped", "payments"):
        cluster_rows.topic(orders, name)

    data = shown(asked_of(contains=" Orders "))

    assert [row.name for row in data.rows] == ["orders.created", "orders.shipped"]
    assert (data.total, data.every) == (2, 3)
    assert read(asked_of(contains="zzz")).state is State.EMPTY


def put_some(told: Told) -> None:
    orders = cluster_rows.cluster()
    cluster_rows.broker(orders, 1)
    cluster_rows.broker(orders, 2, is_fenced=True)
    cluster_rows.topic(orders, "a-lost", leader=2)
    cluster_rows.topic(orders, "b-slow", configs={"cleanup.policy": "compact"})
    cluster_rows.topic(orders, "c-fine", partitions=9)
    cluster_rows.topic(orders, "__consumer_offsets")
    told.put(
        live.topic("b-slow", lag=10, verdict="falling behind", records_per_s=3.0, size_bytes=5),
        live.topic("c-fine", lag=0, size_bytes=70),
    )


@pytest.mark.parametrize(
    ("facets", "found"),
    [
        ([], ["a-lost", "b-slow", "c-fine"]),
        (["leaderless"], ["a-lost"]),
        (["lagging"], ["b-slow"]),
        (["ok"], ["c-fine"]),
        (["idle"], ["c-fine"]),
        (["compacted"], ["b-slow"]),
        (["overridden"], ["b-slow"]),
        (["internal"], ["__consumer_offsets"]),
        (["ok", "lagging"], ["b-slow"]),
        (["lagging", "idle"], []),
        (["nothing", "<b>"], ["a-lost", "b-slow", "c-fine"]),
    ],
)
def test_facets_narrow_down_and_one_of_the_health_holds(
    told: Told, facets: list[str], found: list[str]
) -> None:
    put_some(told)

    assert names(asked_of(facets=facets)) == found


def test_facets_count_what_they_leave_beside_the_others(told: Told) -> None:
    put_some(told)

    counts = {chip.word: chip.count for chip in shown(asked_of(facets=["compacted"])).chips}

    assert counts == {
        "Without leader": 0,
        "Lagging": 1,
        "OK": 0,
        "Idle": 0,
        "Compacted": 1,
        "Configs set": 1,
        "Internal": 0,
    }


def test_a_policy_of_all_brokers_counts_where_a_topic_sets_none(told: Told) -> None:
    from brokers.cluster.image import ResourceType  # noqa: PLC0415 - after Django is set up
    from brokers.controlplane import models  # noqa: PLC0415

    put_some(told)
    models.ResourceConfig.objects.create(
        cluster=models.Cluster.objects.get(),
        resource_type=ResourceType.BROKER,
        name="",
        configs={"log.cleanup.policy": "compact,delete"},
    )

    assert names(asked_of(facets=["compacted"])) == ["a-lost", "b-slow", "c-fine"]


@pytest.mark.parametrize(
    ("sort", "found"),
    [
        ("name", "abc"),
        ("-name", "cba"),
        ("-partitions", "cab"),
        # What is not known comes last, whichever way.
        ("size", "bca"),
        ("-size", "cba"),
        ("-records", "bca"),
        ("-health", "abc"),
        ("-lag", "bca"),
        ("replication", "abc"),
        ("-in", "bca"),
        ("out", "bca"),
        ("nothing", "abc"),
        ("--name", "abc"),
    ],
)
def test_every_column_can_be_sorted_by(told: Told, sort: str, found: str) -> None:
    put_some(told)

    assert "".join(name[0] for name in names(asked_of(sort=sort))) == found


def test_links_keep_what_was_asked_for(told: Told) -> None:
    put_some(told)
    asked = asked_of(contains="a b", facets=["ok"], sort="-size")

    data = shown(asked)
    heads = {head.title: head for head in data.heads}

    cluster = f"cluster={cluster_rows.CLUSTER_ID}"
    assert heads["Size"].order == "descending"
    assert heads["Size"].link == f"?q=a+b&facet=ok&sort=size&{cluster}"
    assert heads["Name"].link == f"?q=a+b&facet=ok&{cluster}"
    chips = {chip.word: chip for chip in data.chips}
    assert chips["OK"].link == f"?q=a+b&sort=-size&{cluster}"
    assert chips["Lagging"].link == f"?q=a+b&facet=lagging&sort=-size&{cluster}"


@pytest.mark.slow
def test_a_hundred_rows_are_a_page_and_pages_beyond_are_the_last_one() -> None:
    orders = cluster_rows.cluster()
    for number in range(PAGE_ROWS + 5):
        cluster_rows.topic(orders, f"topic-{number:03}")

    first, second, beyond = (shown(asked_of(page=page)) for page in ("1", "2", "999999"))

    cluster = f"cluster={cluster_rows.CLUSTER_ID}"
    assert (first.first, first.last, first.total) == (1, PAGE_ROWS, PAGE_ROWS + 5)
    assert (first.previous_page, first.next_page) == ("", f"?{cluster}&page=2")
    assert (second.first, second.last) == (PAGE_ROWS + 1, PAGE_ROWS + 5)
    assert (second.previous_page, second.next_page) == (f"?{cluster}", "")
    assert beyond.rows == second.rows


def test_a_filter_asks_for_no_character_that_no_name_has() -> None:
    assert asked_of(contains=" pay\0ments ").contains == "payments"


def limited(*patterns: str) -> Rights:
    return Rights(
        Grant(operation=Operation.VIEW, kind=Kind.TOPIC, pattern=pattern) for pattern in patterns
    )


def test_only_topics_that_the_user_may_see_are_shown_and_counted(told: Told) -> None:
    orders = cluster_rows.cluster()
    for name in ("orders.a", "orders.b", "Orders.c", "orders_x", "payments", "secret"):
        cluster_rows.topic(orders, name)
    told.put(live.topic("secret.new"))

    some = shown(rights=limited("orders.*", "payments"))
    none = shown(rights=limited("nothing*"))

    # Case matters, and a dot is a dot.
    assert [row.name for row in some.rows] == ["orders.a", "orders.b", "payments"]
    assert (some.total, some.every, some.is_whole) == (3, 3, False)
    assert (none.rows, none.total) == ((), 0)
    assert sum(chip.count for chip in none.chips) == 0


def test_what_was_read_for_one_user_is_not_shown_to_another_as_stale(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_rows.topic(cluster_rows.cluster(), "secret")
    told.put(live.topic("secret"), live.topic("secret.new"))
    shown()
    lose_the_database(monkeypatch)

    assert names() == ["secret", "secret.new"]
    assert names(rights=limited("orders.*")) == []


def test_a_topic_that_was_deleted_is_gone_though_brokers_still_tell_of_it(told: Told) -> None:
    cluster_rows.topic(cluster_rows.cluster(), "payments")
    told.put(live.topic("payments"), live.topic("deleted"))

    assert names() == ["payments"]


def test_a_change_of_the_metadata_is_seen_at_once() -> None:
    orders = cluster_rows.cluster()
    cluster_rows.topic(orders, "payments")
    assert names() == ["payments"]

    cluster_rows.topic(orders, "refunds")
    orders.version += 1
    orders.save()

    assert names() == ["payments", "refunds"]


def test_a_cluster_that_the_user_has_no_right_on_is_not_there() -> None:
    cluster_rows.cluster()
    elsewhere = Rights([Grant(role=Role.VIEWER, cluster="another-cluster")])

    data = shown(rights=elsewhere)

    assert data.frame.shown is None
    assert data.frame.is_hidden
