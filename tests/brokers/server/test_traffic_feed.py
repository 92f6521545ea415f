"""Sums by API, topic and client id, and what of them has changed."""

import asyncio
from types import SimpleNamespace
from typing import Any

from brokers.clock import SystemClock
from brokers.server.metrics import Metrics
from brokers.server.traffic_feed import BUCKET_BOUNDS_MS, TrafficChanges, TrafficFeed
from brokers.slices import Slices


def partition(topic: str = "orders", index: int = 0, *, appended: int = 0, sent: int = 0) -> Any:
    return SimpleNamespace(topic=topic, index=index, appended_bytes=appended, sent_bytes=sent)


def sample(feed: TrafficFeed) -> TrafficChanges:
    return asyncio.run(feed.sample(Slices(SystemClock())))


def test_bytes_of_a_topic_are_the_sum_of_its_partitions() -> None:
    feed = TrafficFeed(Metrics())
    feed.note(partition(index=0, appended=10, sent=1))
    feed.note(partition(index=1, appended=20, sent=2))

    assert sample(feed).topics == (("orders", 30, 3),)
    feed.note(partition(index=1, appended=25, sent=2))
    assert sample(feed).topics == (("orders", 35, 3),)
    assert sample(feed).topics == ()


def test_a_partition_that_counts_from_zero_again_adds_to_what_was_there() -> None:
    feed = TrafficFeed(Metrics())
    feed.note(partition(appended=10, sent=10))
    feed.note(partition(appended=4, sent=0))

    assert sample(feed).topics == (("orders", 14, 10),)


def test_a_topic_is_gone_with_its_last_partition() -> None:
    feed = TrafficFeed(Metrics())
    for index in range(2):
        feed.note(partition(index=index, appended=10))
    sample(feed)

    feed.lose(("orders", 0))
    feed.lose(("unknown", 0))
    assert sample(feed).gone_topics == ()
    feed.lose(("orders", 1))
    assert sample(feed).gone_topics == ("orders",)
    assert feed.snapshot().topics == ()


def test_an_api_has_its_requests_its_errors_and_a_bucket_more_than_there_are_bounds() -> None:
    metrics = Metrics()
    feed = TrafficFeed(metrics)
    produce = metrics.requests_of("Produce")
    metrics.requests_of("Fetch")
    sample(feed)

    produce.observe(0.000_9)
    produce.observe(3600)
    metrics.failed("Produce")
    ((api, requests, errors, buckets),) = sample(feed).apis

    assert (api, requests, errors) == ("Produce", 2, 1)
    assert len(buckets) == len(BUCKET_BOUNDS_MS) + 1
    assert list(BUCKET_BOUNDS_MS) == sorted(BUCKET_BOUNDS_MS)
    assert buckets[-1] == 1
    assert [bound for bound, count in zip(BUCKET_BOUNDS_MS, buckets, strict=False) if count] == [
        1.024
    ]
