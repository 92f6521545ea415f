"""The collector over feeds that a test makes up."""

import json
import math
from typing import Any

import pytest

from console.monitoring import observed as observed_module
from console.monitoring.collector import Collector
from console.monitoring.deltas import Mirror
from console.monitoring.rings import BLOCK_S
from console.monitoring.tables import BrokerRow, GroupRow, PairRow, TopicRow, pair_key
from console.monitoring.verdicts import Eta
from tests.fakes.broker_feed import NOW_MS, Feed, OldFeed


class Cluster:
    """A collector, two brokers, and a clock."""

    def __init__(self, *feeds: Feed) -> None:
        self.now_ms = NOW_MS
        self.feeds = dict(enumerate(feeds or (Feed(), Feed()), start=1))
        self.collector = Collector("run")
        self.collector.set_brokers({each: f"host-{each}:9092" for each in self.feeds})
        self.mirror = Mirror()

    def __getitem__(self, broker: int) -> Feed:
        return self.feeds[broker]

    def go_on(self, seconds: int = 2) -> None:
        """Let time pass, read every feed, look, and mirror what has changed."""
        self.now_ms += seconds * 1000
        for broker, feed in self.feeds.items():
            feed.ms = self.now_ms
            self.collector.take(broker, feed.tell(), now_ms=self.now_ms)
        self.collector.look_at_once(self.now_ms)
        self.read()

    def read(self) -> None:
        text = "".join(self.collector.deltas.since(self.mirror.run, self.mirror.number))
        self.mirror.take({"run": self.collector.deltas.run, **json.loads("{" + text + "}")})

    def topic(self, name: str) -> TopicRow:
        return TopicRow(*self.mirror.tables["topics"][name])

    def group(self, name: str) -> GroupRow:
        return GroupRow(*self.mirror.tables["groups"][name])

    def pair(self, group: str, topic: str) -> PairRow:
        return PairRow(*self.mirror.tables["pairs"][pair_key(group, topic)])

    def names(self, table: str) -> set[str]:
        return set(self.mirror.tables[table])


def test_lag_is_what_the_coordinator_and_the_leaders_tell_together() -> None:
    cluster = Cluster()
    cluster[1].partition("orders", 0, end=100, size=1_000)
    cluster[2].partition("orders", 1, end=50, size=500)
    cluster[2].commit("billing", "orders", 0, 90)
    cluster[2].commit("billing", "orders", 1, 50)
    cluster.go_on()

    assert (cluster.topic("orders").partitions, cluster.topic("orders").size_bytes) == (2, 1_500)
    assert (cluster.topic("orders").lag, cluster.topic("orders").worst_group) == (10, "billing")
    assert (cluster.group("billing").lag, cluster.group("billing").topics) == (10, 1)
    assert cluster.pair("billing", "orders").partitions == 2

    cluster[1].partition("orders", 0, end=130, size=1_300)
    cluster.go_on()
    assert cluster.group("billing").lag == 40
    assert cluster.topic("orders").size_bytes == 1_800


def test_a_commit_below_the_start_counts_from_the_start() -> None:
    cluster = Cluster()
    cluster[1].partition("orders", 0, start=40, end=100)
    cluster[1].commit("billing", "orders", 0, 5)
    cluster.go_on()

    assert cluster.group("billing").lag == 60


def test_a_commit_beyond_the_end_waits_for_nothing() -> None:
    cluster = Cluster()
    cluster[1].partition("orders", 0, end=100)
    cluster[1].commit("billing", "orders", 0, 500)
    cluster.go_on()

    assert (cluster.group("billing").lag, cluster.group("billing").verdict) == (0, "ok")


def test_a_partition_that_nobody_leads_is_unknown_and_not_without_lag() -> None:
    cluster = Cluster()
    cluster[1].commit("billing", "orders", 3, 500)
    cluster.go_on()

    group = cluster.group("billing")
    assert (group.unknown, group.verdict) == (1, "unknown")


def test_what_is_gone_is_gone_from_the_tables() -> None:
    cluster = Cluster()
    for name in ("orders", "audit"):
        cluster[1].partition(name, 0, end=10)
        cluster[1].commit("billing", name, 0, 5)
    cluster.go_on()
    cluster[1].drop("rows", "audit", 0)
    cluster[1].drop("commits", "billing", "audit", 0)
    cluster.go_on()

    assert cluster.names("topics") == {"orders"}
    assert cluster.names("pairs") == {pair_key("billing", "orders")}
    assert (cluster.group("billing").lag, cluster.collector.observed.commits) == (5, 1)

    cluster[1].drop("commits", "billing", "orders", 0)
    cluster[1].drop("groups", "billing")
    cluster.go_on()
    assert cluster.names("groups") == cluster.names("pairs") == set()
    assert cluster.topic("orders").lag is None


def test_a_partition_that_moved_stays_when_its_old_leader_says_that_it_is_gone() -> None:
    cluster = Cluster()
    cluster[1].partition("orders", 0, end=10)
    cluster[1].group("billing")
    cluster.go_on()
    cluster[2].partition("orders", 0, end=12)
    cluster[2].group("billing")
    cluster.go_on()
    cluster[1].drop("rows", "orders", 0)
    cluster[1].drop("groups", "billing")
    cluster.go_on()

    assert cluster.topic("orders").partitions == 1
    assert cluster.names("groups") == {"billing"}


def test_a_broker_that_was_started_again_loses_what_it_does_not_tell_any_more() -> None:
    cluster = Cluster()
    for index in range(3):
        cluster[1].partition("orders", index, end=10)
        cluster[1].commit("billing", "orders", index, 5)
    cluster[1].group("empty")
    cluster.go_on()
    cluster[1].restart()
    cluster[1].drop("rows", "orders", 2)
    cluster[1].drop("commits", "billing", "orders", 2)
    cluster[1].drop("groups", "empty")
    cluster.go_on()

    assert cluster.topic("orders").partitions == 2
    assert cluster.group("billing").lag == 10
    assert cluster.names("groups") == {"billing"}


def test_a_broker_that_does_not_answer_keeps_what_it_told_and_says_so() -> None:
    cluster = Cluster()
    cluster[1].partition("orders", 0, end=10)
    cluster.go_on()
    answered_ms = cluster.now_ms
    cluster.collector.observed.fail(1, "host-1:9092 did not answer")
    cluster.collector.look_at_once(cluster.now_ms + 5_000)
    cluster.read()

    broker = BrokerRow(*cluster.mirror.tables["brokers"]["1"])
    assert (broker.failure, broker.answered_ms) == ("host-1:9092 did not answer", answered_ms)
    assert cluster.topic("orders").partitions == 1


def test_a_broker_that_the_cluster_does_not_have_any_more_is_forgotten() -> None:
    cluster = Cluster()
    cluster[1].partition("orders", 0, end=10)
    cluster[1].commit("billing", "orders", 0, 5)
    cluster[2].partition("orders", 1, end=10)
    cluster.go_on()
    cluster.collector.set_brokers({2: "host-2:9092"})
    cluster.collector.look_at_once(cluster.now_ms)
    cluster.read()

    assert cluster.topic("orders").partitions == 1
    assert (cluster.names("brokers"), cluster.names("groups")) == ({"2"}, set())


def test_a_broker_of_an_older_release_tells_less_and_is_read_all_the_same() -> None:
    cluster = Cluster(OldFeed())
    cluster[1].partition("orders", 0, end=10)
    cluster[1].commit("billing", "orders", 0, 5)
    cluster.go_on()
    cluster.go_on()

    assert cluster.group("billing").lag == 5
    broker = BrokerRow(*cluster.mirror.tables["brokers"]["1"])
    assert (broker.memory_bytes, broker.connections) == (None, 1)
    detail = cluster.collector.group_detail("billing")
    assert detail is not None
    assert detail["members"] == []


def test_rates_of_a_topic_come_from_the_growth_between_two_samples() -> None:
    cluster = Cluster()
    for broker in (1, 2):
        cluster[broker].partition("orders", broker, end=100)
        cluster[broker].put("topics", ["orders", 1_000, 0])
    cluster.go_on()
    cluster.collector.sample(cluster.now_ms)
    for broker in (1, 2):
        cluster[broker].partition("orders", broker, end=150)
        cluster[broker].put("topics", ["orders", 6_000, 2_000])
    cluster.go_on(10)
    cluster.collector.sample(cluster.now_ms)
    cluster.go_on()

    topic = cluster.topic("orders")
    assert (topic.records_per_s, topic.bytes_in_per_s, topic.bytes_out_per_s) == (10.0, 1e3, 400.0)


def test_counters_of_a_broker_that_was_started_again_are_no_traffic() -> None:
    cluster = Cluster(Feed())
    cluster[1].partition("orders", 0, end=100)
    cluster[1].put("topics", ["orders", 1_000_000, 0])
    cluster.go_on()
    cluster[1].restart()
    cluster[1].put("topics", ["orders", 50, 0])
    cluster.go_on()

    assert cluster.collector.observed.topics["orders"].bytes_in == 0


def test_a_topic_that_was_gone_for_a_moment_has_no_rates_below_zero() -> None:
    cluster = Cluster(Feed())
    cluster[1].partition("orders", 0, end=100)
    cluster.go_on()
    cluster.collector.sample(cluster.now_ms)
    cluster[1].partition("orders", 0, end=600)
    cluster.go_on(10)
    cluster.collector.sample(cluster.now_ms)
    cluster[1].drop("rows", "orders", 0)
    cluster.go_on(5)
    cluster[1].partition("orders", 0, end=600)
    cluster.go_on(5)
    cluster.collector.sample(cluster.now_ms)
    cluster.go_on()

    assert cluster.topic("orders").records_per_s == 0


def test_a_partition_in_the_place_of_another_one_begins_without_its_past() -> None:
    cluster = Cluster(Feed())
    cluster[1].partition("orders", 0, end=100)
    cluster.go_on()
    cluster.collector.sample(cluster.now_ms)
    cluster[1].partition("orders", 0, end=600)
    cluster.go_on(10)
    cluster.collector.sample(cluster.now_ms)
    cluster[1].drop("rows", "orders", 0)
    cluster.go_on(5)
    cluster[1].partition("payments", 0, end=9_000_000)
    cluster.go_on(5)
    cluster.collector.sample(cluster.now_ms)

    found = cluster.collector.topic_detail("payments")
    assert found is not None
    assert found["partitions"][0][5] == [0.0, 0.0]


def test_commits_of_the_same_place_are_no_pause() -> None:
    cluster = Cluster(Feed())
    cluster[1].partition("orders", 0, end=100)
    for _ in range(200):
        cluster[1].commit("billing", "orders", 0, 100, at_ms=cluster.now_ms)
        cluster.go_on(5)
    cluster[1].partition("orders", 0, end=120)
    cluster[1].commit("billing", "orders", 0, 110, at_ms=cluster.now_ms)
    cluster.go_on(5)
    # It stops here.
    for _ in range(40):
        cluster.go_on(5)

    assert cluster.group("billing").verdict == "stopped"


def test_a_group_shows_who_owns_its_partitions_and_how_each_does() -> None:
    cluster = Cluster()
    cluster[1].partition("orders", 0, end=100)
    cluster[1].partition("orders", 1, end=100)
    cluster[1].commit("billing", "orders", 0, 100)
    cluster[1].commit("billing", "orders", 1, 60)
    cluster[1].put("members", ["billing", "m-1", None, "app", "10.0.0.1", [["orders", [0]]]])
    cluster.go_on()

    detail = cluster.collector.group_detail("billing")
    assert detail is not None
    first, second = (dict(zip(PARTITION_KEYS, row, strict=True)) for row in detail["partitions"])
    assert (first["owner"], first["partition"], first["lag"]) == (None, 1, 40)
    assert (second["owner"], second["lag"], second["verdict"]) == ("m-1", 0, "ok")
    assert detail["members"] == [["m-1", None, "app", "10.0.0.1", [["orders", [0]]], 0]]
    assert (detail["unowned"], detail["unowned_count"]) == ([("orders", 1)], 1)
    assert detail["coordinator"] == 1
    assert cluster.collector.group_detail("nobody") is None


PARTITION_KEYS = (
    *("topic", "partition", "committed", "end", "lag", "commit_ms", "verdict", "owner"),
    *("records_per_s", "rule", "records"),
)


def test_the_age_of_the_oldest_record_comes_from_the_leader_of_its_partition() -> None:
    cluster = Cluster()
    cluster[1].partition("orders", 0, end=100)
    cluster[2].partition("orders", 1, start=30, end=100)
    cluster[1].commit("billing", "orders", 0, 90)
    cluster[1].commit("billing", "orders", 1, 10)
    cluster.go_on()

    lags = cluster.collector.lags
    questions = lags.questions()
    assert {broker: [place for _pair, place in asked] for broker, asked in questions.items()} == {
        1: [("orders", 0, 90)],
        2: [("orders", 1, 30)],
    }
    lags.answer(questions[1], [NOW_MS - 60_000])
    lags.answer(questions[2], ["not led here"])
    cluster.go_on()
    assert cluster.group("billing").oldest_ms == NOW_MS - 60_000

    # Who has told is asked again when the group has gone on, and not before.
    assert lags.questions().keys() == {2}
    cluster[1].commit("billing", "orders", 0, 95, at_ms=cluster.now_ms)
    cluster.go_on()
    assert [place for _pair, place in lags.questions()[1]] == [("orders", 0, 95)]
    # Until then the age is that of the record before.
    assert cluster.group("billing").oldest_ms == NOW_MS - 60_000


def test_a_group_that_catches_up_has_a_time_and_one_that_does_not_has_none() -> None:
    cluster = Cluster()
    for step in range(40):
        cluster[1].partition("orders", 0, end=10_000 + step * 100)
        cluster[1].commit("fast", "orders", 0, step * 200, at_ms=cluster.now_ms)
        cluster[1].commit("late", "orders", 0, step * 20, at_ms=cluster.now_ms)
        cluster.go_on()

    fast, late = cluster.group("fast"), cluster.group("late")
    assert fast.eta_low_s == pytest.approx(0.65 * fast.lag / 50 - 5, rel=0.05)
    assert fast.eta_high_s == pytest.approx(1.35 * fast.lag / 50 + 5, rel=0.05)
    assert (late.eta_low_s, late.eta_high_s) == (None, None)


def test_verdicts_follow_what_is_told_over_time() -> None:
    cluster = Cluster()
    for step in range(200):
        cluster[1].partition("orders", 0, end=1_000 + step * 10)
        cluster[1].commit("stalled", "orders", 0, 500, at_ms=cluster.now_ms)
        cluster[1].commit("falling behind", "orders", 0, step * 5, at_ms=cluster.now_ms)
        cluster[1].commit("stopped", "orders", 0, 700)
        cluster[1].commit("ok", "orders", 0, 1_000 + step * 10, at_ms=cluster.now_ms)
        cluster.go_on()

    verdicts = {name: cluster.group(name).verdict for name in cluster.names("groups")}
    assert verdicts == {name: name for name in ("stalled", "falling behind", "stopped", "ok")}
    assert (cluster.topic("orders").verdict, cluster.topic("orders").worst_group) == (
        "stopped",
        "stopped",
    )


def test_a_group_that_rested_is_behind_since_the_record_that_came() -> None:
    cluster = Cluster()
    cluster[1].partition("orders", 0, end=100)
    cluster[1].commit("billing", "orders", 0, 100)
    cluster.go_on()
    cluster.go_on(7_200)
    cluster[1].partition("orders", 0, end=101)
    cluster.go_on()
    group = cluster.group("billing")
    assert (group.verdict, group.oldest_ms) == ("ok", cluster.now_ms)
    assert cluster.collector.lags.questions()

    cluster.go_on(100)
    assert cluster.group("billing").verdict == "ok"
    cluster.go_on(40)
    assert cluster.group("billing").verdict == "stopped"


def test_a_group_that_had_stopped_before_anybody_watched_is_stopped_at_once() -> None:
    cluster = Cluster()
    cluster[1].partition("orders", 0, end=100)
    cluster[1].commit("gone", "orders", 0, 50, at_ms=NOW_MS - 3_600_000)
    cluster[1].commit("late", "orders", 0, 50, at_ms=NOW_MS)
    cluster.go_on()
    for asked in cluster.collector.lags.questions().values():
        cluster.collector.lags.answer(asked, [NOW_MS - 3_000_000] * len(asked))
    cluster.go_on()

    # Of one that commits it has to be seen first what its commits do.
    assert (cluster.group("gone").verdict, cluster.group("late").verdict) == ("stopped", "unknown")


def test_loss_is_ahead_where_retention_is_near() -> None:
    cluster = Cluster()
    cluster.collector.lags.set_retention({"orders": 600_000}, 86_400_000)
    cluster[1].partition("orders", 0, end=100)
    cluster[1].commit("billing", "orders", 0, 10)
    cluster.go_on()
    for asked in cluster.collector.lags.questions().values():
        cluster.collector.lags.answer(asked, [cluster.now_ms - 590_000])
    cluster.go_on(10)

    assert cluster.group("billing").verdict == "data loss ahead"
    detail = cluster.collector.group_detail("billing")
    assert detail is not None
    assert detail["partitions"][0][6] == "data loss ahead"


@pytest.mark.parametrize("written", [-1, 0])
def test_a_record_without_a_time_is_not_about_to_be_lost(written: int) -> None:
    cluster = Cluster()
    cluster.collector.lags.set_retention({}, 86_400_000)
    cluster[1].partition("orders", 0, end=100)
    cluster[1].commit("billing", "orders", 0, 10, at_ms=cluster.now_ms)
    cluster.go_on()
    for asked in cluster.collector.lags.questions().values():
        cluster.collector.lags.answer(asked, [written])
    cluster.go_on(3)

    assert cluster.group("billing").rule == "watched too short"
    assert cluster.pair("billing", "orders").oldest_ms == 0


def test_nothing_is_published_where_nothing_has_changed() -> None:
    cluster = Cluster()
    cluster[1].partition("orders", 0, end=10)
    cluster[1].commit("billing", "orders", 0, 10)
    cluster.go_on()
    number = cluster.collector.deltas.number
    cluster.collector.look_at_once(cluster.now_ms + 2_000)

    assert cluster.collector.deltas.number == number


def test_a_reader_that_was_away_for_long_gets_all_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.monitoring.deltas.MAX_STEPS", 3)
    cluster = Cluster()
    late = Mirror()
    late.run, late.number = "run", 1
    for step in range(10):
        cluster[1].partition(f"topic-{step}", 0, end=10)
        cluster.go_on()

    text = "".join(cluster.collector.deltas.since("run", 1))
    assert text.startswith('"kind": "whole"')
    assert text.count("topic-") == 20


def test_what_is_beyond_the_limits_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAX_PARTITIONS", "MAX_GROUPS", "MAX_COMMITS", "MAX_MEMBERS"):
        monkeypatch.setattr(observed_module, name, 3)
    cluster = Cluster(Feed())
    for index in range(5):
        cluster[1].partition("orders", index, end=10)
        cluster[1].commit("billing", "orders", index, 10)
        cluster[1].group(f"group-{index}")
        cluster[1].put("members", ["billing", f"m-{index}", None, "", "", []])
    cluster.go_on()

    observed = cluster.collector.observed
    counts = (observed.partitions, len(observed.groups), observed.commits, observed.members)
    assert counts == (3, 3, 3, 3)
    assert observed.is_cut


def test_counts_stay_right_whatever_comes_and_goes() -> None:
    cluster = Cluster()
    for step in range(30):
        feed = cluster[1 + step % 2]
        feed.partition("orders", step % 7, end=step)
        feed.commit(f"g{step % 4}", "orders", step % 5, step)
        feed.put("members", [f"g{step % 4}", f"m{step % 3}", None, "", "", []])
        if step % 11 == 10:
            feed.restart()
        cluster.go_on()

    observed = cluster.collector.observed
    assert observed.partitions == sum(len(topic.slots) for topic in observed.topics.values())
    assert observed.commits == sum(
        len(pair.history) for group in observed.groups.values() for pair in group.pairs.values()
    )
    assert observed.members == sum(len(group.members) for group in observed.groups.values())


def test_samples_of_every_kind_end_in_full_blocks() -> None:
    cluster = Cluster()
    cluster[1].partition("orders", 0, end=100, size=70)
    cluster[1].commit("billing", "orders", 0, 90)
    cluster.go_on()
    full: list[Any] = []
    while not full:
        full = cluster.collector.sample(cluster.now_ms)
        cluster.go_on(10)

    found = {(each.kind, *each.name): each.metrics for block in full for each in block.series()}
    assert set(found) == {
        ("cluster", ""),
        *(("broker", "1"), ("broker", "2")),
        ("topic", "orders"),
        ("group", "billing"),
        ("pair", "billing", "orders"),
    }
    assert found["group", "billing"][0][-1] == 10.0
    assert found["topic", "orders"][1][-1] == 70.0
    assert math.isnan(found["broker", "1"][5][-1])
    assert {block.start_s % BLOCK_S for block in full} == {0}


def test_a_sum_over_brokers_is_missing_while_one_of_them_is() -> None:
    cluster = Cluster()
    cluster.go_on()
    cluster.collector.observed.fail(2, "away")
    cluster.collector.sample(cluster.now_ms)

    assert cluster.collector.rings["cluster"].slots == {}
    assert set(cluster.collector.rings["broker"].slots) == {("1",)}


def test_the_time_to_catch_up_of_a_group_is_that_of_its_slowest_topic() -> None:
    cluster = Cluster()
    cluster[1].partition("orders", 0, end=10)
    cluster[1].commit("billing", "orders", 0, 10)
    cluster.go_on()

    group = cluster.group("billing")
    assert Eta(group.eta_low_s or 0.0, group.eta_high_s) == Eta(0.0, 0.0)


def test_what_brokers_tell_while_a_look_pauses_is_published_by_the_next_one() -> None:
    cluster = Cluster()
    cluster[1].partition("orders", 0, end=100, size=1_000)
    cluster.go_on()
    cluster[1].partition("orders", 0, end=200, size=2_000)
    cluster[1].partition("returns", 0, end=5, size=50)
    look = cluster.collector.look(cluster.now_ms)
    for broker, feed in cluster.feeds.items():
        cluster.collector.take(broker, feed.tell(), now_ms=cluster.now_ms)
        next(look, None)
    cluster.read()

    for _pause in look:
        cluster.read()
    cluster.go_on()

    assert cluster.topic("orders").size_bytes == 2_000
    assert cluster.names("topics") == {"orders", "returns"}
