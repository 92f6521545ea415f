"""What needs attention, and in which order."""

from dataclasses import replace
from typing import Any

import pytest

from brokers.controlplane.selectors import Leaderless
from console.queries import live, needs
from console.queries.broker_states import BrokerState
from console.queries.brokers import BrokerRow, Disk
from console.queries.fullness import NOT_FILLING, Fullness
from console.queries.needs import NAMED_GROUPS, Need, Rank
from tests.builders import live as rows
from tests.builders.live import CLUSTER_ID, NOW_MS, Told

GIB = 2**30


def broker(broker_id: int, word: str = "Serving", mark: str = "ok", **values: Any) -> BrokerRow:
    row: dict[str, Any] = dict.fromkeys(
        ("rack", "up_since", "state_since", "disk", "connections", "requests")
    )
    row |= dict.fromkeys(("bytes_in", "bytes_out", "loop_delay_ms", "memory_bytes", "log_bytes"))
    row |= {"id": broker_id, "address": "127.0.0.1:9092", "host": "here", "epoch": 1, "leaders": 0}
    row |= {"held_by": "", "takes_orders": True, "fullness": NOT_FILLING}
    row |= {"state": BrokerState(mark=mark, word=word, cause=values.pop("cause", ""))}
    return BrokerRow(**{**row, **values})


def disk(free: int) -> Disk:
    return Disk(
        size=100 * GIB,
        free=free * GIB,
        used=1 - free / 100,
        state="ok",
        used_bytes=(100 - free) * GIB,
        device=2049,
    )


def of_groups(told: Told) -> list[Need]:
    return needs.ranked(
        needs.of_groups(told.snapshot().groups(), {}, told_ms=NOW_MS, cluster_id=CLUSTER_ID)
    )


def of_disks(row: BrokerRow) -> list[Need]:
    return list(needs.of_disks([row], cluster_id=CLUSTER_ID))


def test_the_worst_comes_first_whoever_told_it(told: Told) -> None:
    told.put(
        rows.group("late", verdict="falling behind", lag=900),
        rows.group("dying", verdict="data loss ahead", lag=5),
    )
    told.go_silent()
    hurt = Leaderless(partitions=2, topics=1, named=("orders",))

    found = needs.ranked(
        of_groups(told),
        needs.of_collector(live.of(CLUSTER_ID), cluster_id=CLUSTER_ID),
        needs.of_brokers([broker(1, "Fenced", "bad")], cluster_id=CLUSTER_ID),
        needs.of_topics(hurt, cluster_id=CLUSTER_ID),
        needs.of_agent("METADATA_REGRESSED", is_gone=True, trouble="", cluster_id=CLUSTER_ID),
    )

    assert [need.rank for need in found] == [
        *(Rank.SET_BACK, Rank.BROKER, Rank.NO_LEADER, Rank.AGENT),
        *(Rank.LOSS_AHEAD, Rank.COLLECTOR, Rank.FALLING_BEHIND),
    ]
    assert all(need.link.endswith(f"cluster={CLUSTER_ID}") for need in found)


def test_a_group_is_named_with_its_lag_its_age_and_what_its_verdict_means(told: Told) -> None:
    told.put(
        rows.group(
            "billing",
            verdict="falling behind",
            lag=1_204_551,
            oldest_ms=NOW_MS - 250_000,
            members=2,
            eta_low_s=None,
            eta_high_s=None,
        )
    )

    (need,) = of_groups(told)

    assert need.sentence == "Group billing falls behind"
    assert need.cause == (
        "1,204,551 records wait, the oldest for 4 min 10 s. It reads less than arrives."
        " It has 2 members. It does not catch up at this rate."
    )
    assert need.link == f"/group?name=billing&cluster={CLUSTER_ID}"


def test_a_group_without_members_is_told_what_to_do(told: Told) -> None:
    told.put(rows.group("gone", verdict="stopped", lag=1, members=0))

    (need,) = of_groups(told)

    assert need.cause.startswith("1 record waits. ")
    assert need.cause.endswith("start its consumers, or reset or delete the group.")


def test_a_group_whose_members_commit_nothing_is_told_where_to_look(told: Told) -> None:
    told.put(rows.group("hung", verdict="stopped", lag=7, members=1))

    (need,) = of_groups(told)

    assert need.cause == "7 records wait. It has 1 member: see in the logs whether it still works."


def test_the_worst_groups_are_named_and_the_others_counted(told: Told) -> None:
    for number in range(NAMED_GROUPS + 3):
        told.put(rows.group(f"late-{number}", verdict="falling behind", lag=number))
    told.put(
        rows.group("dead", verdict="stopped", lag=1),
        rows.group("fine"),
        rows.group("new", verdict="unknown"),
    )

    found = of_groups(told)

    assert [need.sentence.split()[1] for need in found[:-1]] == [
        *("dead", "late-7", "late-6", "late-5", "late-4"),
    ]
    assert found[-1].sentence == "4 more groups need attention"
    assert found[-1].link == f"/groups?cluster={CLUSTER_ID}"


@pytest.mark.parametrize(
    ("free", "rank"),
    [(15, None), (14, Rank.DISK_LOW), (5, Rank.DISK_LOW), (4, Rank.DISK_FULL)],
)
def test_a_disk_is_told_before_it_is_full(free: int, rank: Rank | None) -> None:
    found = of_disks(broker(1, disk=disk(free)))

    assert [need.rank for need in found] == ([] if rank is None else [rank])
    if rank is not None:
        assert found[0].sentence == f"The disk of broker 1 has {free} GiB left, {free}%"


@pytest.mark.parametrize(
    ("days", "rank"), [(0.5, Rank.DISK_FULL), (6.9, Rank.DISK_LOW), (7.1, None), (None, None)]
)
def test_a_disk_that_fills_is_told_a_week_before(days: float | None, rank: Rank | None) -> None:
    forecast = Fullness(words="in a while", low_days=days)

    found = of_disks(broker(1, disk=disk(60), fullness=forecast))

    assert [need.rank for need in found] == ([] if rank is None else [rank])
    assert all("it will be full in a while" in need.cause for need in found)


def test_brokers_that_share_a_disk_are_told_together() -> None:
    shared = [broker(1, disk=disk(9)), broker(2, disk=disk(9)), broker(3, disk=disk(9))]
    other = broker(4, disk=disk(9), host="there")

    found = [each.sentence for each in needs.of_disks([*shared, other], cluster_id=CLUSTER_ID)]

    assert found == [
        "The disk of brokers 1, 2 and 3 has 9 GiB left, 9%",
        "The disk of broker 4 has 9 GiB left, 9%",
    ]


@pytest.mark.parametrize(
    ("logs", "logs_per_day", "words"),
    [
        (
            GIB // 20,
            0,
            (
                "Topics take 0.16% of what is used, other data over 99%; other data grows by some"
                " 18 GiB a day. Remove other data from this disk"
            ),
        ),
        (
            30 * GIB,
            6 * GIB,
            (
                "Topics take 96% of what is used, other data 4%; topics grow by some 18 GiB a day."
                " Shorten retention.ms of large topics"
            ),
        ),
        (30 * GIB, GIB, "; other data grows by some 15 GiB a day. Remove other data"),
    ],
)
def test_a_disk_alarm_names_who_fills_it_and_advises_by_that(
    logs: int, logs_per_day: int, words: str
) -> None:
    forecast = Fullness(
        words="in 5 d", low_days=5.0, fills_per_day=18 * GIB, logs_per_day=logs_per_day
    )
    sharing = [
        broker(number, disk=disk(6), log_bytes=logs, fullness=forecast) for number in (1, 2, 3)
    ]

    (found,) = needs.of_disks(sharing, cluster_id=CLUSTER_ID)

    assert words in found.cause


def test_two_disks_of_one_host_are_told_each() -> None:
    first = broker(1, disk=disk(9))
    second = broker(2, disk=replace(disk(9), device=2050))

    assert len(list(needs.of_disks([first, second], cluster_id=CLUSTER_ID))) == 2


def test_a_disk_of_which_nobody_tells_is_no_need() -> None:
    assert of_disks(broker(1)) == []


def test_brokers_are_told_by_their_states_with_the_cause() -> None:
    found = needs.of_brokers(
        [
            broker(1, "Silent", "warn", cause="connection refused"),
            broker(2, "Fenced", "bad", cause="its agent has no session with it"),
            broker(3, loop_delay_ms=180.0),
            broker(4, "Stopped", "stale", cause="by User:olga"),
            broker(5, "Restarting", "warn"),
            broker(6),
        ],
        cluster_id=CLUSTER_ID,
    )

    told = [(need.word, need.sentence, need.cause) for need in needs.ranked(found)]
    assert [(word, sentence) for word, sentence, _ in told] == [
        ("Fenced", "Broker 2 is not serving"),
        ("Stopped", "Broker 4 is stopped"),
        ("Silent", "Broker 1 serves, but sends the collector nothing"),
        ("Busy", "Broker 3 is slow to handle its requests"),
    ]
    assert [cause.partition(".")[0] for _, _, cause in told[:3]] == [
        "Its agent has no session with it, so it leads nothing",
        "By User:olga",
        "Connection refused",
    ]


def test_a_collector_that_has_told_nothing_is_another_thing_than_one_that_fell_silent(
    told: Told,
) -> None:
    told.go_silent(age_s=42.0)
    (stale,) = needs.of_collector(live.of(CLUSTER_ID), cluster_id=CLUSTER_ID)
    told.begin_silent()
    (away,) = needs.of_collector(live.of(CLUSTER_ID), cluster_id=CLUSTER_ID)

    assert (stale.word, away.word) == ("Stale", "Not known")
    assert stale.sentence == "Rates, sizes and lag are old"
    assert "No such file" in away.cause


def test_one_topic_without_leader_is_linked_by_itself() -> None:
    hurt = Leaderless(partitions=1, topics=1, named=("orders",))

    (need,) = needs.of_topics(hurt, cluster_id=CLUSTER_ID)

    assert need.sentence == "1 partition has no leader"
    assert need.link == f"/topics/orders?tab=partitions&cluster={CLUSTER_ID}"


def test_many_topics_without_leader_are_shown_as_a_list() -> None:
    hurt = Leaderless(partitions=9, topics=6, named=("a", "b"))

    (need,) = needs.of_topics(hurt, cluster_id=CLUSTER_ID)

    assert "In a, b and 4 more topics." in need.cause
    assert need.link == f"/topics?facet=leaderless&cluster={CLUSTER_ID}"


def test_what_cannot_be_changed_is_said_with_the_reason() -> None:
    trouble = "no change for 12 s: database is locked by process 7"
    (need,) = needs.of_agent(None, is_gone=False, trouble=trouble, cluster_id=CLUSTER_ID)

    assert (need.word, need.state) == ("No changes", "bad")
    assert need.cause.startswith("No change for 12 s: database is locked by process 7.")
    # The database was set back: one cause, one need.
    (need,) = needs.of_agent("set back", is_gone=False, trouble="x", cluster_id=CLUSTER_ID)
    assert need.word == "Set back"
