"""Bodies of consumer calls, as clients of the published interface write them."""

import pytest

from gateway.kafka.values import Place
from gateway.rest.codes import ApiError, Code
from gateway.rest.consume import bodies

PLACE = Place(topic="orders", partition=1)


def test_numbers_may_be_written_as_texts() -> None:
    place = {"topic": "orders", "partition": "1"}

    assert list(bodies.places_of({"partitions": [place]})) == [PLACE]
    assert bodies.offsets_of({"offsets": [{**place, "offset": "7"}]}) == {PLACE: 7}


@pytest.mark.parametrize(
    "text", ["", " 1", "1 ", "1\n", "-1", "1.0", "0x1", "\u0661", "1" * 20, "+", True]
)
def test_texts_that_are_no_number_are_refused(text: object) -> None:
    with pytest.raises(ApiError) as refused:
        bodies.places_of({"partitions": [{"topic": "orders", "partition": text}]})

    assert refused.value.code is Code.UNPROCESSABLE


def test_a_consumer_is_made_by_the_older_names_of_its_fields_too() -> None:
    draft = bodies.draft_of({"id": "i", "responseMinBytes": "7", "requestWaitMs": 8})
    both = bodies.draft_of(
        {"id": "i", "name": "n", "requestWaitMs": 8}
        | {
            "consumer.request.timeout.ms": 9,
        }
    )

    assert (draft.name, draft.min_bytes, draft.wait_ms) == ("i", 7, 8)
    assert (both.name, both.wait_ms) == ("i", 9)


def test_topics_and_a_pattern_exclude_each_other() -> None:
    with pytest.raises(ApiError) as refused:
        bodies.subscription_of({"topics": ["orders"], "topic_pattern": "o.*"})

    assert refused.value.code is Code.ILLEGAL_STATE
