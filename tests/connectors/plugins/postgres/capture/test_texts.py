"""PostgreSQL's texts of arrays, hstore and intervals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.plugins.postgres.capture.texts import Interval, elements, interval, pairs

WORDS = st.text(st.characters(exclude_characters="\0"))


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{}", []),
        ("{1,NULL,3}", ["1", None, "3"]),
        ('{a,"b c","NULL","q\\"x"}', ["a", "b c", "NULL", 'q"x']),
        ("[0:1]={1,2}", ["1", "2"]),
    ],
)
def test_elements_of_an_array(text: str, found: list[str | None]) -> None:
    assert elements(text) == found


@pytest.mark.parametrize("text", ["", "1,2", "{1,2", "{{1},{2}}", "{1,}", "{,1}", '{"a"b}'])
def test_what_is_no_array_of_one_dimension_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="array"):
        elements(text)


@given(st.lists(WORDS | st.none(), min_size=1))
def test_any_texts_come_back_out_of_an_array(words: list[str | None]) -> None:
    written = ",".join("NULL" if word is None else quoted(word) for word in words)

    assert elements("{" + written + "}") == words


@given(st.dictionaries(WORDS, WORDS | st.none()))
def test_any_texts_come_back_out_of_an_hstore(words: dict[str, str | None]) -> None:
    written = ", ".join(
        f"{quoted(key)}=>{'NULL' if value is None else quoted(value)}"
        for key, value in words.items()
    )

    assert pairs(written) == words


def test_what_is_no_hstore_is_refused() -> None:
    with pytest.raises(ValueError, match="not an hstore"):
        pairs("a=>1")


@pytest.mark.parametrize(
    ("text", "months", "days", "microseconds"),
    [
        ("00:00:00", 0, 0, 0),
        ("1 year 2 mons 3 days 04:05:06.789", 14, 3, 14_706_789_000),
        ("-1 years -2 mons +3 days -04:05:06.789", -14, 3, -14_706_789_000),
        ("1 mon", 1, 0, 0),
        ("-00:00:00.000001", 0, 0, -1),
    ],
)
def test_an_interval_keeps_its_three_units(
    text: str, months: int, days: int, microseconds: int
) -> None:
    assert interval(text) == Interval(months=months, days=days, microseconds=microseconds)


@pytest.mark.parametrize("text", ["", "P1Y", "@ 1 year", "1 week"])
def test_an_interval_of_another_style_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an interval"):
        interval(text)
