"""Lengths of time are read, or refused with how to write them."""

import pytest

from spark_integration.streams.durations import parse_duration
from spark_integration.streams.errors import StreamRefused


@pytest.mark.parametrize(
    ("text", "length_ms"), [("1ms", 1), ("90s", 90_000), ("5m", 300_000), ("7d", 604_800_000)]
)
def test_a_number_and_a_unit_are_milliseconds(text: str, length_ms: int) -> None:
    assert parse_duration("window", text) == length_ms


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "-1s", "1.5h", "5M", "0s", "36526d", "٣s"])
def test_anything_else_is_refused_with_the_step_and_the_value(text: str) -> None:
    with pytest.raises(StreamRefused) as caught:
        parse_duration("window", text)

    assert str(caught.value).startswith(f"window: {text!r}")
