"""A question is read whole or refused with a sentence."""

import json
from typing import Any

import pytest

from brokers.search.question import DEFAULT_HITS, MAX_HITS, Bound, question_of


def body(**fields: Any) -> bytes:
    return json.dumps({"topic": "orders", "partition": 0, **fields}).encode()


def test_what_is_not_said_has_a_default() -> None:
    question = question_of(body())

    assert (question.topic, question.partition) == ("orders", 0)
    assert question.first == question.last == Bound()
    assert question.max_hits == DEFAULT_HITS
    assert not question.is_committed


def test_bounds_are_offsets_times_or_words() -> None:
    question = question_of(body(**{"from": {"offset": 5}, "to": {"time": 9}}))

    assert (question.first, question.last) == (Bound(offset=5), Bound(time=9))
    assert question_of(body(**{"from": "start", "to": "end"})).last == Bound()


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "is a JSON object"),
        (b"{}", "name the topic"),
        (body(topic=7), "name the topic"),
        (body(partition=-1), "'partition' is '-1'"),
        (body(partition=True), "'partition' is 'True'"),
        (body(hits=1), "'hits' is not a field"),
        (body(max_hits=MAX_HITS + 1), "a number of 1 to 10000"),
        (body(max_bytes=0), "'max_bytes' is '0'"),
        (body(isolation="dirty"), "read_uncommitted or read_committed"),
        (body(**{"from": "end"}), "'from' is 'end'"),
        (body(to={"offset": -1}), "'offset' is '-1'"),
        (body(to={"offset": 1, "time": 1}), "'to' is"),
        (body(where={"what": 1}), "'what' is not a condition"),
    ],
)
def test_what_is_no_question_is_refused(wrong: bytes, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        question_of(wrong)
