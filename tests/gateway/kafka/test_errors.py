"""Failures as callers see them: Kafka's names, a value, a next step."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from gateway.kafka.errors import (
    ADVICE,
    LOCAL_NAMES,
    NAMES,
    Kind,
    failure,
    from_exception,
    kafka_name,
    translated,
)


def test_advice_is_given_for_names_that_exist() -> None:
    local = {KafkaError(code).name().lstrip("_") for code in LOCAL_NAMES}

    assert set(ADVICE) <= {*NAMES.values(), *local}


@pytest.mark.parametrize(("code", "name"), LOCAL_NAMES.items())
def test_what_librdkafka_finds_out_has_kafkas_name(code: int, name: str) -> None:
    assert kafka_name(KafkaError(code)) == name


def test_an_error_that_only_librdkafka_knows_keeps_its_own_name() -> None:
    error = KafkaError(KafkaError._BAD_COMPRESSION)  # noqa: SLF001 - a documented constant

    assert kafka_name(error) == "BAD_COMPRESSION"


def test_a_failure_says_what_was_wrong_with_the_value_and_what_to_do_next() -> None:
    failed = failure("UNKNOWN_TOPIC_OR_PARTITION", "topic payments")

    assert str(failed) == (
        "topic payments: the cluster does not know it (UNKNOWN_TOPIC_OR_PARTITION)"
    )
    assert failed.kind is Kind.NOT_FOUND
    assert failed.next_step


def test_the_brokers_own_words_come_before_ours() -> None:
    error = KafkaError(KafkaError.INVALID_CONFIG, "retention.ms: 'x' is not a number.")

    assert str(translated(error, "topic a")) == (
        "topic a: retention.ms: 'x' is not a number (INVALID_CONFIG)"
    )


def test_what_the_broker_names_is_not_named_twice() -> None:
    failed = failure("TOPIC_ALREADY_EXISTS", "topic orders", "Topic 'orders' already exists")

    assert failed.message == "Topic 'orders' already exists"


def test_librdkafkas_general_words_give_way_to_the_table() -> None:
    error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)

    assert "does not know it" in str(translated(error, "topic a"))


def test_general_words_are_kept_where_the_table_has_none() -> None:
    error = KafkaError(KafkaError.INVALID_TIMESTAMP)

    assert str(translated(error, "topic a")) == "topic a: invalid timestamp (INVALID_TIMESTAMP)"


@pytest.mark.parametrize(
    "raised",
    [
        ValueError("no such thing"),
        TypeError("no such thing"),
        KafkaException(KafkaError(KafkaError._INVALID_ARG, "no such thing")),  # noqa: SLF001
    ],
)
def test_a_request_that_cannot_be_meant_is_the_callers_mistake(
    raised: KafkaException | ValueError | TypeError,
) -> None:
    failed = from_exception(raised, "the request")

    assert failed.kind is Kind.USAGE
    assert failed.message == "the request: no such thing"
