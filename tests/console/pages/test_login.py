"""Signing in and out."""

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.auth.models import User
from django.test import Client

from gateway.access.login_limits import MAX_PER_PAIR
from gateway.access.turns import TooBusy
from tests.builders import users
from tests.builders.users import PASSWORD

pytestmark = pytest.mark.slow


@pytest.fixture
def account() -> User:
    return users.user("alice")


def sign_in(client: Client, password: str, **more: str) -> int:
    return client.post("/login", {"username": "alice", "password": password, **more}).status_code


def test_the_right_password_leads_to_the_overview(client: Client, account: User) -> None:
    answer = client.post("/login", {"username": "alice", "password": PASSWORD})

    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert client.get("/").status_code == 200


def test_after_signing_in_one_is_where_one_wanted_to_be(client: Client, account: User) -> None:
    sent_away = client.get("/topics?q=a")
    answer = client.post(
        sent_away["Location"],
        {"username": "alice", "password": PASSWORD, "next": "/topics?q=a"},
    )

    assert answer["Location"] == "/topics?q=a"


def test_nobody_is_led_to_another_site(client: Client, account: User) -> None:
    answer = client.post(
        "/login?next=//evil.example/",
        {"username": "alice", "password": PASSWORD, "next": "//evil.example/"},
    )

    assert answer["Location"] == "/"


def test_a_wrong_password_says_no_more_than_that(client: Client, account: User) -> None:
    wrong = client.post("/login", {"username": "alice", "password": "wrong"})
    unknown = client.post("/login", {"username": "mallory", "password": "wrong"})

    assert wrong.status_code == unknown.status_code == 200
    assert "Wrong user name or password" in wrong.content.decode()
    assert "Wrong user name or password" in unknown.content.decode()


def test_guessing_ends_with_a_wait_that_is_named(client: Client, account: User) -> None:
    codes = [sign_in(client, "wrong") for _ in range(MAX_PER_PAIR)]
    limited = client.post("/login", {"username": "alice", "password": PASSWORD})

    assert set(codes) == {200}
    assert limited.status_code == 429
    assert 0 < int(limited["Retry-After"]) <= 15 * 60 + 1
    assert "Try again in 15 minutes" in limited.content.decode()


def test_an_attacker_does_not_keep_the_admin_out(client: Client, account: User) -> None:
    for number in range(3 * MAX_PER_PAIR):
        client.post("/login", {"username": f"made-up-{number}", "password": "wrong"})

    assert sign_in(client, PASSWORD) == 302


def test_a_login_beyond_the_queue_is_told_to_come_later_and_does_not_count(
    client: Client, account: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> bool:
        raise TooBusy("22 passwords are being checked already")

    with monkeypatch.context() as busy:
        busy.setattr(MD5PasswordHasher, "verify", refuse)
        answers = [
            client.post("/login", {"username": "alice", "password": PASSWORD})
            for _ in range(MAX_PER_PAIR + 1)
        ]

    assert {(answer.status_code, answer["Retry-After"]) for answer in answers} == {(429, "5")}
    assert "Try again in 5 seconds" in answers[0].content.decode()
    assert sign_in(client, PASSWORD) == 302


def test_somebody_who_is_signed_in_stays_so(client: Client, account: User) -> None:
    other = Client()
    sign_in(client, PASSWORD)

    for _ in range(MAX_PER_PAIR + 1):
        sign_in(other, "wrong")

    assert client.get("/").status_code == 200


def test_success_forgives_the_attempts_before_it(client: Client, account: User) -> None:
    for _ in range(MAX_PER_PAIR - 1):
        sign_in(client, "wrong")
    sign_in(client, PASSWORD)

    assert sign_in(Client(), "wrong") == 200


def test_signing_out_ends_the_session_and_needs_a_form(client: Client, account: User) -> None:
    sign_in(client, PASSWORD)

    by_link = client.get("/logout")
    by_form = client.post("/logout")

    assert (by_link.status_code, by_link["Location"]) == (302, "/")
    assert (by_form.status_code, by_form["Location"]) == (302, "/login")
    assert client.get("/").status_code == 302


def test_a_form_of_another_site_is_refused(account: User) -> None:
    strict = Client(enforce_csrf_checks=True)

    answer = strict.post("/login", {"username": "alice", "password": PASSWORD})

    assert answer.status_code == 403
    assert "This is not allowed" in answer.content.decode()


@pytest.mark.parametrize("wanted", ["/login", "/login?next=/login"])
def test_somebody_who_is_signed_in_is_not_led_in_a_circle(
    client: Client, account: User, wanted: str
) -> None:
    sign_in(client, PASSWORD)

    answer = client.get("/login", {"next": wanted})

    assert (answer.status_code, answer["Location"]) == (302, "/")
