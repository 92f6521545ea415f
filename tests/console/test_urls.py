"""What holds for every address: generated from their table, so that none is forgotten."""

import logging
import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlencode

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from brokers.controlplane import models
from gateway.access.models import Session
from gateway.middleware import DATA_IMAGES, HEADERS, POLICY
from tests.builders import users
from tests.builders.addresses import addresses
from tests.builders.live import Told
from tests.console import cluster_rows
from tests.console.hostile_rows import HOSTILE, make_hostile
from tests.console.markup import Markup, is_local
from tests.database import SESSION_KEY

CHANGING: Final = ("POST", "PUT", "PATCH", "DELETE")
ELSEWHERE: Final = ("//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:x()")
CLUSTER_SECRET: Final = b"\xc3\x28 the cluster's very secret \xff"


def asked(user: Client) -> Iterator[tuple[str, Any]]:
    """Ask for every address, as a user who follows links does."""
    user.raise_request_exception = False
    for address in addresses():
        path = f"{address.path}?cluster={cluster_rows.CLUSTER_ID}"
        yield path, user.get(path)


def body_of(answer: Any) -> str:
    body = b"".join(answer) if answer.streaming else answer.content
    return body.decode(errors="replace")


def test_every_address_opens_and_says_something(alice: Client, told: Told) -> None:
    make_hostile(told)

    for path, answer in asked(alice):
        assert answer.status_code not in {405, 500}, path
        assert answer.get("Location") or body_of(answer).strip(), path


def test_no_address_takes_a_change_that_another_site_sends(alice: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = alice.cookies

    for address in addresses():
        for method in CHANGING:
            answer = strict.generic(method, address.path)
            assert answer.status_code == 403, (method, address.path)


def test_a_token_is_of_no_use_to_another_site(alice: Client) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = alice.cookies
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', body_of(strict.get("/account")))
    assert token is not None

    form = {"csrfmiddlewaretoken": token[1], "theme": "dark"}
    of_ours = strict.post("/preferences", form, headers={"origin": "http://testserver"})
    of_another = strict.post("/preferences", form, headers={"origin": "http://evil.example"})

    assert (of_ours.status_code, of_another.status_code) == (302, 403)


def test_every_answer_forbids_framing_sniffing_and_foreign_scripts(
    alice: Client, told: Told
) -> None:
    make_hostile(told)

    answers = [*asked(alice), *asked(Client()), ("/nowhere", alice.get("/nowhere"))]

    assert len(answers) >= 40
    for path, answer in answers:
        # One page draws with pictures that its own style sheet holds.
        is_api = path.startswith("/api?") and answer.status_code == 200
        policy = DATA_IMAGES if is_api else POLICY
        for name, value in (HEADERS | {"Content-Security-Policy": policy}).items():
            assert answer.get(name) == value, (path, name)
        assert answer["X-Frame-Options"] == "DENY"
        assert "unsafe" not in answer["Content-Security-Policy"], path


def test_nothing_that_a_stranger_chose_becomes_markup(alice: Client, told: Told) -> None:
    make_hostile(told)
    User.objects.filter(username="alice").update(username=HOSTILE)
    shown = []

    for path, answer in asked(alice):
        if not answer.get("Content-Type", "").startswith("text/html"):
            # What is no page is not taken for one either.
            assert answer["X-Content-Type-Options"] == "nosniff", path
            continue
        page = Markup(body_of(answer))
        assert page.found == [], path
        shown += [path] if any("alert(1)" in text for text in page.texts) else []

    # As the text that it is.
    assert len(shown) >= 8


def test_what_markup_finds_is_what_would_run() -> None:
    page = Markup(
        f"<p>{HOSTILE}<a href='javascript:x()'>x</a><b style='x'></b><script>x</script>"
        "<script src='/static/x.js'></script><a href='/ok'></a><a href='//evil.example'></a>"
    )

    assert len(page.found) == 6


def test_a_search_for_markup_stays_text(alice: Client, told: Told) -> None:
    make_hostile(told)
    names = ("q", "name", "cluster", "page", "sort", "tab", "period", "outcome", "number", "since")
    query = dict.fromkeys(names, HOSTILE)
    alice.raise_request_exception = False

    for address in addresses():
        answer = alice.get(address.path, query)
        assert answer.status_code < 500, address.path
        if answer.get("Content-Type", "").startswith("text/html"):
            assert Markup(body_of(answer)).found == [], address.path


@pytest.mark.parametrize("way", ["GET", "POST"])
def test_no_address_leads_to_another_site(way: str, alice: Client, told: Told) -> None:
    make_hostile(told)
    alice.raise_request_exception = False
    named = ("next", "return", "return_to", "back", "url", "to", "redirect")

    for address in addresses():
        for wanted in ELSEWHERE:
            fields = dict.fromkeys(named, wanted)
            path = f"{address.path}?{urlencode(fields)}"
            answer = alice.get(path) if way == "GET" else alice.post(path, fields)
            assert is_local(answer.get("Location", "/")), (path, answer["Location"])
        # Signing out by the way is no failure.
        alice.force_login(User.objects.get(username="alice"))


def test_signing_in_gives_a_session_that_nobody_chose() -> None:
    users.user("alice")
    browser = Client()
    browser.cookies[settings.SESSION_COOKIE_NAME] = planted = "a" * 32

    browser.post("/login", {"username": "alice", "password": users.PASSWORD})

    key = browser.cookies[settings.SESSION_COOKIE_NAME].value
    assert key != planted
    assert list(Session.objects.values_list("session_key", flat=True)) == [key]


def test_a_session_from_before_signing_in_is_worth_nothing_after() -> None:
    users.user("alice")
    users.user("mallory")
    browser = Client()
    browser.force_login(User.objects.get(username="mallory"))
    former = browser.cookies[settings.SESSION_COOKIE_NAME].value
    browser.post("/logout")

    browser.post("/login", {"username": "alice", "password": users.PASSWORD})
    thief = Client()
    thief.cookies[settings.SESSION_COOKIE_NAME] = former

    assert browser.cookies[settings.SESSION_COOKIE_NAME].value != former
    assert thief.get("/").status_code == 302


def test_cookies_are_out_of_reach_of_scripts_and_other_sites(client: Client) -> None:
    users.user("alice")
    client.get("/login")
    client.post("/login", {"username": "alice", "password": users.PASSWORD})

    session = client.cookies[settings.SESSION_COOKIE_NAME]
    token = client.cookies[settings.CSRF_COOKIE_NAME]

    assert session["httponly"]
    assert {session["samesite"], token["samesite"]} <= {"Lax", "Strict"}


def test_no_page_and_no_log_tells_a_secret(
    alice: Client, told: Told, caplog: pytest.LogCaptureFixture
) -> None:
    make_hostile(told)
    models.ClusterSecret.objects.create(
        cluster=models.Cluster.objects.get(),
        purpose="inspection",
        key_id=1,
        value=CLUSTER_SECRET,
        created_at_ms=1,
    )
    secrets = {
        *Session.objects.values_list("session_key", flat=True),
        *User.objects.values_list("password", flat=True),
        *(SESSION_KEY, users.PASSWORD, "the cluster's very secret", CLUSTER_SECRET.hex()),
    }

    with caplog.at_level(logging.DEBUG):
        pages = [(path, body_of(answer)) for path, answer in asked(alice)]

    for path, page in [*pages, ("the log", caplog.text)]:
        assert [secret for secret in secrets if secret in page] == [], path
