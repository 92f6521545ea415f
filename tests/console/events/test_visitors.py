"""Sessions are read by streams and never written."""

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from console.events import visitors
from gateway.access.models import Account, Session
from tests.builders import users


def cookies_of(client: Client) -> dict[str, str]:
    return {name: morsel.value for name, morsel in client.cookies.items()}


def session_key(client: Client) -> str:
    return cookies_of(client)[settings.SESSION_COOKIE_NAME]


def test_a_signed_in_browser_is_known_and_its_session_is_not_written(alice: Client) -> None:
    with CaptureQueriesContext(connections["default"]) as queries:
        owner = visitors.owner_of(cookies_of(alice))

    assert owner is not None
    assert (owner.user_id, owner.session_key) == (User.objects.get().pk, session_key(alice))
    assert [q["sql"] for q in queries if not q["sql"].startswith("SELECT")] == []


@pytest.mark.parametrize("key", ["", "x", "x" * 65, "x" * 32])
def test_a_cookie_that_is_no_session_is_nobodys(key: str) -> None:
    assert visitors.owner_of({settings.SESSION_COOKIE_NAME: key}) is None
    assert visitors.owner_of({}) is None


def test_a_session_ends_with_signing_out_with_a_new_password_and_with_the_account(
    client: Client,
) -> None:
    user = users.user("alice")
    client.force_login(user)
    key = session_key(client)
    assert visitors.is_valid(key)

    user.set_password("another-word-123")
    user.save()
    assert not visitors.is_valid(key)

    client.force_login(user)
    key = session_key(client)
    User.objects.update(is_active=False)
    assert not visitors.is_valid(key)

    User.objects.update(is_active=True)
    assert visitors.is_valid(key)
    Account.objects.update(must_change_password=True)
    assert not visitors.is_valid(key)

    Account.objects.update(must_change_password=False)
    assert visitors.is_valid(key)
    client.post("/logout")
    assert not visitors.is_valid(key)


def test_a_session_that_was_signed_with_a_former_key_is_valid_and_keeps_its_key(
    alice: Client, settings: Settings
) -> None:
    key, former = session_key(alice), str(settings.SECRET_KEY)

    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "new-" * 12, [former]

    assert visitors.is_valid(key)

    assert Session.objects.get().session_key == key
