"""What the query of an address is read as."""

from datetime import UTC

import pytest

from console.messages.forms import Form
from console.messages.question import (
    BadQuestion,
    Mode,
    Query,
    Question,
    Window,
    part_of,
    question_of,
    written_cursor,
)
from tests.builders.messages import NOW


def asked(query: str) -> Question:
    return question_of(Query(f"cluster=c&topic=orders{query}".encode()), zone=UTC, now=NOW)


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


def test_both_ends_of_a_time_range_can_be_given_in_any_order_of_reading() -> None:
    noon, hour = 1_795_089_600_000, 3_600_000

    for mode in ("newest", "oldest", "time"):
        told = asked(f"&mode={mode}&from=-2h&to=11:30")
        assert told.window == Window(since=noon - 2 * hour, until=noon - hour // 2)
    assert asked("&mode=time&from=today").mode is Mode.OLDEST
    assert asked("&to=2026-11-19T12:00Z").window == Window(until=noon)
    assert asked("&mode=offset&from=7&to=now").window == Window(until=noon)
    assert asked("&mode=tail&from=-1h").window.is_open


def test_a_page_of_the_newest_that_follows_keeps_the_start_of_its_range() -> None:
    newest, oldest = (asked(f"&mode={m}&from=-1h&cursor=0:5") for m in ("newest", "oldest"))

    assert (newest.window.since, oldest.window.since) == (1_795_086_000_000, None)


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
        "&from=-1h&to=-2h",
        "&to=noon",
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
