"""The last minutes of the rows of a list."""

import json
from typing import Any
from urllib.parse import quote_plus

import pytest

from console.queries.recent import MAX_NAMES_BYTES, MAX_QUESTIONS, Samples, recent, trend
from tests.builders.live import Told


def test_long_names_are_asked_for_in_several_questions_and_no_more(told: Told) -> None:
    told.answers["/recent"] = answer
    names = [f"{number:03}" + "名" * 300 for number in range(100)]

    found = recent("group", names)

    sizes = [len(quote_plus(str(query["names"]))) for _path, query in told.asked]
    assert len(sizes) == MAX_QUESTIONS
    assert max(sizes) <= MAX_NAMES_BYTES
    assert list(found) == names[: len(found)]


def answer(kind: str, names: str) -> dict[str, Any]:
    assert kind == "group"
    return {"samples": {name: [1.0] for name in json.loads(names)}}


def test_a_collector_that_is_away_leaves_pictures_out(told: Told) -> None:
    told.go_silent()

    assert recent("group", ["mail"]) == {}


@pytest.mark.parametrize(
    ("samples", "word"),
    [
        ((None, 5.0), ""),
        ((100.0, None, 105.0), "steady"),
        ((0.0, 5.0), "rising"),
        ((90.0, 100.0, 50.0), "falling"),
    ],
)
def test_a_picture_is_told_in_a_word(samples: Samples, word: str) -> None:
    assert trend(samples) == word
