"""Changing one's own password, by choice or because an admin has set it."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from gateway.access import selectors
from gateway.access.login_limits import MAX_PER_PAIR
from gateway.access.operations import Role
from tests.builders import users
from tests.builders.users import PASSWORD

NEW = "quite another one"


def change(client: Client, *, former: str = PASSWORD, new: str = NEW, again: str = NEW) -> str:
    answer = client.post("/password", {"former": former, "new": new, "again": again})
    return answer.content.decode() if answer.status_code == 400 else f"{answer.status_code}"


def test_a_password_that_was_given_is_changed_and_opens_the_console(client: Client) -> None:
    users.user("carol", role=Role.VIEWER, must_change=True)
    led = client.post("/login", {"username": "carol", "password": PASSWORD}, follow=True)
    told = led.content.decode()

    changed = change(client)

    assert "is a first one, which others may know" in told
    assert changed == "302"
    assert client.get("/").status_code == 200
    assert not selectors.must_change_password(User.objects.get().pk)
    assert Client().post("/login", {"username": "carol", "password": NEW}).status_code == 302


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"former": "wrong"}, "This is not your present password"),
        ({"again": "something else"}, "The two new passwords differ"),
        ({"new": PASSWORD, "again": PASSWORD}, "This is the password that you have"),
        ({"new": "short", "again": "short"}, "at least 12 characters"),
        ({"new": "password1234", "again": "password1234"}, "too common"),
    ],
)
def test_a_password_that_will_not_do_is_refused_with_the_reason(
    alice: Client, sent: dict[str, str], said: str
) -> None:
    page = change(alice, **sent)

    assert said in page
    assert User.objects.get().check_password(PASSWORD)
    assert not any(f'value="{typed}"' in page for typed in sent.values())


def test_guessing_the_present_password_ends_with_a_wait(alice: Client) -> None:
    for _ in range(MAX_PER_PAIR):
        change(alice, former="wrong")

    assert change(alice) == "429"


def test_a_right_password_forgives_wrong_ones_even_with_a_bad_new_one(alice: Client) -> None:
    for _ in range(MAX_PER_PAIR - 1):
        change(alice, former="wrong")
    change(alice, new="short", again="short")

    assert "not your present" in change(alice, former="wrong")
    assert change(alice) == "302"


def test_somebody_without_rights_is_led_to_the_account_and_not_to_a_refusal(
    client: Client,
) -> None:
    client.force_login(users.user("carol", role=None, must_change=True))

    answer = client.post("/password", {"former": PASSWORD, "new": NEW, "again": NEW}, follow=True)

    assert answer.status_code == 200
    assert "You have no rights yet" in answer.content.decode()
