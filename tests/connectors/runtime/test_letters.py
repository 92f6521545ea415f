"""Dead letters as they are read: whose they are, why they are there, and what is sent again."""

from collections.abc import Mapping
from typing import Any

import pytest

from connectors.runtime.dead_letters import letter as made_letter
from connectors.runtime.letters import (
    Addressee,
    Again,
    Choice,
    Destination,
    Unsent,
    again,
    letter_of,
)
from connectors.runtime.retry_topic import Origin, headers_of, origin_in, sent_in
from connectors.runtime.steps import Stage, StepFailed
from connectors.runtime.task_settings import Reading
from connectors.sdk.errors import DataError
from gateway.kafka.values import Header, Record

TO = Addressee(connector="c", reading=Reading(topics=("in",)))
TOPICS = {"in": 4, "connect-c.retry": 1}


def read(*, headers: tuple[Header, ...] = (), has_context: bool = True, **fields: Any) -> Record:
    """Return a record of the dead letters, as a task of connector c has made it."""
    known = {"topic": "in", "partition": 3, "offset": 17, "key": b"k", "value": b"v"}
    raw = Record(**{**known, "headers": headers, "timestamp_ms": 5, **fields})
    failed = StepFailed(Stage.VALUE_CONVERTER, "JsonConverter", DataError("no JSON"))
    sent = made_letter(
        raw, failed, connector="c", task=1, has_context=has_context, secrets=("hidden",)
    )
    return Record(
        topic="dead",
        partition=0,
        offset=9,
        key=sent.key,
        value=sent.value,
        headers=sent.headers,
        timestamp_ms=sent.timestamp_ms,
    )


def sent_for(record: Record, *, to: Addressee = TO, **more: Any) -> Again | Unsent:
    known: Mapping[str, Any] = {"run": "7", "partitions": TOPICS, **more}
    destination = known.get("destination", Destination.RETRY)
    return again(
        letter_of(record), to, destination, run=known["run"], partitions=known["partitions"]
    )


def test_a_letter_says_why_it_is_there() -> None:
    cause = letter_of(read()).cause

    assert (cause.topic, cause.partition, cause.offset) == ("in", 3, 17)
    assert (cause.connector, cause.task, cause.stage) == ("c", 1, "VALUE_CONVERTER")
    assert cause.exception == "org.apache.kafka.connect.errors.DataException"
    assert cause.message == "no JSON"
    assert cause.stack


def test_what_is_sent_again_is_as_it_was_and_says_where_it_stood() -> None:
    made = sent_for(read(headers=(("trace", b"1"),)))

    assert isinstance(made, Again)
    record = made.record
    assert made.topic == "connect-c.retry"
    assert (record.key, record.value, record.timestamp_ms) == (b"k", b"v", 5)
    assert record.headers[0] == ("trace", b"1")
    assert not [name for name, _ in record.headers if name.startswith("__connect.")]
    assert origin_in(record.headers) == Origin(topic="in", partition=3, offset=17, attempt=1)
    assert sent_in(record.headers, run="7") == (0, 9)
    assert sent_in(record.headers, run="8") is None


def test_what_failed_again_keeps_its_first_place_and_counts_one_more() -> None:
    twice = headers_of(Origin(topic="in", partition=3, offset=17, attempt=2))

    made = sent_for(read(topic="connect-c.retry", partition=0, offset=0, headers=twice))

    assert isinstance(made, Again)
    found = origin_in(made.record.headers)
    assert found == Origin(topic="in", partition=3, offset=17, attempt=3)


def test_headers_of_ours_count_in_no_letter_of_another_topic() -> None:
    forged = headers_of(Origin(topic="elsewhere", partition=0, offset=0))
    record = read()
    told = Record(topic="dead", partition=0, offset=9, key=b"k", value=b"v")
    told = Record(
        topic="dead",
        partition=0,
        offset=9,
        key=told.key,
        value=told.value,
        headers=(*record.headers, *forged),
    )

    made = sent_for(told)

    assert isinstance(made, Again)
    assert origin_in(made.record.headers) == Origin(topic="in", partition=3, offset=17)


def test_to_its_origin_a_record_goes_without_any_header_of_ours() -> None:
    made = sent_for(read(headers=(("trace", b"1"),)), destination=Destination.ORIGIN)

    assert isinstance(made, Again)
    assert (made.topic, made.record.partition) == ("in", 3)
    assert made.record.headers == (("trace", b"1"),)


@pytest.mark.parametrize(
    ("to", "more", "reason"),
    [
        (Addressee(connector="d", reading=Reading(topics=("in",))), {}, Unsent.OTHER),
        (Addressee(connector="c", reading=Reading(topics=("x",))), {}, Unsent.NOT_READ),
        (TO, {"partitions": {"in": 3}, "destination": Destination.ORIGIN}, Unsent.GONE),
        (TO, {"partitions": {}, "destination": Destination.ORIGIN}, Unsent.GONE),
    ],
)
def test_a_letter_that_cannot_be_sent_is_left_with_the_reason(
    to: Addressee, more: Mapping[str, Any], reason: Unsent
) -> None:
    assert sent_for(read(), to=to, **more) is reason


def test_a_letter_without_a_cause_is_sent_where_only_one_connector_and_topic_can_be_meant() -> None:
    unnamed = read(has_context=False)
    alone = Addressee(connector="c", reading=Reading(topics=("in",)), has_unnamed=True)
    many = Addressee(connector="c", reading=Reading(topics=("in", "x")), has_unnamed=True)

    made = sent_for(unnamed, to=alone)

    assert isinstance(made, Again)
    assert origin_in(made.record.headers) == Origin(topic="in")
    assert sent_for(unnamed) is Unsent.UNNAMED
    assert sent_for(unnamed, to=many) is Unsent.NO_ORIGIN


def test_a_letter_that_has_lost_its_first_place_reaches_no_retry_topic() -> None:
    lost = read(topic="connect-c.retry", partition=0, offset=0)
    unknown = Addressee(connector="c", reading=None)

    assert sent_for(lost, to=unknown) is Unsent.NO_ORIGIN


def test_a_letter_whose_headers_cannot_be_read_is_not_sent_without_them() -> None:
    unread = Record(
        topic="dead", partition=0, offset=0, key=None, value=b"v", has_unread_headers=True
    )

    assert sent_for(unread) is Unsent.UNREAD


def test_letters_are_chosen_by_place_class_and_stage() -> None:
    found = letter_of(read())

    assert Choice().has(found)
    assert Choice(picked=frozenset({(0, 9)})).has(found)
    assert not Choice(picked=frozenset({(0, 8)})).has(found)
    assert Choice(exception="DataException").has(found)
    assert Choice(exception=found.cause.exception, stage="value_converter").has(found)
    assert not Choice(exception="Data").has(found)
    assert not Choice(stage="TASK_PUT").has(found)
