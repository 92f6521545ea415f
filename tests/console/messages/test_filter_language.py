"""Filters: what they find, what they refuse, and that nothing hostile gets through."""

import json
import random
from datetime import UTC
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from brokers.protocol.records.reader import Record
from brokers.search.predicate import condition_of
from console.messages.filter_language import Filter, filter_of
from console.messages.filter_words import MAX_FILTER
from console.messages.question import BadQuestion
from tests.builders.messages import NOW
from tests.scale import count

HOWTO = Path("docs/howto/find-records.md")
AT = 1_795_082_400_000  # 2026-11-19T10:00:00Z


def record(
    value: Any = None, *, key: bytes | None = None, at: int = AT, headers: Any = ()
) -> Record:
    data = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    return Record(0, at, key, data, tuple(headers))


def understood(text: str) -> Filter:
    found = filter_of(text, zone=UTC, now=NOW)
    assert found is not None
    return found


def finds(text: str, one: Record, *, partition: int = 0) -> bool:
    tree = understood(text).of(partition)
    return tree if isinstance(tree, bool) else condition_of(tree).matches(one)


# filter: what it finds, what it does not.
TABLE: dict[str, tuple[Record, Record]] = {
    "refused": (record(b"x refused y"), record(b"accepted")),
    '"card refused"': (record(key=b"card refused"), record(b"card and refused")),
    'value contains "refused"': (record(b"refused"), record(key=b"refused")),
    'value icontains "refused"': (record(b"REFUSED"), record(b"accepted")),
    'key = "order-17"': (record(key=b"order-17"), record(key=b"order-170")),
    "key = null": (record(), record(key=b"")),
    "value = null": (record(), record(b"")),
    "value exists": (record(b""), record()),
    'header trace = "ab12"': (
        record(headers=[(b"trace", b"ab12")]),
        record(headers=[(b"trace", b"ab13")]),
    ),
    'header "trace id" exists': (record(headers=[(b"trace id", None)]), record()),
    "value.order.id = 9007199254740993": (
        record({"order": {"id": 2**53 + 1}}),
        record({"order": {"id": 2**53}}),
    ),
    "value.price >= 99.5": (record({"price": 100}), record({"price": "100"})),
    'value.items[0].sku = "A-1"': (
        record({"items": [{"sku": "A-1"}]}),
        record({"items": [{}, {"sku": "A-1"}]}),
    ),
    "value.items[-1].sku exists": (
        record({"items": [{}, {"sku": 1}]}),
        record({"items": [{"sku": 1}, {}]}),
    ),
    'value["strange name"].x != true': (
        record({"strange name": {"x": 1}}),
        record({"strange name": {}}),
    ),
    'value.note contains "late"': (record({"note": "too late"}), record({"other": "late"})),
    "key.id = 7": (record(key=b'{"id": 7}'), record({"id": 7})),
    "timestamp >= 2026-11-19T10:00:00Z": (record(at=AT), record(at=AT - 1)),
    "timestamp < 1763546400000": (record(at=1763546399999), record(at=1763546400000)),
    "partition = 3 and refused": (record(b"refused"), record(b"accepted")),
    "not (refused or declined)": (record(b"accepted"), record(b"declined")),
    "refused amount": (record(b"amount refused"), record(b"refused")),
}


@pytest.mark.parametrize("text", TABLE)
def test_a_filter_finds_what_the_page_says(text: str) -> None:
    hit, miss = TABLE[text]

    assert finds(text, hit, partition=3)
    assert not finds(text, miss, partition=3)


def test_the_page_shows_the_filters_that_are_tested() -> None:
    page = HOWTO.read_text(encoding="utf-8").partition("| filter | finds records |\n|---|---|\n")[2]
    rows = page.partition("\n\n")[0].splitlines()

    assert [row.split("`")[1] for row in rows] == list(TABLE)


@pytest.mark.parametrize("text", TABLE)
def test_what_was_understood_is_a_filter_that_means_the_same(text: str) -> None:
    told = understood(text)

    again = understood(told.text)

    assert again.tree == told.tree


def test_and_binds_closer_than_or_and_not_closest() -> None:
    assert finds("a or b and not c", record(b"a c"))
    assert not finds("(a or b) and not c", record(b"a c"))


def test_a_partition_is_decided_before_the_search() -> None:
    told = understood("partition = 3 and refused or partition > 7")

    assert told.of(3) == understood("refused").tree
    assert told.of(4) is False
    assert told.of(8) is True
    assert understood("not partition = 1").of(1) is False
    assert understood("not (partition = 1 or x)").of(0) == understood("not x").tree


def test_a_time_that_every_hit_must_have_narrows_the_range() -> None:
    assert understood("x and timestamp >= 5 and timestamp > 7").since_ms == 7
    assert understood("x or timestamp >= 5").since_ms is None
    assert understood("timestamp < 5").since_ms is None


def test_a_date_without_a_zone_is_in_the_zone_of_the_pages() -> None:
    told = filter_of("timestamp >= 2026-11-19T10:00:00", zone=ZoneInfo("Europe/Berlin"), now=NOW)

    assert told is not None
    assert told.since_ms == AT - 3_600_000
    assert told.text == "timestamp >= 2026-11-19T10:00:00.000+01:00"


def test_a_filter_for_an_address_has_instants_and_is_otherwise_as_it_was_typed() -> None:
    typed = 'x  and (timestamp >= "yesterday 12:00" or timestamp<-1h) and timestamp > 17'

    told = filter_of(typed, zone=ZoneInfo("Europe/Berlin"), now=NOW)

    assert told is not None
    assert told.absolute == (
        "x  and (timestamp >= 2026-11-18T11:00:00Z or timestamp<2026-11-19T11:00:00Z)"
        " and timestamp > 17"
    )
    again = filter_of(told.absolute, zone=UTC, now=NOW)
    assert again is not None
    assert again.tree == told.tree


def test_nothing_is_no_filter() -> None:
    assert filter_of("  \t ", zone=UTC, now=NOW) is None


@pytest.mark.parametrize(
    ("text", "position", "message", "next_step"),
    [
        ("value contains", 14, "the end is not a text to search for", "quotes"),
        ('value contains ""', 15, "is not a text", "quotes"),
        ("value like x", 6, "'like' at character 7 cannot compare value", "contains"),
        ("price > 5", 0, "'price' at character 1 is nothing that can be compared", "value.price"),
        ("(a or b", 0, "'(' at character 1 is not closed", "put a )"),
        ("a or", 4, "the end is not expected here", "write a condition"),
        ("a )", 2, "')' at character 3 is not expected here", "take it away"),
        ("and b", 0, "'and' at character 1", "write a condition"),
        ('key = "a', 6, "the quote at character 7 is not closed", 'another "'),
        (r'key = "\q"', 6, "escape that means nothing", "backslash"),
        ('value = "\\ud800"', 8, "escape that means nothing", "backslash"),
        ("value..a = 1", 5, "is not a path from character 6", "value.order"),
        ("value.a[x] = 1", 7, "is not a path from character 8", "value.order"),
        ("value < true", 8, "'true' at character 9 has no order", "= or !="),
        ("key > abc", 6, "is not a number", "key.price > 100"),
        ("partition = x", 12, "is not a partition", "partition = 3"),
        ("partition = -1", 12, "is not a partition", "partition = 3"),
        ("timestamp >= noon", 13, "'noon' is not a time", "milliseconds"),
        ("timestamp >=", 12, "the end is not a time", "2026"),
        ("header trace > 5", 13, "'>' at character 14 does not fit a header", "="),
        ("header = 5", 7, "'=' at character 8 is not a header name", "header trace"),
        ('header["a.b"] = "x"', 0, "is not a header name", "header trace"),
        ("partition.x = 3", 0, "is more than partition", "partition alone"),
        ("timestamp[0] > 5", 0, "is more than timestamp", "timestamp alone"),
        ("= 5", 0, "'=' at character 1 is not expected", "write a condition"),
        ("value.a = 1e999", 10, "beyond all numbers", "smaller"),
        ("x" * 4097, 4096, "4,097 characters", "less"),
        ("é" * 2100, 0, "4200 bytes; at most 4096 fit", "part"),
        ("(" * 40 + "a" + ")" * 40, 16, "deeper than 16 levels", "parentheses"),
        ("not " * 40 + "a", 64, "deeper than 16 levels", "parentheses"),
        (" ".join("abcdefghijklmnopqrstuvwxyz"), None, "conditions in 3 levels", "three times"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_a_next_step(
    text: str, position: int | None, message: str, next_step: str
) -> None:
    with pytest.raises(BadQuestion) as caught:
        filter_of(text, zone=UTC, now=NOW)

    assert message in caught.value.message
    assert next_step in caught.value.next_step
    assert caught.value.position == position


WORDS = [
    *"()=<>!\"'.[]\\ \n\0",
    *("and", "or", "not", "key", "value", "header", "partition", "timestamp", "contains"),
    *("exists", "null", "true", "1", "-1e5", ".a", "[0]", "é", "💥"),
]


def told_or_refused(text: str) -> Filter | BadQuestion | None:
    try:
        return filter_of(text, zone=UTC, now=NOW)
    except BadQuestion as bad:
        return bad


def test_random_filters_are_understood_or_refused_and_never_more() -> None:
    rng = random.Random(7)
    understood_ones = 0
    for _ in range(count(3_000, 10_000, long=300_000)):
        text = "".join(rng.choice(WORDS) + rng.choice(["", " "]) for _ in range(rng.randint(1, 14)))
        told = told_or_refused(text)
        if isinstance(told, BadQuestion):
            assert told.position is None or 0 <= told.position <= MAX_FILTER, text
            assert told.next_step
        elif told is not None:
            understood_ones += 1
            for tree in (told.of(0), told.of(1)):
                if not isinstance(tree, bool):
                    # What this side lets through, a broker takes.
                    condition_of(tree).matches(record({"a": [1]}, key=b"k"))
    assert understood_ones > 0
