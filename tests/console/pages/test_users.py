"""The Users page: who there is, and changes of users and rights."""

import logging
import re

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client

from gateway.access import models, selectors, token_selectors
from gateway.access.operations import Kind, Operation, Role
from gateway.access.token_selectors import TokenState
from tests.builders import tokens, users
from tests.builders.users import PASSWORD
from tests.console import cluster_rows


@pytest.fixture
def bob() -> User:
    return users.user("bob", role=Role.VIEWER)


def text(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def test_users_stand_with_state_rights_and_sessions(alice: Client, bob: User) -> None:
    users.grant(bob, Operation.READ_PAYLOADS, kind=Kind.TOPIC, pattern="orders.*")
    users.user("carol", role=None)
    User.objects.filter(pk=users.user("dora", role=Role.OPERATOR).pk).update(is_active=False)
    users.user("emil", must_change=True)

    page = text(alice, "/users")

    for shown in (
        "5 users",
        "read payloads: topics orders.*",
        "Without rights",
        "Disabled",
        "Must change password",
        "never",
    ):
        assert shown in page
    assert "alice</a> <small>you</small>" in page


def test_a_filter_that_finds_nobody_says_so(alice: Client) -> None:
    page = text(alice, "/users?q=<b>")

    assert "No user has “&lt;b&gt;” in the name" in page


def test_a_control_plane_that_is_away_is_a_failure_and_never_an_empty_list(alice: Client) -> None:
    with connections["cluster"].cursor() as cursor:
        cursor.execute("ALTER TABLE controlplane_cluster RENAME TO elsewhere")

    answer = alice.get("/users")

    assert answer.status_code == 503
    assert "The database does not answer" in answer.content.decode()


def test_users_read_before_are_shown_as_stale(alice: Client, bob: User) -> None:
    text(alice, "/users")
    with connections["cluster"].cursor() as cursor:
        cursor.execute("ALTER TABLE controlplane_cluster RENAME TO elsewhere")

    page = text(alice, "/users")

    assert "bob" in page
    assert 'class="st stale"' in page


def test_a_new_user_gets_a_password_that_is_shown_once(
    alice: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        answer = alice.post(
            "/users/new",
            {"name": "carol", "what": "role:viewer", "cluster": "*", "kind": "", "pattern": ""},
        )

    page = answer.content.decode()
    found = re.search(r'id="password">([\w-]{24})<', page)
    assert answer.status_code == 200
    assert answer["Cache-Control"] == "no-store"
    assert found
    assert User.objects.get(username="carol").check_password(found[1])
    assert found[1] not in text(alice, "/users") + caplog.text
    signed_in = Client().post("/login", {"username": "carol", "password": found[1]}, follow=True)
    assert signed_in.redirect_chain[-1][0] == "/password"


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"name": "alice"}, "there is a user “alice” already"),
        ({"name": ""}, "This field is required"),
        ({"name": "carol", "password": "short"}, "at least 12 characters"),
        ({"name": "carol", "what": "role:king"}, "not one of the available choices"),
        ({"name": "carol", "kind": "topic", "pattern": "a*b"}, "is not a pattern"),
        ({"name": "carol", "kind": "topic", "pattern": "a\0b"}, "Null characters"),
    ],
)
def test_a_user_that_cannot_be_is_refused_with_what_was_typed_in_place(
    alice: Client, sent: dict[str, str], said: str
) -> None:
    answer = alice.post("/users/new", {"what": "role:operator", "cluster": "*", **sent})

    page = answer.content.decode()
    assert answer.status_code == 400
    assert said in page
    assert f'value="{sent.get("password")}"' not in page
    assert User.objects.count() == 1


def test_a_right_is_given_and_taken_away_on_the_page_of_the_user(alice: Client, bob: User) -> None:
    shown = cluster_rows.cluster()
    answer = alice.post(
        f"/users/{bob.pk}/grants",
        {
            "what": "operation:export",
            "cluster": shown.cluster_id,
            "kind": "topic",
            "pattern": "orders.*",
        },
        follow=True,
    )
    row = models.Grant.objects.get(user=bob, operation="export")

    page = answer.content.decode()
    assert "The right is granted" in page
    assert "orders-prod" in page
    assert "topics: orders.*" in page
    taken = alice.post(f"/users/{bob.pk}/grants/{row.pk}/remove", follow=True)
    assert "revoked" in taken.content.decode()
    assert not models.Grant.objects.filter(pk=row.pk).exists()


def test_a_right_that_is_refused_is_told_on_the_page(alice: Client, bob: User) -> None:
    again = {"what": "role:viewer", "cluster": "*", "kind": "", "pattern": ""}

    answer = alice.post(f"/users/{bob.pk}/grants", again)
    gone = alice.post(f"/users/{bob.pk}/grants/999/remove")

    assert (answer.status_code, gone.status_code) == (400, 400)
    assert "bob has this right already" in answer.content.decode()
    assert "no longer has this right" in gone.content.decode()


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("disable", "bob is disabled."),
        ("enable", "bob is enabled."),
        ("end-sessions", "bob is signed out everywhere."),
    ],
)
def test_a_change_is_asked_about_and_then_done(
    alice: Client, bob: User, action: str, said: str
) -> None:
    asked = text(alice, f"/users/{bob.pk}/{action}")
    done = alice.post(f"/users/{bob.pk}/{action}", follow=True)

    assert "bob?" in asked
    assert said in done.content.decode()


def test_a_user_is_deleted_once_the_name_is_typed(alice: Client, bob: User) -> None:
    wrong = alice.post(f"/users/{bob.pk}/delete", {"typed": "Bob"})
    still = User.objects.filter(pk=bob.pk).exists()
    right = alice.post(f"/users/{bob.pk}/delete", {"typed": "bob"}, follow=True)

    assert wrong.status_code == 400
    assert "is not the name of the user" in wrong.content.decode()
    assert still
    assert not User.objects.filter(pk=bob.pk).exists()
    assert "bob is deleted." in right.content.decode()


def test_a_reset_password_is_shown_once_and_opens_the_page_that_changes_it(
    alice: Client, bob: User
) -> None:
    answer = alice.post(f"/users/{bob.pk}/reset-password")

    found = re.search(r'id="password">([\w-]{24})<', answer.content.decode())
    bob.refresh_from_db()
    assert found
    assert bob.check_password(found[1])
    assert selectors.must_change_password(bob.pk)


def test_a_reset_names_the_tokens_that_work_on_and_revokes_them_on_demand(
    alice: Client, bob: User
) -> None:
    tokens.token("app", owner=bob)
    tokens.token("ended", owner=bob)
    tokens.revoke("ended")
    page = f"/users/{bob.pk}/reset-password"

    asked = text(alice, page)
    alice.post(page)
    kept = token_selectors.tokens(owner_id=bob.pk)
    answer = alice.post(page, {"revoke-tokens": "1"})

    assert "app</span>" in asked
    assert "ended" not in asked
    assert [row.state for row in kept if row.name == "app"] == [TokenState.VALID]
    assert "1 API token revoked." in answer.content.decode()
    states = {row.state for row in token_selectors.tokens(owner_id=bob.pk)}
    assert states == {TokenState.REVOKED}


def test_what_a_rule_forbids_is_told_where_it_was_asked(alice: Client) -> None:
    own = User.objects.get(username="alice").pk

    for action in ("disable", "reset-password"):
        answer = alice.post(f"/users/{own}/{action}")
        assert answer.status_code == 400
        assert "your own" in answer.content.decode()


def test_sessions_are_shown_without_their_keys(alice: Client, bob: User) -> None:
    browser = Client(headers={"user-agent": "Mozilla/5.0 (Windows NT 10.0) Chrome/140.0 Edg/140"})
    browser.post("/login", {"username": "bob", "password": PASSWORD})

    page = text(alice, f"/users/{bob.pk}")

    assert "Edge on Windows" in page
    assert "127.0.0.1" in page
    for row in models.Session.objects.all():
        assert row.session_key not in page


def test_no_page_shows_a_hash_or_a_key(alice: Client, bob: User) -> None:
    for path in ("/users", f"/users/{bob.pk}", "/users/new", "/account", f"/users/{bob.pk}/delete"):
        page = text(alice, path)
        for user in User.objects.all():
            assert user.password not in page
        for row in models.Session.objects.all():
            assert row.session_key not in page


@pytest.mark.parametrize("path", ["/users/999", "/users/999/delete", "/users/1/fly"])
def test_what_is_not_there_is_not_found(alice: Client, path: str) -> None:
    assert alice.get(path).status_code == 404


def test_a_name_stays_text(alice: Client) -> None:
    users.user("<i>eve</i>", role=Role.VIEWER)

    assert "<i>eve" not in text(alice, "/users")


def test_only_who_manages_users_is_offered_the_page(alice: Client, victor: Client) -> None:
    assert 'href="/users"' in text(alice, "/")
    assert 'href="/users"' not in text(victor, "/")
