"""A form that is sent after the end of a session, or before another sign-in, is not lost."""

import re
from html import unescape
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from console import kept_forms
from tests.builders import users
from tests.builders.users import PASSWORD
from tests.console import cluster_rows

WHERE = f"?cluster={cluster_rows.CLUSTER_ID}"
PRODUCE = f"/topics/orders/produce{WHERE}"
TYPED = {"key_kind": "text", "key": "k-1", "value_kind": "JSON", "value": '{"typed": "an hour"}'}


@pytest.fixture(autouse=True)
def _orders() -> None:
    cluster_rows.topic(cluster_rows.cluster(), "orders")


def field(page: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]+)"', page)
    assert found is not None, f"no {name} in {page[:2000]}"
    return unescape(found[1])


def sent_too_late(browser: Client, path: str, typed: dict[str, Any]) -> Any:
    """Open a form, lose the session, and send what was typed."""
    by = field(browser.get(path).content.decode(), "typed_by")
    browser.logout()
    return browser.post(path, {**typed, "typed_by": by})


def sign_in(browser: Client, sheet: Any, name: str) -> Any:
    page = sheet.content.decode()
    hidden = {each: field(page, each) for each in ("kept", "next")}
    return browser.post("/login", {"username": name, "password": PASSWORD, **hidden})


@pytest.mark.parametrize(
    ("path", "typed", "shown"),
    [
        (PRODUCE, TYPED, "{&quot;typed&quot;: &quot;an hour&quot;}"),
        (f"/topics/+new{WHERE}", {"name": "a-new-one", "partitions": "7"}, 'value="a-new-one"'),
        (f"/topics/orders/edit{WHERE}", {"value-retention.ms": "4711"}, 'value="4711"'),
        (f"/topics/orders/partitions{WHERE}", {"count": "12"}, 'value="12"'),
        (
            f"/group/reset{WHERE}&name=g",
            {"mode": "offset", "offset": "815", "scope": "all"},
            'value="815"',
        ),
        (
            f"/connectors/+new/samsa.datagen{WHERE}",
            {"key-topic": "into-this-one", "cluster": cluster_rows.CLUSTER_ID},
            "into-this-one",
        ),
        ("/tokens/new", {"name": "of-a-program", "life": "30"}, 'value="of-a-program"'),
    ],
    ids=["produce", "topic", "configs", "partitions", "offsets", "connector", "token"],
)
def test_a_form_sent_after_the_session_is_back_after_signing_in_and_does_nothing(
    path: str, typed: dict[str, str], shown: str, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = sent_too_late(alice, path, typed)
    signed_in = sign_in(alice, sheet, "alice")
    page = alice.get(signed_in["Location"])
    again = alice.get(signed_in["Location"])

    assert sheet.status_code == 403
    assert "Your input is kept" in sheet.content.decode()
    assert "an hour" not in sheet.content.decode()
    assert (signed_in.status_code, signed_in["Location"]) == (302, path)
    assert page.status_code == 200
    assert "Not done yet" in page.content.decode()
    assert shown in page.content.decode()
    # Once, and not at every look.
    assert "Not done yet" not in again.content.decode()


def test_what_was_typed_returns_to_no_other_user(alice: Client) -> None:
    users.user("mallory")
    sheet = sent_too_late(alice, PRODUCE, TYPED)

    page = alice.get(sign_in(alice, sheet, "mallory")["Location"])

    assert "an hour" not in page.content.decode()
    assert kept_forms.SESSION_NAME not in alice.session


@pytest.mark.parametrize("by", ["", "1", "1:forged", "x" * 5000])
def test_a_form_that_no_page_of_ours_wrote_is_not_kept(client: Client, by: str) -> None:
    answer = client.post(PRODUCE, {**TYPED, "typed_by": by})

    assert answer.status_code == 302
    assert answer["Location"].startswith("/login?next=/topics/orders/produce")


@pytest.mark.parametrize("size", [kept_forms.MAX_BYTES + 1, settings.STRANGERS_BODY_BYTES])
def test_too_much_is_not_kept_and_the_page_says_so(alice: Client, size: int) -> None:
    # Encrypted, the smaller form does not fit into that of the sign-in.
    sheet = sent_too_late(alice, PRODUCE, {**TYPED, "value": "x" * size})

    page = sheet.content.decode()
    assert sheet.status_code == 413
    assert "bytes is too large to keep" in page
    assert 'name="kept"' not in page


def test_a_form_that_the_gateway_did_not_read_leads_to_the_sign_in(client: Client) -> None:
    size = settings.STRANGERS_BODY_BYTES + 1
    strict = Client(enforce_csrf_checks=True)

    for browser in (client, strict):
        sheet = browser.post("/topics/+new", "", "text/plain", CONTENT_LENGTH=str(size))

        assert sheet.status_code == 413
        assert f"Your input of {size:,} bytes is too large to keep" in sheet.content.decode()


def test_a_kept_form_fits_into_the_form_of_the_sign_in(alice: Client) -> None:
    sheet = sent_too_late(alice, PRODUCE, {**TYPED, "value": "ü" * 20_000})
    signed_in = sign_in(alice, sheet, "alice")

    assert len(field(sheet.content.decode(), "kept")) < settings.STRANGERS_BODY_BYTES
    assert signed_in["Location"] == PRODUCE


def test_a_form_is_kept_for_a_time(alice: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    sheet = sent_too_late(alice, PRODUCE, TYPED)
    monkeypatch.setattr(kept_forms, "SIGN_IN_S", -1)

    page = alice.get(sign_in(alice, sheet, "alice")["Location"])

    assert "an hour" not in page.content.decode()


def test_a_password_is_never_kept(alice: Client) -> None:
    typed = {"name": "carol", "what": "role:viewer", "cluster": "*", "password": "secret-of-carol"}

    sheet = sent_too_late(alice, "/users/new", typed)
    page = alice.get(sign_in(alice, sheet, "alice")["Location"]).content.decode()

    assert 'value="carol"' in page
    assert "secret-of-carol" not in page


def test_wrong_passwords_do_not_lose_the_form(alice: Client) -> None:
    sheet = sent_too_late(alice, PRODUCE, TYPED)
    hidden = {name: field(sheet.content.decode(), name) for name in ("kept", "next")}

    for _ in range(20):
        refused = alice.post("/login", {"username": "alice", "password": "wrong", **hidden})
        hidden = {name: field(refused.content.decode(), name) for name in ("kept", "next")}
    back = alice.post("/login", hidden)

    assert refused.status_code == 429
    assert field(back.content.decode(), "kept") == hidden["kept"]


def test_a_form_of_before_another_sign_in_is_shown_again(alice: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = alice.cookies
    by = field(strict.get(PRODUCE).content.decode(), "typed_by")
    stale = {**TYPED, "csrfmiddlewaretoken": "a" * 64}

    of_ours = strict.post(PRODUCE, {**stale, "typed_by": by})
    page = strict.get(of_ours["Location"]).content.decode()
    of_another_site = strict.post(PRODUCE, stale)

    assert (of_ours.status_code, of_ours["Location"]) == (302, PRODUCE)
    assert "an hour" in page
    assert of_another_site.status_code == 403


def test_the_state_of_a_session_has_its_user_end_and_token(alice: Client, client: Client) -> None:
    told = alice.get("/account/session", headers={"Samsa-Poll": "1"}).json()

    assert told["user"] == "alice"
    assert 29 * 60 < told["ends_s"] <= 30 * 60
    assert not told["is_limit"]
    assert told["csrf"]
    assert Client().get("/account/session")["Location"].startswith("/login")
    assert User.objects.filter(username="alice").exists()
