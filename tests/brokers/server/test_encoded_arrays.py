"""Answers from encoded elements are the bytes of answers encoded at one go."""

import pytest

from brokers.protocol.codec import codec
from brokers.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from brokers.protocol.messages.fetch import FetchableTopicResponse, FetchResponse
from brokers.protocol.messages.list_offsets import ListOffsetsResponse, ListOffsetsTopicResponse
from brokers.server.encoded_arrays import EncodedArray

RESULTS = EncodedArray(DescribeConfigsResponse, "results")


def result(name: str) -> DescribeConfigsResult:
    synonym = DescribeConfigsSynonym(name="log.k", value=None, source=5)
    config = DescribeConfigsResourceResult(name="k", value="v", config_source=1, synonyms=[synonym])
    return DescribeConfigsResult(resource_type=2, resource_name=name, configs=[config] * 3)


@pytest.mark.parametrize("version", range(1, 5))
@pytest.mark.parametrize("count", [0, 1, 2, 200])
def test_the_bytes_are_those_of_the_codec(version: int, count: int) -> None:
    results = [result("n" * length) for length in range(count)]
    frame = DescribeConfigsResponse(throttle_time_ms=7)

    built = RESULTS.whole(frame, version, [RESULTS.element(one, version) for one in results])

    frame.results = results
    assert built == b"".join(codec(DescribeConfigsResponse, version).encode(frame))


@pytest.mark.parametrize("version", range(1, 12))
def test_an_array_at_the_end_of_an_answer_is_found_in_every_version(version: int) -> None:
    topics = EncodedArray(ListOffsetsResponse, "topics")
    one = ListOffsetsTopicResponse(name="orders")

    built = topics.whole(ListOffsetsResponse(), version, [topics.element(one, version)])

    assert codec(ListOffsetsResponse, version).decode(built).topics == [one]


def test_an_array_before_something_of_any_size_is_refused() -> None:
    array = EncodedArray(FetchResponse, "responses")

    with pytest.raises(AssertionError, match="fixed size"):
        array.element(FetchableTopicResponse(), 16)


def test_elements_in_two_forms_are_refused() -> None:
    with pytest.raises(AssertionError, match="given as bytes"):
        RESULTS.whole(DescribeConfigsResponse(results=[result("a")]), 4, [])
