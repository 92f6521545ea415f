"""The page of tokens: one's own, everybody's, a new one shown once, and its end."""

import html
import re
from typing import Protocol

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from gateway.access import models, selectors, token_selectors, token_text
from gateway.access.grants import Resource
from gateway.access.operations import Kind, Operation
from gateway.access.token_selectors import TokenState
from tests.builders import tokens, users

URL = reverse("console:tokens")
NEW = reverse("console:new-token")


class Answer(Protocol):
    @property
    def content(self) -> bytes: ...


def text_of(answer: Answer) -> str:
    return html.unescape(answer.content.decode())


def revoking(name: str) -> str:
    return reverse("console:revoke-token", args=[tokens.number_of(name)])


def test_a_page_without_tokens_says_what_they_are_for(olga: Client) -> None:
    assert "No tokens yet" in text_of(olga.get(URL))


def test_a_user_sees_their_own_tokens_and_an_admin_everybodys(olga: Client, alice: Client) -> None:
    tokens.token("of-olga", owner=User.objects.get(username="olga"))
    tokens.token("of-host")

    assert "read orders.*" in text_of(olga.get(URL))
    assert "of-host" not in text_of(olga.get(URL))
    assert "of-olga" in text_of(olga.get(URL))
    page = text_of(alice.get(URL))
    assert "of-olga" in page
    assert "of-host" in page


def test_a_new_token_is_shown_once_and_does_what_was_chosen(olga: Client) -> None:
    answer = olga.post(NEW, {"name": "app", "cluster": "*", "read": "orders.* x", "life": "30"})

    (shown,) = re.findall(r"samsa_[\w-]{48}", answer.content.decode())
    assert answer["Cache-Control"] == "no-store"
    known = token_selectors.by_digest(token_text.digest(shown))
    assert known is not None
    assert known.expires_at is not None
    orders = Resource(kind=Kind.TOPIC, cluster="c", name="orders.eu")
    assert known.rights.allows(Operation.READ_PAYLOADS, orders)
    assert not known.rights.allows(Operation.PRODUCE, orders)
    assert shown not in olga.get(URL).content.decode()


def test_a_viewers_token_does_no_more_than_the_viewer(victor: Client) -> None:
    answer = victor.post(NEW, {"name": "app", "cluster": "*", "admin": "on", "life": "0"})

    (shown,) = re.findall(r"samsa_[\w-]{48}", answer.content.decode())
    known = token_selectors.by_digest(token_text.digest(shown))
    assert known is not None
    assert known.rights.allows_somewhere(Operation.VIEW)
    assert not known.rights.allows_somewhere(Operation.PRODUCE)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"name": "app"}, "needs at least one right"),
        ({"name": "a b", "read": "x"}, "is not a token name"),
        ({"name": "<script>", "read": "x"}, "is not a token name"),
        ({"name": "app", "read": "a*b"}, "is not a pattern"),
        ({"name": "app", "read": "x " * 21}, "21 names are given"),
        ({"name": "app", "read": "x", "life": "7"}, "7 is not one"),
    ],
)
def test_what_cannot_be_made_is_told_and_kept_in_the_form(
    olga: Client, given: dict[str, str], said: str
) -> None:
    answer = olga.post(NEW, {"cluster": "*", "life": "30", **given})

    assert answer.status_code == 400
    assert said in text_of(answer)
    assert "<script>" not in answer.content.decode().replace("<script defer", "")
    assert not models.Token.objects.exists()


def test_a_token_is_revoked_after_a_question(olga: Client) -> None:
    tokens.token("app", owner=User.objects.get(username="olga"))

    assert "This cannot be undone" in text_of(olga.get(revoking("app")))
    answer = olga.post(revoking("app"), follow=True)

    assert "app is revoked" in text_of(answer)
    (row,) = token_selectors.tokens()
    assert row.state is TokenState.REVOKED


def test_nobody_finds_the_token_of_somebody_else(olga: Client, alice: Client) -> None:
    tokens.token("app")

    assert olga.get(revoking("app")).status_code == 404
    assert olga.post(revoking("app")).status_code == 404
    assert alice.post(revoking("app")).status_code == 302


def test_a_form_of_another_site_makes_and_revokes_nothing() -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(users.user("alice"))
    tokens.token("app")

    assert strict.post(NEW, {"name": "b", "cluster": "*", "admin": "on"}).status_code == 403
    assert strict.post(revoking("app")).status_code == 403
    assert [row.state for row in token_selectors.tokens()] == [TokenState.VALID]


def test_who_is_not_signed_in_is_led_to_the_login(client: Client) -> None:
    assert client.get(URL)["Location"].startswith("/login")


def test_the_owner_of_a_new_token_is_who_asked(olga: Client) -> None:
    olga.post(NEW, {"name": "app", "cluster": "*", "read": "x", "life": "30"})

    (row,) = token_selectors.tokens()
    assert (row.owner, row.created_by) == ("olga", "olga")
    assert selectors.rights_of_user(User.objects.get(username="olga").pk).grants
