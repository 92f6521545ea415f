"""What the page of changes says, and the files that are made of it."""

import csv
import io
import json
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from console.queries import changes as query
from console.queries.changes import Asked, asked_of, change, changes, exported
from console.queries.reading import State
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Role
from tests.console import cluster_rows

ALL = Rights([Grant(role=Role.ADMIN)])


def test_a_console_without_a_cluster_is_empty() -> None:
    assert changes(None, Asked(), ALL).state is State.EMPTY


def test_a_change_tells_who_what_and_from_where() -> None:
    cluster_rows.audit_entry(
        cluster_rows.cluster(),
        1,
        client_id="samsa-cli",
        address="192.0.2.1",
        before={"retention.ms": "1"},
        after={"retention.ms": "2", "segment.ms": "3"},
    )

    data = changes(None, Asked(), ALL).data

    assert data is not None
    (row,) = data.rows
    assert (row.actor, row.source) == ("User:alice", "Kafka protocol · samsa-cli · 192.0.2.1")
    assert (row.kind, row.what, row.word) == ("alter configs", "topic orders", "Done")
    assert row.detail == "retention.ms: 1 → 2, segment.ms: not set → 3"


def test_a_value_that_was_not_set_before_says_so() -> None:
    shown = cluster_rows.cluster()
    cluster_rows.audit_entry(shown, 1, after={"retention.ms": "2"})
    cluster_rows.audit_entry(shown, 2, kind="create topic", after={"partitions": "3"})

    data = changes(None, Asked(), ALL).data

    assert data is not None
    assert [row.detail for row in data.rows] == ["partitions: 3", "retention.ms: not set → 2"]


def test_a_refusal_tells_why() -> None:
    cluster_rows.audit_entry(
        cluster_rows.cluster(), 1, outcome="INVALID_CONFIG", message="no such key", times=7
    )

    data = changes(None, Asked(), ALL).data

    assert data is not None
    (row,) = data.rows
    assert (row.state, row.word, row.detail, row.times) == ("bad", "Refused", "no such key", 7)


def test_pages_follow_each_other_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = cluster_rows.cluster()
    for number in range(1, 6):
        cluster_rows.audit_entry(shown, number)
    monkeypatch.setattr(query, "PAGE_ROWS", 2)

    first = changes(None, Asked(), ALL).data
    assert first is not None
    last = changes(None, Asked(below=2), ALL).data

    assert [row.number for row in first.rows] == [5, 4]
    assert first.older == 4
    assert last is not None
    assert [row.number for row in last.rows] == [1]
    assert last.older is None


def test_a_period_leaves_out_what_is_older() -> None:
    shown = cluster_rows.cluster()
    cluster_rows.audit_entry(shown, 1, name="old", at_ms=cluster_rows.NOW_MS - 2 * query.HOUR_MS)
    cluster_rows.audit_entry(shown, 2, name="new")

    data = changes(None, Asked(period="hour"), ALL).data

    assert data is not None
    assert [row.what for row in data.rows] == ["topic new"]


@pytest.mark.parametrize(
    ("period", "found"),
    [
        ({"period": "today"}, ["at 01:00"]),
        ({"period": "yesterday"}, ["at 23:00", "at 00:30"]),
        ({"since": "yesterday 12:00"}, ["at 01:00", "at 23:00"]),
        ({"until": "yesterday 01:00"}, ["at 00:30", "before"]),
        ({"since": "2026-11-17T23:00:00Z", "until": "2026-11-17T23:45:00Z"}, ["at 00:30"]),
    ],
)
def test_days_are_those_of_the_zone_in_which_the_page_is_shown(
    period: dict[str, str], found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    shown = cluster_rows.cluster()
    times = {"before": (17, 23, 59), "at 00:30": (18, 0, 30), "at 23:00": (18, 23, 0)}
    for number, (name, (day, hour, minute)) in enumerate(
        {**times, "at 01:00": (19, 1, 0)}.items(), 1
    ):
        at = datetime(2026, 11, day, hour, minute, tzinfo=berlin)
        cluster_rows.audit_entry(shown, number, name=name, at_ms=int(1000 * at.timestamp()))
    now = datetime(2026, 11, 19, 2, 0, tzinfo=berlin)
    monkeypatch.setattr(timezone, "now", lambda: now)

    with timezone.override(berlin):
        data = changes(None, asked_of(period), ALL).data

    assert data is not None
    assert [row.what.removeprefix("topic ") for row in data.rows] == found


def test_what_workers_were_refused_is_shown_on_request_and_is_no_alarm() -> None:
    shown = cluster_rows.cluster()
    refused: dict[str, Any] = {"outcome": "TOPIC_ALREADY_EXISTS", "message": "it exists"}
    cluster_rows.audit_entry(shown, 1, name="dlq", client_id="samsa-connect", **refused)
    cluster_rows.audit_entry(shown, 2, name="made", client_id="samsa-connect")
    cluster_rows.audit_entry(shown, 3, name="of a user", client_id="kafka-topics", **refused)

    usual = changes(None, asked_of({}), ALL).data
    whole = changes(None, asked_of({"workers": "shown"}), ALL).data
    file = exported(cluster_rows.CLUSTER_ID, asked_of({}, has_workers=True), is_csv=False)

    assert usual is not None
    assert [row.what for row in usual.rows] == ["topic of a user", "topic made"]
    assert whole is not None
    assert [(row.what, row.state) for row in whole.rows] == [
        ("topic of a user", "bad"),
        ("topic made", "ok"),
        ("topic dlq", "stale"),
    ]
    assert file.content.count("\n") == 3


@pytest.mark.parametrize("below", ["-1", "x", "9" * 30, "²", "1.5"])
def test_what_makes_no_sense_is_not_asked_for(below: str) -> None:
    asked = asked_of({"below": below, "kind": "<b>", "period": "year", "outcome": "x", "q": "\0a"})

    assert asked == Asked(name="a")


def test_one_change_shows_every_value() -> None:
    cluster_rows.audit_entry(
        cluster_rows.cluster(), 1, before={"a": "1", "b": "2"}, after={"b": "2", "c": "3"}
    )

    data = change(None, 1, ALL).data

    assert data is not None
    assert [(v.key, v.before, v.after) for v in data.values] == [
        ("b", "2", "2"),
        ("c", None, "3"),
        ("a", "1", None),
    ]


def test_a_file_has_every_value_a_line_an_entry() -> None:
    cluster_rows.audit_entry(cluster_rows.cluster(), 1, after={"retention.ms": "2"})

    file = exported(cluster_rows.CLUSTER_ID, Asked(), is_csv=False)

    line = json.loads(file.content)
    assert (line["number"], line["name"], line["after"]) == (1, "orders", {"retention.ms": "2"})
    assert file.older is None


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r"])
def test_no_cell_is_a_formula(begin: str) -> None:
    formula = f"{begin}HYPERLINK(1)"
    cluster_rows.audit_entry(
        cluster_rows.cluster(), 1, name=formula, client_id=formula, actor=formula, message=formula
    )

    file = exported(cluster_rows.CLUSTER_ID, Asked(), is_csv=True)

    (row,) = csv.DictReader(io.StringIO(file.content, newline=""))
    assert {row[key] for key in ("name", "client_id", "actor", "message")} == {f"'{formula}"}


def test_a_file_that_ends_early_says_where_the_next_one_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = cluster_rows.cluster()
    for number in range(1, 4):
        cluster_rows.audit_entry(shown, number)
    monkeypatch.setattr(query, "MAX_EXPORTED", 2)

    first = exported(cluster_rows.CLUSTER_ID, Asked(), is_csv=False)
    rest = exported(cluster_rows.CLUSTER_ID, Asked(below=first.older), is_csv=False)

    assert first.older == 2
    assert json.loads(rest.content)["number"] == 1
    assert rest.older is None
