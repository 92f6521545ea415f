"""The Messages tab, as a browser gets it: the form, the question to the stream, and who may ask."""

import re
from datetime import UTC, datetime
from html import unescape
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.contrib.auth import get_user_model
from django.db import connections
from django.test import Client

from console.messages.filter_language import filter_of
from console.queries.topic_messages import FILTERS
from gateway.access.operations import Kind, Operation
from tests.builders import users
from tests.builders.messages import NOW
from tests.console import cluster_rows

SHOWN = cluster_rows.CLUSTER_ID


@pytest.fixture(autouse=True)
def orders() -> None:
    cluster = cluster_rows.cluster()
    cluster_rows.broker(cluster, 1)
    cluster_rows.topic(cluster, "orders", partitions=3)


def page_of(browser: Client, path: str = "/topics/orders/messages", **query: str) -> str:
    answer = browser.get(path, query)
    assert answer.status_code == 200
    return str(answer.content.decode())


def question_in(page: str) -> dict[str, str]:
    found = re.search(r'data-query="([^"]*)"', page)
    assert found is not None
    return dict(parse_qsl(unescape(found[1])))


def test_the_newest_records_are_asked_for_at_once(alice: Client) -> None:
    page = page_of(alice)

    assert question_in(page) == {
        "cluster": SHOWN,
        "topic": "orders",
        "mode": "newest",
        "limit": "50",
        "key": "auto",
        "value": "auto",
    }
    assert 'data-bootstrap="127.0.0.1:9092"' in page


def test_a_link_holds_the_whole_question(alice: Client) -> None:
    asked = {
        "cluster": SHOWN,
        "mode": "offset",
        "from": "9007199254740993",
        "partitions": "0, 2",
        "limit": "200",
        "filter": 'value.a = "<b>&\'"',
        "key": "int64",
        "value": "hex",
    }

    page = page_of(alice, **asked)

    assert question_in(page) == {**asked, "topic": "orders", "partitions": "0,2"}
    assert "<b>" not in page
    assert '<option value="offset" selected>' in page
    assert '<details class="ask-more" open>' in page


def location(browser: Client, **query: str) -> dict[str, str]:
    """Follow no redirect; return the query of its address."""
    answer = browser.get("/topics/orders/messages", query)
    assert answer.status_code == 302
    return dict(parse_qsl(urlsplit(answer["Location"]).query))


def use_berlin(browser: Client) -> None:
    browser.cookies["samsa-zone"] = "Europe/Berlin"
    browser.cookies["samsa-times"] = "local"


def test_an_address_names_its_instants_with_their_zone(alice: Client) -> None:
    use_berlin(alice)
    typed = {
        "from": "31.01.2026 12:00",
        "to": "2026-01-31 13:00:00.5",
        "filter": "timestamp > 0:30",
    }

    asked = location(alice, mode="oldest", limit="50", zone="Europe/Berlin", **typed)

    day = asked.pop("filter").removeprefix("timestamp > ")
    assert day.endswith(":30:00Z")
    assert asked == {
        "mode": "oldest",
        "from": "2026-01-31T11:00:00Z",
        "to": "2026-01-31T12:00:00.500Z",
    }


def test_an_address_means_the_same_to_every_reader(alice: Client, victor: Client) -> None:
    use_berlin(alice)
    instant = {"from": "2026-01-31T11:00:00Z", "filter": "timestamp < 2026-01-31T12:00:00Z"}
    utc = Client()
    utc.force_login(get_user_model().objects.get(username="alice"))

    berlin, greenwich = page_of(alice, **instant), page_of(utc, **instant)

    assert question_in(berlin) == question_in(greenwich)
    assert question_in(berlin)["from"] == instant["from"]
    assert 'name="from" value="2026-01-31 12:00:00"' in berlin
    assert 'name="from" value="2026-01-31 11:00:00"' in greenwich


def test_an_address_of_an_earlier_release_is_read_in_the_zone_of_its_reader(alice: Client) -> None:
    use_berlin(alice)

    former = location(alice, mode="time", **{"from": "2026-01-31 12:00"})
    exact = location(alice, mode="time", **{"from": "2026-01-31T12:00:00+05:00"})

    assert former == {"mode": "oldest", "from": "2026-01-31T11:00:00Z"}
    assert exact["from"] == "2026-01-31T07:00:00Z"


def test_a_time_is_of_the_zone_that_its_form_showed(alice: Client) -> None:
    use_berlin(alice)

    asked = location(alice, zone="UTC", **{"from": "2026-01-31 12:00"})

    assert asked == {"from": "2026-01-31T12:00:00Z"}


def test_one_click_starts_a_time_range_and_keeps_what_was_typed(alice: Client) -> None:
    form = {"mode": "tail", "zone": "UTC", "filter": "x", "to": "now", "limit": "200"}

    asked = location(alice, last="-15m", **form)

    start = datetime.fromisoformat(asked.pop("from"))
    assert 890 <= (datetime.now(UTC) - start).total_seconds() <= 990
    assert asked == {"filter": "x", "limit": "200"}


def test_only_the_fields_of_a_mode_are_sent_without_a_script(alice: Client) -> None:
    offset, newest = page_of(alice, mode="offset", **{"from": "7"}), page_of(alice)

    assert 'aria-label="Time range" hidden disabled>' in offset
    assert 'aria-label="Time range">' in newest
    assert re.search(r'disabled name="from" value=""', newest)
    assert question_in(offset)["from"] == "7"


def test_milliseconds_are_an_instant_already(alice: Client) -> None:
    page = page_of(alice, **{"from": "1700000000000"})

    assert question_in(page)["from"] == "1700000000000"
    assert 'name="from" value="2023-11-14 22:13:20"' in page


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"from": "noon"}, "'noon' is not a time: give how long ago"),
        ({"to": "2026-02-31"}, "'2026-02-31' is not a time"),
        ({"from": "9" * 50}, "is not a time"),
        ({"from": "-1h", "to": "-2h"}, "The end '-2h' is not after the start '-1h'"),
    ],
)
def test_a_time_that_cannot_be_read_is_refused_beside_its_field(
    alice: Client, fields: dict[str, str], says: str
) -> None:
    answer = alice.get("/topics/orders/messages", {**fields, "zone": "UTC", "filter": "x"})

    page = unescape(answer.content.decode())
    assert answer.status_code == 400
    assert says in page
    assert 'aria-invalid="true" aria-describedby="ask-problem"' in page
    assert all(f'value="{typed}"' in page for typed in (*fields.values(), "x"))
    assert "/messages/stream" not in page


def test_what_no_list_of_choices_has_is_its_first_one(alice: Client) -> None:
    page = page_of(alice, mode="x", limit="1e9", key="<script>", value="\0")

    assert question_in(page)["mode"] == "newest"
    assert question_in(page)["limit"] == "50"
    assert "&lt;script&gt;" not in page


def test_a_filter_without_end_does_not_fill_the_page(alice: Client) -> None:
    page = page_of(alice, filter="x" * 30_000)

    assert len(question_in(page)["filter"]) == 8_192


def test_a_topic_that_is_not_there_is_said_to_be_missing(alice: Client) -> None:
    for name in ("payments", "<b>", "a\0b", "..."):
        answer = alice.get(f"/topics/{name}/messages".replace("\0", "%00"))

        assert answer.status_code == 404
        assert "There is no topic" in answer.content.decode()
        assert "<b>" not in answer.content.decode()


def test_a_topic_of_another_cluster_than_the_one_named_is_not_shown(alice: Client) -> None:
    answer = alice.get("/topics/orders/messages?cluster=gone")

    assert answer.status_code == 404


def test_who_may_not_read_payloads_is_told_which_right_is_missing(victor: Client) -> None:
    answer = victor.get("/topics/orders/messages")

    assert answer.status_code == 403
    assert "You may not read payloads on topic orders" in answer.content.decode()
    assert "/messages/stream" not in answer.content.decode()


def test_who_may_not_see_the_topic_does_not_learn_whether_it_exists(client: Client) -> None:
    user = users.user("some", role=None)
    users.grant(user, Operation.VIEW, kind=Kind.TOPIC, pattern="other")
    client.force_login(user)

    pages = [client.get(f"/topics/{name}/messages") for name in ("orders", "payments")]

    assert [page.status_code for page in pages] == [404, 404]
    assert "There is no topic “orders” that you may see" in pages[0].content.decode()


def test_exports_are_offered_to_those_who_may_export(client: Client, alice: Client) -> None:
    user = users.user("some", role=None)
    for operation in (Operation.VIEW, Operation.READ_PAYLOADS):
        users.grant(user, operation, kind=Kind.TOPIC, pattern="orders")
    reader = Client()
    reader.force_login(user)

    for mode in ("newest", "tail"):
        assert ("/messages/export" in page_of(alice, mode=mode)) is (mode == "newest")
        assert "/messages/export" not in page_of(reader, mode=mode)
    assert "data-may-export" in page_of(alice)
    assert "data-may-export" not in page_of(reader)


def test_an_export_is_of_the_same_records_with_a_limit_of_its_own(alice: Client) -> None:
    page = page_of(alice, filter='value contains "<b>"', mode="oldest", limit="200")

    form = page[page.index('action="/messages/export"') :]
    assert 'name="filter" value="value contains &quot;&lt;b&gt;&quot;"' in form
    assert '<option value="200">' in form
    assert '<option value="100000">' in form
    assert 'type="hidden" name="limit"' not in form


def test_a_database_that_is_away_shows_what_was_read_before(alice: Client) -> None:
    page_of(alice)
    with connections["cluster"].cursor() as cursor:
        cursor.execute("ALTER TABLE controlplane_cluster RENAME TO elsewhere")

    assert 'class="st stale"' in page_of(alice)
    assert alice.get("/topics/other/messages").status_code == 503


def test_nobody_sees_it_without_signing_in(client: Client) -> None:
    assert client.get("/topics/orders/messages")["Location"].startswith("/login")


def test_a_page_without_a_script_says_what_needs_one(alice: Client) -> None:
    page = page_of(alice)

    assert "<noscript>" in page
    assert "./samsa consume orders" in page


def test_every_example_of_a_filter_is_one() -> None:
    for text, _ in FILTERS:
        assert filter_of(text, zone=UTC, now=NOW) is not None
