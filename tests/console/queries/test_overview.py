"""What the overview says of a cluster."""

import time
from dataclasses import replace
from pathlib import Path

from pytest_django import Settings

from brokers.agent_status import REGRESSED, WELL, write
from console.queries.needs import Rank
from console.queries.overview import MAX_NEEDS, overview
from console.queries.reading import State
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Kind, Role
from tests.builders import live as rows
from tests.builders.conditions import condition
from tests.builders.live import Told
from tests.console import cluster_rows

ALL = Rights([Grant(role=Role.VIEWER)])


def test_a_console_without_a_cluster_is_empty() -> None:
    assert overview(None, ALL).state is State.EMPTY


def test_brokers_are_told_with_shape_and_word() -> None:
    shown = cluster_rows.cluster()
    cluster_rows.broker(shown, 1, rack="a")
    cluster_rows.broker(shown, 2, is_fenced=True)

    data = overview(None, ALL).data

    assert data is not None
    assert [(b.id, b.address, b.state.mark, b.state.word, b.rack) for b in data.brokers] == [
        (1, "127.0.0.1:9092", "ok", "Serving", "a"),
        (2, "127.0.0.1:9093", "bad", "Fenced", None),
    ]
    assert data.bootstrap == ("127.0.0.1:9092", "127.0.0.1:9093")


def test_numbers_of_brokers_are_what_the_collector_was_told(told: Told) -> None:
    shown = cluster_rows.cluster()
    cluster_rows.broker(shown, 1)
    cluster_rows.broker(shown, 2)
    cluster_rows.broker(shown, 3)
    told.put(
        rows.broker(1, bytes_in_per_s=1024.0, loop_delay_p99_ms=0.25),
        rows.broker(2, failure="connection refused", disk_free_bytes=9_000_000_000),
    )

    data = overview(None, ALL).data

    assert data is not None
    first, second, third = data.brokers
    assert (first.bytes_in, first.loop_delay_ms, first.state.word) == (1024.0, 0.25, "Serving")
    assert (second.state.word, second.state.mark) == ("Silent", "warn")
    assert (third.bytes_in, third.loop_delay_ms, third.disk) == (None, None, None)
    assert [need.word for need in data.needs] == ["Silent", "Disk"]


def test_four_charts_are_about_the_cluster_shown() -> None:
    cluster_rows.cluster()

    data = overview(None, ALL).data

    assert data is not None
    assert [(chart.kind, chart.metric) for chart in data.charts] == [
        ("cluster", "bytes_in,bytes_out"),
        ("cluster", "requests"),
        ("cluster", "lag"),
        ("cluster", "log_bytes"),
    ]
    assert {chart.cluster_id for chart in data.charts} == {cluster_rows.CLUSTER_ID}
    assert len({chart.id for chart in data.charts}) == 4


def test_a_healthy_cluster_needs_nothing() -> None:
    shown = cluster_rows.cluster()
    cluster_rows.broker(shown, 1)
    cluster_rows.topic(shown, "orders", partitions=3)

    data = overview(None, ALL).data

    assert data is not None
    assert data.needs == ()


def test_a_database_that_was_set_back_needs_attention_first(
    tmp_path: Path, settings: Settings
) -> None:
    shown = cluster_rows.cluster()
    cluster_rows.broker(shown, 1, is_fenced=True)
    said = condition(
        condition=REGRESSED,
        message="METADATA_REGRESSED: it was set back",
        monotonic_ms=int(1000 * time.monotonic()),
    )

    settings.SAMSA_HOME = tmp_path
    write(tmp_path, said)
    data = overview(None, ALL).data
    write(tmp_path, replace(said, condition=WELL))
    healed = overview(None, ALL).data

    assert data is not None
    assert data.needs[0].sentence == "The cluster's database was restored to an older state"
    assert "METADATA_REGRESSED" in data.needs[0].cause
    assert healed is not None
    assert [need.sentence for need in healed.needs] == ["Broker 1 is not serving"]


def test_a_broker_that_is_away_and_what_it_led_are_told_once_each() -> None:
    shown = cluster_rows.cluster()
    cluster_rows.broker(shown, 1)
    cluster_rows.broker(shown, 2, is_fenced=True)
    for number in range(6):
        cluster_rows.topic(shown, f"topic-{number}", partitions=2, leader=2)

    data = overview(None, ALL).data

    assert data is not None
    assert [need.sentence for need in data.needs] == [
        "Broker 2 is not serving",
        "12 partitions have no leader",
    ]
    assert "topic-3 and 2 more topics" in data.needs[1].cause


def test_a_list_of_needs_ends_with_a_number() -> None:
    shown = cluster_rows.cluster()
    for broker_id in range(1, MAX_NEEDS + 4):
        cluster_rows.broker(shown, broker_id, is_fenced=True)

    data = overview(None, ALL).data

    assert data is not None
    assert (len(data.needs), data.more_needs) == (MAX_NEEDS, 3)


def test_the_newest_change_comes_first() -> None:
    shown = cluster_rows.cluster()
    cluster_rows.change(shown, 6, "long ago", at_ms=1_000_000)
    cluster_rows.change(shown, 7, "just now")

    data = overview(None, ALL).data

    assert data is not None
    assert [event.text for event in data.events] == ["just now", "long ago"]


def test_changes_of_one_kind_in_a_row_are_one_event() -> None:
    shown = cluster_rows.cluster(version=40)
    for number in range(6):
        cluster_rows.change(shown, 10 + number, f"topic created: t{number}", kind="topic")
    cluster_rows.change(shown, 20, "configuration changed: t0", kind="config")
    cluster_rows.change(shown, 21, "configuration changed: t0", kind="config")
    cluster_rows.change(shown, 22, "topic deleted: t5", kind="topic", actor="User:olga")

    data = overview(None, ALL).data

    assert data is not None
    assert [(event.text, event.times, event.actor) for event in data.events] == [
        ("topic deleted: t5", 1, "User:olga"),
        ("configuration changed: t0", 2, "User:alice"),
        ("topic created: t5, t4, t3, t2 and 2 more", 6, "User:alice"),
    ]


def test_a_topic_whose_partitions_changed_is_told_by_its_name() -> None:
    shown = cluster_rows.cluster(version=40)
    there = cluster_rows.topic(shown, "orders")
    cluster_rows.change(shown, 10, f"partitions added: {there.topic_id.hex()}", kind="topic")
    cluster_rows.change(shown, 11, f"topic deleted: {'ab' * 16}", kind="topic")

    data = overview(None, ALL).data

    assert data is not None
    assert [event.text for event in data.events] == [
        "topic deleted: q6urq6urq6urq6urq6urqw",
        "partitions added: orders",
    ]


def test_the_cluster_that_is_asked_for_is_shown() -> None:
    cluster_rows.cluster(cluster_id="a" * 22, name="first")
    cluster_rows.cluster(cluster_id="b" * 22, name="second")

    def name(cluster_id: str | None) -> str:
        data = overview(cluster_id, ALL).data
        assert data is not None
        assert data.frame.shown is not None
        assert len(data.frame.others) == 1
        return data.frame.shown.name

    assert name("b" * 22) == "second"
    assert name("nonsense") == name(None) == "first"


def test_who_sees_some_topics_is_told_nothing_of_brokers_and_other_topics() -> None:
    orders = cluster_rows.cluster()
    cluster_rows.broker(orders, 1, is_fenced=True)
    cluster_rows.topic(orders, "secret")
    cluster_rows.change(orders, 8, "topic secret created")
    some = Rights([Grant(role=Role.VIEWER, kind=Kind.TOPIC, pattern="orders.*")])

    data = overview(None, some).data

    assert data is not None
    assert not data.is_whole
    assert (data.brokers, data.needs, data.events, data.bootstrap) == ((), (), (), ())


def test_who_sees_some_groups_and_topics_is_told_what_those_need(told: Told) -> None:
    orders = cluster_rows.cluster()
    cluster_rows.broker(orders, 1)
    cluster_rows.broker(orders, 2, is_fenced=True)
    cluster_rows.topic(orders, "orders.eu", leader=2)
    cluster_rows.topic(orders, "secret", leader=2, partitions=5)
    told.put(
        rows.broker(2, disk_free_bytes=0),
        rows.group("mine", verdict="stopped", lag=4),
        rows.group("theirs", verdict="data loss ahead", lag=9),
    )
    some = Rights(
        [
            Grant(role=Role.VIEWER, kind=Kind.TOPIC, pattern="orders.*"),
            Grant(role=Role.VIEWER, kind=Kind.GROUP, pattern="mine"),
        ]
    )

    data = overview(None, some).data

    assert data is not None
    assert [need.sentence for need in data.needs] == [
        "1 partition has no leader",
        "Group mine commits no more while records wait",
    ]
    assert "orders.eu" in data.needs[0].cause
    assert (data.brokers, data.charts, data.events, data.frame.groups_in_need) == ((), (), (), 0)


def test_who_sees_the_cluster_but_not_its_groups_sees_brokers_and_no_changes(told: Told) -> None:
    shown = cluster_rows.cluster()
    cluster_rows.broker(shown, 1)
    cluster_rows.change(shown, 8, "topic created: secret", kind="topic")
    told.put(rows.group("theirs", verdict="stopped", lag=4))
    some = Rights([Grant(role=Role.VIEWER, kind=Kind.CLUSTER)])

    data = overview(None, some).data

    assert data is not None
    assert (len(data.brokers), len(data.charts)) == (1, 4)
    assert (data.is_whole, data.events, data.needs) == (False, (), ())


def test_brokers_that_come_and_go_are_no_news() -> None:
    shown = cluster_rows.cluster(version=9)
    cluster_rows.change(shown, 6, "broker changed: 1 (fenced)", actor="agent")
    cluster_rows.change(shown, 7, "topic created: orders", kind="topic")
    cluster_rows.change(shown, 8, "broker changed: 1 (fenced)", actor="agent", kind="membership")

    data = overview(None, ALL).data

    assert data is not None
    assert [event.text for event in data.events] == ["topic created: orders"]


def test_a_disk_is_as_full_as_df_says(told: Told) -> None:
    shown = cluster_rows.cluster()
    cluster_rows.broker(shown, 1)
    told.put(
        rows.broker(
            1,
            disk_size_bytes=100_000_000_000,
            disk_used_bytes=30_000_000_000,
            disk_free_bytes=50_000_000_000,  # the rest is for the administrator only
            log_bytes=15_000_000_000,
            folders_aside=2,
        )
    )

    data = overview(None, ALL).data

    assert data is not None
    (row,) = data.brokers
    assert row.disk is not None
    assert (row.disk.percent, row.logs_share, row.folders_aside) == (38, 0.5, 2)


def test_a_broker_that_refuses_records_for_want_of_room_is_not_called_serving(told: Told) -> None:
    shown = cluster_rows.cluster()
    cluster_rows.broker(shown, 1)
    told.put(rows.broker(1, disk_size_bytes=10**12, disk_used_bytes=10**9, disk_free_bytes=10**7))

    data = overview(None, ALL).data

    assert data is not None
    (row,) = data.brokers
    assert (row.state.word, row.state.mark, row.fullness.words) == ("Disk full", "bad", "now")
    (need,) = data.needs
    assert need.rank is Rank.DISK_FULL
    assert need.cause.startswith("It is full: brokers refuse records")


def test_a_broker_that_was_killed_says_how_after_it_is_back() -> None:
    row = cluster_rows.broker(cluster_rows.cluster(), 3)
    row.ended_how, row.ended_times = "was killed by signal 9 (SIGKILL)", 1
    row.ended_at_ms = int(1000 * time.time()) - 60_000
    row.save()

    data = overview(None, ALL).data

    assert data is not None
    killed = "was killed by signal 9 (SIGKILL), the first time since its home started"
    assert [event.text for event in data.events] == [f"Broker 3 {killed}"]
    assert data.brokers[0].ended == killed
