"""Changes and audit, as a browser gets them."""

import pytest
from django.test import Client

from console.queries import changes as query
from tests.console import cluster_rows


@pytest.mark.parametrize("page", ["/changes", "/changes/1", "/changes.csv", "/changes.ndjson"])
def test_nobody_sees_them_without_signing_in(client: Client, page: str) -> None:
    assert client.get(page)["Location"] == f"/login?next={page}"


@pytest.mark.parametrize("page", ["/changes", "/changes/1", "/changes.csv"])
def test_they_are_for_those_who_may_see_the_audit(olga: Client, page: str) -> None:
    cluster_rows.audit_entry(cluster_rows.cluster(), 1, name="carts")

    answer = olga.get(page)

    assert answer.status_code == 403
    assert "carts" not in answer.content.decode()


def test_an_empty_audit_says_what_will_be_there(alice: Client) -> None:
    cluster_rows.cluster()

    assert "Nothing was changed yet" in alice.get("/changes").content.decode()


def test_what_clients_call_themselves_is_text(alice: Client) -> None:
    cluster_rows.audit_entry(cluster_rows.cluster(), 1, client_id="<script>", name="<b>")

    for page in ("/changes", "/changes/1"):
        text = alice.get(page).content.decode()
        assert "&lt;script&gt;" in text
        assert "<script>" not in text
        assert "topic &lt;b&gt;" in text


def test_filters_narrow_the_list_and_stay_in_their_fields(alice: Client) -> None:
    shown = cluster_rows.cluster()
    cluster_rows.audit_entry(shown, 1, name="orders")
    cluster_rows.audit_entry(shown, 2, name="payments", outcome="INVALID_CONFIG", message="why not")

    page = alice.get("/changes?q=pay&outcome=refused&period=day").content.decode()
    nothing = alice.get("/changes?q=pay&outcome=done").content.decode()

    assert "topic payments" in page
    assert "why not" in page
    assert "topic orders" not in page
    assert 'value="refused" selected' in page
    assert "No change fits these filters" in nothing


def test_older_changes_are_a_link_away(alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = cluster_rows.cluster()
    for number in range(1, 4):
        cluster_rows.audit_entry(shown, number, name=f"t-{number}")
    monkeypatch.setattr(query, "PAGE_ROWS", 2)

    page = alice.get("/changes?kind=alter configs").content.decode()

    link = f"cluster={cluster_rows.CLUSTER_ID}&amp;below=2"
    assert f"?kind=alter+configs&amp;workers=hidden&amp;{link}" in page


def test_a_period_in_an_address_means_the_same_to_every_reader(alice: Client) -> None:
    cluster_rows.audit_entry(cluster_rows.cluster(), 1)
    alice.cookies["samsa-zone"], alice.cookies["samsa-times"] = "Europe/Berlin", "local"

    answer = alice.get("/changes", {"since": "2026-11-19 12:00", "until": "", "q": "orders"})
    page = alice.get(answer["Location"]).content.decode()
    wrong = alice.get("/changes", {"since": "soonish"})

    assert answer["Location"].startswith("/changes?q=orders&since=2026-11-19T11%3A00%3A00Z")
    assert 'value="2026-11-19 12:00:00"' in page
    assert wrong.status_code == 400
    assert "is not a time" in wrong.content.decode()
    assert 'value="soonish"' in wrong.content.decode()


def test_a_time_range_outside_of_the_calendar_or_backwards_is_no_failure(alice: Client) -> None:
    cluster_rows.audit_entry(cluster_rows.cluster(), 1)

    far = alice.get("/changes", {"since": str(2**63 - 1), "until": ""})
    backwards = alice.get("/changes", {"since": "2026-11-20", "until": "2026-11-19"})

    assert far.status_code == 200
    assert f'value="{2**63 - 1}"' in far.content.decode()
    assert backwards.status_code == 400
    assert "The end &#x27;2026-11-19&#x27; is not after the start" in backwards.content.decode()
    assert backwards.content.decode().count('aria-invalid="true" aria-describedby="refused"') == 2


def test_one_change_shows_before_and_after(alice: Client) -> None:
    cluster_rows.audit_entry(
        cluster_rows.cluster(), 12, before={"retention.ms": "1"}, after={"segment.ms": "2"}
    )

    page = alice.get("/changes/12").content.decode()

    assert "Alter configs: topic orders" in page
    assert page.count("not set") == 2


def test_a_change_that_is_not_there_is_not_found(alice: Client) -> None:
    cluster_rows.cluster()

    assert alice.get("/changes/12").status_code == 404


@pytest.mark.parametrize(
    ("form", "content_type"),
    [("csv", "text/csv; charset=utf-8"), ("ndjson", "application/x-ndjson")],
)
def test_a_file_is_offered_by_a_name(alice: Client, form: str, content_type: str) -> None:
    cluster_rows.audit_entry(cluster_rows.cluster(), 1)

    answer = alice.get(f"/changes.{form}?kind=alter configs")

    assert answer["Content-Type"] == content_type
    name = f"changes-{cluster_rows.CLUSTER_ID}.{form}"
    assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
    assert "Link" not in answer


def test_a_file_links_to_the_next_one(alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = cluster_rows.cluster()
    for number in range(1, 4):
        cluster_rows.audit_entry(shown, number)
    monkeypatch.setattr(query, "MAX_EXPORTED", 2)

    answer = alice.get("/changes.ndjson?q=orders")

    assert answer["Link"] == '</changes.ndjson?q=orders&below=2>; rel="next"'


def test_a_file_is_of_no_other_cluster_than_the_one_that_was_named(alice: Client) -> None:
    cluster_rows.audit_entry(cluster_rows.cluster(), 1)

    for form in ("csv", "ndjson"):
        answer = alice.get(f"/changes.{form}?cluster=gone")
        assert answer.status_code == 404
        assert "Content-Disposition" not in answer
