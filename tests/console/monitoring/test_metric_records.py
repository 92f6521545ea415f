"""A sample of everything as records that programs of others read."""

import json
from typing import Any

from console.monitoring.collector import Collector
from console.monitoring.metric_records import FIELDS, NAMES, Moments, records_of, shortened
from console.monitoring.rings import KINDS
from tests.fakes.broker_feed import NOW_MS, Feed
from tests.tidy.project import ROOT

COMMON = {"time": "2023-11-14T22:13:20Z", "cluster": "c", "interval_s": 10}


def told(moments: Moments) -> dict[str, Any]:
    """Return the values by key, of which no two may be the same."""
    records = [(key.decode(), json.loads(value)) for key, value in records_of(moments)]
    found = dict(records)
    assert len(found) == len(records)
    return found


def sampled(collector: Collector, feed: Feed, at_ms: int) -> Moments:
    feed.ms = at_ms
    collector.take(1, feed.tell(), now_ms=at_ms)
    collector.look_at_once(at_ms)
    collector.sample(at_ms)
    return collector.moments(at_ms, "c")


def test_each_series_is_a_record_with_its_names_and_rates() -> None:
    collector, feed = Collector("run"), Feed()
    collector.set_brokers({1: "host:9092"})
    feed.partition("orders", 0, end=100, size=1_000)
    feed.partition("orders", 1, end=0, size=0)
    feed.group("billing")
    feed.commit("billing", "orders", 0, 70, at_ms=NOW_MS)

    sampled(collector, feed, NOW_MS - 10_000)
    feed.partition("orders", 0, end=150, size=1_500)
    found = told(sampled(collector, feed, NOW_MS))

    assert set(found) == {
        *('["cluster"]', '["broker",1]', '["topic","orders"]', '["group","billing"]'),
        '["group_topic","billing","orders"]',
    }
    assert {name: found['["topic","orders"]'][name] for name in COMMON} == COMMON
    topic = found['["topic","orders"]']
    assert (topic["kind"], topic["topic"], topic["partitions"]) == ("topic", "orders", 2)
    assert (topic["records_per_s"], topic["size_bytes"]) == (5, 1_500)
    pair = found['["group_topic","billing","orders"]']
    assert (pair["group"], pair["topic"], pair["lag_records"]) == ("billing", "orders", 80)
    assert found['["broker",1]']["broker"] == 1
    assert found['["cluster"]']["lag_records"] == 80


def test_what_nobody_has_told_is_left_out() -> None:
    collector, feed = Collector("run"), Feed()
    feed.partition("orders", 0, end=100, size=1_000)
    collector.set_brokers({1: "host:9092"})

    topic = told(sampled(collector, feed, NOW_MS))['["topic","orders"]']

    # A rate needs two samples.
    assert "records_per_s" not in topic
    assert topic["size_bytes"] == 1_000


def test_a_sample_stays_as_it_is_when_the_next_one_is_taken() -> None:
    collector, feed = Collector("run"), Feed()
    collector.set_brokers({1: "host:9092"})
    feed.partition("orders", 0, end=100, size=1_000)
    first = sampled(collector, feed, NOW_MS)
    before = told(first)

    feed.partition("orders", 0, end=300, size=9_000)
    feed.partition("later", 0, end=1, size=1)
    sampled(collector, feed, NOW_MS + 300_000)

    assert told(first) == before


def test_a_collector_without_a_sample_has_no_records() -> None:
    assert told(Collector("run").moments(NOW_MS, "c")) == {}


def test_every_kind_of_series_has_names_and_every_renamed_metric_exists() -> None:
    assert NAMES.keys() == KINDS.keys()
    assert FIELDS.keys() <= {metric for kind in KINDS.values() for metric in kind.metrics}


def test_the_page_has_every_field() -> None:
    page = (ROOT / "docs" / "howto" / "publish-metrics.md").read_text(encoding="utf-8")
    metrics = {FIELDS.get(name, name) for kind in KINDS.values() for name in kind.metrics}
    names = {name for _kind, names in NAMES.values() for name in names}

    for name in {*COMMON, *metrics, *names, "kind", "partitions"}:
        assert f"`{name}`" in page
    for kind, _names in NAMES.values():
        assert f"`{kind}`" in page


def test_numbers_have_the_digits_that_mean_something() -> None:
    assert [shortened(value) for value in (0.1 + 0.2, 5.0, 16_777_217.0, 1e12)] == [
        *(0.3, 5, 16_777_220, 1_000_000_000_000)
    ]
