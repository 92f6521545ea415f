"""Parts of a config that are wrong as a whole are named before a task meets them."""

import pytest

from connectors.runtime.part_problems import problems


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"type": "TimestampConverter$Value", "target.type": "string"}, "requires format option"),
        ({"type": "TimestampRouter", "timestamp.format": "YYYY"}, "the weeks of the host"),
        ({"type": "InsertField$Key"}, "No field insertion configured"),
        ({"type": "RegexRouter", "regex": "a", "replacement": "$1"}, "names group 1"),
    ],
)
def test_a_transform_that_cannot_be_made_is_told_by_its_class(
    part: dict[str, str], words: str
) -> None:
    config = {"transforms": "t", **{f"transforms.t.{name}": text for name, text in part.items()}}

    ((key, told),) = problems(config)

    assert key == "transforms.t.type"
    assert words in told


def test_a_converter_that_cannot_be_made_is_told_by_its_key() -> None:
    config = {"value.converter": "JsonConverter", "value.converter.schema.content": "{}"}

    ((key, told),) = problems(config)

    assert key == "value.converter"
    assert "schema.content is not a schema" in told


def test_what_is_wrong_by_a_single_key_is_told_there() -> None:
    config = {
        "transforms": "a,b,c,c",
        "transforms.a.type": "HoistField$Value",
        "transforms.b.type": "nope",
        "key.converter": "JsonConverter",
        "key.converter.schemas.enable": "x",
    }

    assert list(problems(config)) == []
    assert list(problems({})) == []
