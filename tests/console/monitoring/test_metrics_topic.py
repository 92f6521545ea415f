"""Samples reach their topic; a cluster that is down costs samples, and no time of the collector."""

import json
import socket
import threading
import time
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest

from console.monitoring import metrics_topic
from console.monitoring.metric_records import Moments, records_of
from console.monitoring.metrics_topic import MAX_WAITING, MetricsTopic
from console.monitoring.rings import Moment
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.consumer import Reader
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import ResourceKind, Span
from tests.fakes.broker_thread import broker_beside

pytestmark = pytest.mark.slow

AT_MS = 1_700_000_000_000
PATIENCE_S = 30.0


class Said:
    """Keeps what was logged, by any thread."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, object]]] = []

    def info(self, event: str, /, **keys: object) -> None:
        self.events.append((event, keys))

    limited = info


def sample(number: int, *names: str) -> Moments:
    column = array("f", [number] * len(names))
    moment = Moment(tuple((name,) for name in names), (column, column))
    at_ms = AT_MS + 10_000 * number
    return Moments(at_ms=at_ms, cluster_id="c", kinds={"group": moment}, partitions={})


def until(fact: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not fact():
        assert time.monotonic() < end, "it did not come about"
        threading.Event().wait(0.01)


def test_samples_come_to_a_topic_that_is_made_when_it_is_missing(tmp_path: Path) -> None:
    said = Said()
    with broker_beside(tmp_path, defaults={"auto.create.topics.enable": "false"}) as broker:
        topic = MetricsTopic("samples", log=said)
        topic.set_brokers([broker.bootstrap])

        for number in (1, 2):
            topic.offer(sample(number, "a", "b"))
        until(lambda: topic.published.written == 4)
        topic.close()

        connection = Connection(bootstrap=broker.bootstrap)
        configs = {
            config.key: config.value
            for config in Admin(connection).configs(ResourceKind.TOPIC, "samples")
        }
        spans = [Span(partition=partition, start=0) for partition in range(3)]
        with Reader(connection, "samples", spans, stops_at_end=True) as reader:
            records = [record for batch in reader.batches() for record in batch]
    found = {(r.key, r.timestamp_ms): json.loads(r.value or b"") for r in records}
    assert {key for key, _ in found} == {b'["group","a"]', b'["group","b"]'}
    assert found[b'["group","a"]', AT_MS + 20_000]["lag_records"] == 2
    assert configs["retention.ms"] == "604800000"
    # Samples of one series are in one partition, in their order.
    assert len({r.partition for r in records if r.key == b'["group","a"]'}) == 1
    assert [event for event, _ in said.events] == ["metrics_topic.created"]
    assert topic.published.dropped == 0


def test_a_topic_that_is_deleted_meanwhile_is_made_again(tmp_path: Path) -> None:
    with broker_beside(tmp_path, defaults={"auto.create.topics.enable": "false"}) as broker:
        topic = MetricsTopic("samples", log=Said())
        topic.set_brokers([broker.bootstrap])
        topic.offer(sample(1, "a"))
        until(lambda: topic.published.written == 1)

        Admin(Connection(bootstrap=broker.bootstrap)).delete(["samples"])
        number = 2
        while topic.published.written < 2:
            told = topic.published.written + topic.published.dropped
            topic.offer(sample(number, "a"))
            until(lambda told=told: topic.published.written + topic.published.dropped > told)  # type: ignore[misc]
            number += 1
            assert number < 20, "it was not made again"
        topic.close()


def test_while_no_broker_answers_samples_are_dropped_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = Said()
    with socket.socket() as taken:
        # Bound and not listening: it refuses, and no other process can take it.
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setattr(metrics_topic, "TIMEOUT_S", 2.0)
        topic = MetricsTopic("samples", log=said)
        topic.set_brokers([f"127.0.0.1:{taken.getsockname()[1]}"])

        topic.offer(sample(1, "a", "b"))
        until(lambda: topic.published.dropped == 2)
        topic.close()

    [(event, keys)] = said.events
    assert event == "metrics_topic.dropped"
    assert "no broker answers there" in str(keys["reason"])


def test_a_producer_that_is_given_up_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = threading.Event()

    class Watched(TopicWriter):
        def close(self) -> None:
            super().close()
            closed.set()

    monkeypatch.setattr(metrics_topic, "TopicWriter", Watched)
    with broker_beside(tmp_path) as broker:
        topic = MetricsTopic("samples", log=Said())
        topic.set_brokers([broker.bootstrap])
        topic.offer(sample(1, "a"))
        until(lambda: topic.published.written == 1)
    # The broker is gone, and the producer gets a record that it cannot deliver. Only this one is
    # given up soon: the first one may take a second on a busy machine.
    monkeypatch.setattr(metrics_topic, "TIMEOUT_S", 1.0)
    topic.offer(sample(2, "a"))
    until(lambda: topic.published.dropped == 1)
    topic.close()

    assert closed.is_set()


def test_a_sample_that_cannot_be_written_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, said = records_of, Said()

    def broken(moments: Moments) -> object:
        if moments.at_ms == AT_MS:
            raise ValueError("no number")
        return real(moments)

    monkeypatch.setattr(metrics_topic, "records_of", broken)
    with broker_beside(tmp_path) as broker:
        topic = MetricsTopic("samples", log=said)
        topic.set_brokers([broker.bootstrap])
        topic.offer(sample(0, "a"))
        topic.offer(sample(1, "a"))
        until(lambda: topic.published.written == 1)
        topic.close()

    assert topic.published.dropped == 1
    assert ("metrics_topic.dropped", "ValueError('no number')") in [
        (event, keys.get("reason")) for event, keys in said.events
    ]


def test_a_full_queue_loses_its_oldest_sample_and_nobody_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread hangs in the first sample, as it does where brokers are away."""
    taken, go_on = threading.Event(), threading.Event()
    written: list[int] = []

    def hang(_topic: MetricsTopic, moments: Moments) -> None:
        written.append(moments.at_ms)
        taken.set()
        go_on.wait(PATIENCE_S)

    monkeypatch.setattr(MetricsTopic, "_write", hang)
    topic = MetricsTopic("samples", log=Said())
    topic.offer(sample(0, "a"))
    assert taken.wait(PATIENCE_S)

    for number in range(1, MAX_WAITING + 3):
        topic.offer(sample(number, "a"))
    go_on.set()
    until(lambda: len(written) == 1 + MAX_WAITING)
    topic.close()

    assert topic.published.dropped == 2
    assert written == [AT_MS, *(AT_MS + 10_000 * number for number in (3, 4, 5))]
