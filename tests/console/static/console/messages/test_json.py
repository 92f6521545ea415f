"""JSON laid out over lines keeps every character that means something, and loses none."""

import json
import random

import pytest

from tests.extras import requires
from tests.node import evaluated

pytestmark = requires("node")


def laid_out(*texts: str) -> list[str]:
    expression = "given.map((text) => m.asText(m.laidOut(text)))"
    return list(evaluated("messages/json.js", expression, list(texts)))


def test_a_document_is_indented_and_its_numbers_stay_as_written() -> None:
    (shown,) = laid_out('{"id":9007199254740993,"x":[1.50,-0,1e400],"s":"a\\"b","o":{},"l":[]}')

    assert shown == (
        '{\n  "id": 9007199254740993,\n  "x": [\n    1.50,\n    -0,\n    1e400\n  ],\n'
        '  "s": "a\\"b",\n  "o": {},\n  "l": []\n}'
    )


def test_characters_that_were_written_by_their_numbers_are_shown_as_themselves() -> None:
    stays = r'"\u0022\u005C\u0020\u202e\u0000\ud83dx\n\/"'
    text = r'["Z\u00fcrich \uD83D\ude00", "\\u00fc\\\u00e9", ' + stays + "]"

    (shown,) = laid_out(text)

    assert shown.split("\n  ") == [
        "[",
        '"Zürich 😀",',
        r'"\\u00fc\\é",',
        stays + "\n]",
    ]
    assert json.loads(shown) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    ["", '"', '"\\', "{", "]", "[}", '{"a":', "[1,2", "hello world", '{"a":"cut off', "\\", "::"],
)
def test_what_is_cut_or_no_json_goes_as_far_as_it_goes(text: str) -> None:
    (shown,) = laid_out(text)

    assert "".join(shown.split()) == "".join(text.split())


def test_random_documents_mean_the_same_as_before() -> None:
    draw = random.Random(7)

    def document(depth: int) -> object:
        leaf = [None, True, 3, -2.5e-7, 2**63, '"', "\\", "}\n{", "ü\u2028", "", "a, b: [c]"]
        if depth == 0 or draw.random() < 0.3:
            return draw.choice(leaf)
        if draw.random() < 0.5:
            return [document(depth - 1) for _ in range(draw.randrange(4))]
        return {str(draw.choice(leaf)): document(depth - 1) for _ in range(draw.randrange(4))}

    texts = [json.dumps(document(5), separators=(",", ":")) for _ in range(300)]

    for text, shown in zip(texts, laid_out(*texts), strict=True):
        assert json.loads(shown) == json.loads(text), text


def test_a_deep_or_a_long_document_takes_no_time() -> None:
    deep, long = "[" * 100_000, '"' + "x" * 250_000 + '"'

    shown = laid_out(deep, long, "x" * 300_000)

    assert shown[1:] == [long, "x" * 300_000]
    assert shown[0].count("[") == 100_000
