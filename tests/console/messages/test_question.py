"""What the query of an address is read as."""

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest

from console.messages.forms import Form
from console.messages.question import (
    BadQuestion,
    Mode,
    Query,
    Question,
    part_of,
    question_of,
    time_of,
    written_cursor,
)


def asked(query: str) -> Question:
    return question_of(Query(f"cluster=c&topic=orders{query}".encode()), zone=UTC)


def test_what_is_not_said_has_a_default() -> None:
    assert asked("") == Question(cluster="c", topic="orders")
    assert asked("&mode=&key=&limit=&partitions=") == asked("")


def test_everything_can_be_said() -> None:
    told = asked("&partitions=3,0,3&mode=offset&from=7&limit=9&filter=a%20b&key=int64&value=hex")

    assert told == Question(
        cluster="c",
        topic="orders",
        partitions=(0, 3),
        mode=Mode.OFFSET,
        start=7,
        limit=9,
        filter="a b",
        key=Form.INT64,
        value=Form.HEX,
    )


def test_a_cursor_takes_the_place_of_an_offset() -> None:
    told = asked("&mode=offset&cursor=0:5,12:9223372036854775807")

    assert told.cursor == {0: 5, 12: 2**63 - 1}
    assert written_cursor(told.cursor) == "0:5,12:9223372036854775807"


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("1795082400000", "UTC", 1_795_082_400_000),
        ("2026-11-19T10:00:00Z", "Europe/Berlin", 1_795_082_400_000),
        ("2026-11-19T11:00", "Europe/Berlin", 1_795_082_400_000),
        ("2026-11-19 10:00:00.123", "UTC", 1_795_082_400_123),
        ("2026-10-25T02:30+01:00", "Europe/Berlin", 1_792_891_800_000),
        ("1900-01-01", "UTC", 0),
    ],
)
def test_a_time_is_a_number_or_a_date_in_the_zone_of_the_pages(
    text: str, zone: str, expected: int
) -> None:
    assert time_of(text, zone=ZoneInfo(zone)) == expected


@pytest.mark.parametrize(
    ("text", "how", "offsets"),
    [
        ("2026-10-25T02:30", "comes twice", ("+02:00", "+01:00")),
        ("2026-03-29 02:30:15", "is left out", ("+01:00", "+02:00")),
    ],
)
def test_a_time_that_comes_twice_or_never_is_refused_with_both_offsets(
    text: str, how: str, offsets: tuple[str, str]
) -> None:
    berlin = ZoneInfo("Europe/Berlin")

    with pytest.raises(BadQuestion) as caught:
        time_of(text, zone=berlin)

    assert how in caught.value.message
    assert "Europe/Berlin" in caught.value.message
    meant = [offset in caught.value.next_step for offset in offsets]
    assert meant == [True, True]
    proposed = [word for word in caught.value.next_step.split() if word.endswith(offsets)]
    first, second = (time_of(each, zone=berlin) for each in proposed)
    assert abs(second - first) == 3_600_000


@pytest.mark.parametrize(
    "query",
    [
        "&partitions=" + ",".join(map(str, range(1_001))),
        "&partitions=2147483648",
        "&partitions=0,,1",
        "&cursor=" + ",".join(f"{n}:1" for n in range(1_001)),
        "&cursor=2147483648:1",
        "&cursor=0:9223372036854775808",
        "&cursor=0:-1",
        "&mode=offset&from=9223372036854775808",
        "&limit=0",
        "&limit=%EF%BC%91",
        "&mode=time",
        "&mode=time&from=0001-01-01T00:00:00%2B14:00x",
        "&topic=twice",
        f"&x={'y' * 70_000}",
    ],
)
def test_what_is_beyond_a_bound_is_refused_with_a_next_step(query: str) -> None:
    with pytest.raises(BadQuestion) as caught:
        asked(query)

    assert caught.value.next_step


def test_a_query_that_is_no_text_is_refused() -> None:
    with pytest.raises(BadQuestion):
        Query(b"\xff=1")


def test_a_part_has_a_place_and_a_name() -> None:
    query = "cluster=c&topic=orders&partition=1&offset=9223372036854775807&part="
    parts = [part_of(Query((query + name).encode())) for name in ("key", "value", "header:12")]

    assert [part.name for part in parts] == ["key", "value", "header:12"]
    assert parts[0].offset == 2**63 - 1
