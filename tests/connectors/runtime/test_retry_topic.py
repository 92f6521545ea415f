"""Records that are sent again: how their topic is called, and what a sink makes of them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from connectors.runtime import sink_slice
from connectors.runtime.ports import Ending, SliceEnd, TaskSpec
from connectors.runtime.retry_topic import (
    MAX_TOPIC_CHARS,
    PREFIX,
    Origin,
    headers_of,
    is_retry_topic,
    name_for,
    origin_in,
)
from connectors.sdk.records import RecordPlace, SinkRecord, TopicPartition
from gateway.kafka.values import Header
from tests.fakes.slice_plugins import ListSink, list_sink, plain_steps
from tests.fakes.slice_ports import FakePorts

CONFIG = {"topics": "in"}
TOLERANT = {
    **CONFIG,
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.name": "dead",
    "errors.deadletterqueue.context.headers.enable": "true",
}
IN = TopicPartition(topic="in", partition=0)
RETRIES = TopicPartition(topic="connect-c.retry", partition=0)
AGAIN = headers_of(Origin(topic="in", partition=3, offset=17, attempt=2))


def run(
    plugin: type[ListSink], fakes: FakePorts, config: Mapping[str, str] = CONFIG, **spec: Any
) -> SliceEnd:
    told = TaskSpec(connector="c", plugin=plugin, config=config, **spec)
    return sink_slice.run(told, fakes.ports, plain_steps)


def told(headers: tuple[Header, ...]) -> dict[str, str]:
    return {name: (value or b"").decode() for name, value in headers}


@pytest.mark.parametrize(
    ("connector", "beginning"),
    [
        ("orders-sink", "connect-orders-sink.retry"),
        ("orders_sink", "connect-orders_sink.retry"),
        ("a.b", "connect-a_b.retry-"),
        ("a/b é", "connect-a_b__.retry-"),
        ("x" * 249, "connect-" + "x" * 218 + ".retry-"),
    ],
)
def test_a_retry_topic_is_named_after_its_connector(connector: str, beginning: str) -> None:
    name = name_for(connector)

    assert name.startswith(beginning)
    assert is_retry_topic(name)
    assert len(name) <= MAX_TOPIC_CHARS


def test_names_that_differ_in_a_dot_only_have_topics_that_do_not_collide() -> None:
    topics = [name_for(name).replace(".", "_") for name in ("a.b", "a_b", "a-b", "a/b")]

    assert len(set(topics)) == 4


@pytest.mark.parametrize(
    "name",
    ["connect-a", "connect-.retry", "orders.retry", "connect-a.retry-1", "connect-a.b.retry"],
)
def test_other_names_are_no_retry_topics(name: str) -> None:
    assert not is_retry_topic(name)


def test_an_origin_is_read_as_it_was_written() -> None:
    origin = Origin(topic="in", partition=3, offset=17, attempt=2)

    assert origin_in(headers_of(origin)) == origin
    assert origin_in(headers_of(Origin(topic="in"))) == Origin(topic="in")
    assert origin_in((("trace", b"1"),)) is None
    assert origin_in(((f"{PREFIX}topic", None),)) is None


@pytest.mark.parametrize("number", [b"-1", b"", b"x", b"9" * 20, b"\xc2\xb2"])
def test_a_number_that_is_none_is_not_known(number: bytes) -> None:
    origin = origin_in(((f"{PREFIX}topic", b"in"), (f"{PREFIX}partition", number)))

    assert origin == Origin(topic="in")


def test_a_record_that_is_sent_again_comes_as_from_its_topic() -> None:
    fakes = FakePorts(**{"in": 1, RETRIES.topic: 1})
    fakes.wire.add(RETRIES.topic, b"a", key=b"k", headers=(("trace", b"1"), *AGAIN))
    given: list[SinkRecord] = []

    run(list_sink(put=given.extend), fakes)

    [record] = given
    assert (record.topic, record.partition, record.value) == ("in", 3, "a")
    assert [(header.name, header.value) for header in record.headers] == [("trace", "1")]
    # What offsets count is where it was read; what is named after it, where it stood first.
    assert (record.origin, record.origin_offset) == (RETRIES, 0)
    assert record.first_place == RecordPlace(topic="in", partition=3, offset=17)
    assert fakes.wire.groups["connect-c"] == {IN: 0, RETRIES: 1}


def test_a_retry_topic_is_read_from_its_beginning_whatever_the_config_says() -> None:
    for reset in ("latest", "none"):
        fakes = FakePorts(**{"in": 1, RETRIES.topic: 1})
        fakes.wire.groups["connect-c"] = {IN: 0}
        fakes.wire.add(RETRIES.topic, b"a", headers=AGAIN)
        plugin = list_sink()

        run(plugin, fakes, {**CONFIG, "consumer.override.auto.offset.reset": reset})

        assert plugin.values == ["a"]


def test_only_the_first_task_reads_it_and_no_partition_moves() -> None:
    fakes = FakePorts(**{"in": 4, RETRIES.topic: 1})
    opened = []

    for number in range(2):
        plugin = list_sink()
        run(plugin, fakes, number=number, count=2)
        opened.append([(place.topic, place.partition) for place in plugin.opened])

    assert opened == [[("in", 0), ("in", 1), (RETRIES.topic, 0)], [("in", 2), ("in", 3)]]


def test_no_pattern_matches_the_retry_topic_of_anybody() -> None:
    fakes = FakePorts(**{"in": 1, RETRIES.topic: 1, "connect-other.retry": 1})
    plugin = list_sink()

    run(plugin, fakes, {"topics.regex": ".*"})

    assert plugin.opened == [IN, RETRIES]


@pytest.mark.parametrize(
    "config",
    [
        {"topics": "in,connect-other.retry"},
        {"topics": RETRIES.topic},
        {**TOLERANT, "errors.deadletterqueue.topic.name": "connect-c.retry"},
    ],
)
def test_a_config_that_names_a_retry_topic_ends_the_task(config: Mapping[str, str]) -> None:
    fakes = FakePorts(**{"in": 1, RETRIES.topic: 1, "connect-other.retry": 1})

    end = run(list_sink(), fakes, config)

    assert end.ending is Ending.FAILED
    assert "has the name of a retry topic" in end.trace


def test_a_record_that_fails_again_keeps_its_origin_and_its_attempts() -> None:
    fakes = FakePorts(**{"in": 1, RETRIES.topic: 1})
    fakes.wire.add(RETRIES.topic, b"bad", headers=(("trace", b"1"), *AGAIN))

    end = run(list_sink(), fakes, TOLERANT)

    [[letter]] = fakes.wire.logs["dead"]
    assert told(letter.headers)["trace"] == "1"
    assert origin_in(letter.headers) == Origin(topic="in", partition=3, offset=17, attempt=2)
    assert told(letter.headers)["__connect.errors.topic"] == RETRIES.topic
    assert end.figures["dead_letters"] == 1


def test_an_origin_that_somebody_writes_into_another_topic_counts_nowhere() -> None:
    fakes = FakePorts(**{"in": 1})
    fakes.wire.add("in", b"a", b"bad", headers=AGAIN)
    given: list[SinkRecord] = []

    run(list_sink(put=given.extend), fakes, TOLERANT)

    assert given[0].first_place == RecordPlace(topic="in", partition=0, offset=0)
    [[letter]] = fakes.wire.logs["dead"]
    assert origin_in(letter.headers) is None


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ((), "names its first topic in the header __samsa.retry.topic"),
        (headers_of(Origin(topic="secrets", partition=0, offset=1)), "from topic secrets, which"),
    ],
)
def test_a_record_that_did_not_come_from_a_topic_of_the_connector_is_refused(
    headers: tuple[Header, ...], words: str
) -> None:
    fakes = FakePorts(**{"in": 1, RETRIES.topic: 1})
    fakes.wire.add(RETRIES.topic, b"a", headers=headers)
    plugin = list_sink()

    end = run(plugin, fakes)

    assert end.ending is Ending.FAILED
    assert words in end.trace
    assert plugin.values == []


def test_a_sink_that_keeps_offsets_begins_at_those_of_the_retry_topic() -> None:
    fakes = FakePorts(**{"in": 1, RETRIES.topic: 1})
    fakes.wire.add(RETRIES.topic, b"a", b"b", headers=AGAIN)
    fakes.wire.add("in", b"c", b"d")
    plugin = list_sink(begin={RETRIES: 1, IN: 1})

    run(plugin, fakes)

    assert sorted(plugin.values) == ["b", "d"]


def test_a_place_can_be_given_to_a_record_of_a_test() -> None:
    place = RecordPlace(topic="in", partition=1, offset=2)
    record = SinkRecord(topic="in", origin_topic="r", origin_partition=0, origin_offset=9)

    assert replace(record, retried=place).first_place == place
    assert record.first_place == RecordPlace(topic="r", partition=0, offset=9)
