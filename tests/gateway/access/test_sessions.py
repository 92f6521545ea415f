"""When sessions end, what keeps them alive, and how seldom that is written."""

from pathlib import Path

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from gateway.access.models import Session
from gateway.access.sessions import MAX_PER_USER, POLL_HEADER, SessionStore
from tests.builders import users
from tests.builders.users import PASSWORD
from tests.gateway.access.conftest import Clock

pytestmark = pytest.mark.usefixtures("database")
ROOT = Path(__file__).parents[3]
POLLS = {POLL_HEADER: "1"}


@pytest.fixture
def alice(clock: Clock) -> Client:
    """A browser in which alice has just signed in."""
    users.user("alice")
    browser = Client(headers={"user-agent": "Mozilla/5.0 (X11; Linux) Firefox/140.0"})
    sign_in(browser)
    return browser


def sign_in(browser: Client) -> None:
    answer = browser.post("/login", {"username": "alice", "password": PASSWORD})
    assert answer.status_code == 302


def is_in(browser: Client, **headers: str) -> bool:
    return browser.get("/account", headers=headers).status_code == 200


def key_of(browser: Client) -> str:
    return browser.cookies[settings.SESSION_COOKIE_NAME].value


def test_a_session_ends_after_half_an_hour_without_activity(alice: Client, clock: Clock) -> None:
    clock.pass_(minutes=29)
    before = is_in(alice)
    clock.pass_(minutes=31)

    assert before
    assert not is_in(alice)


def test_polling_is_no_activity(alice: Client, clock: Clock) -> None:
    polled = []
    for _ in range(7):
        clock.pass_(minutes=5)
        polled.append(is_in(alice, **POLLS))

    assert polled == [*[True] * 5, False, False]


def test_activity_keeps_a_session_for_twelve_hours_and_no_longer(
    alice: Client, clock: Clock
) -> None:
    stayed = []
    for _ in range(26):
        clock.pass_(minutes=29)
        stayed.append(is_in(alice))

    # 24 times 29 minutes are 11 hours and 36 minutes.
    assert stayed == [*[True] * 24, False, False]


def test_activity_is_written_once_a_minute(alice: Client, clock: Clock) -> None:
    def writes() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert is_in(alice)
        return sum(not query["sql"].startswith("SELECT") for query in captured)

    at_once = writes()
    clock.pass_(seconds=59)
    within = writes()
    clock.pass_(seconds=1)
    after = writes()
    again = writes()

    assert (at_once, within, after, again) == (0, 0, 1, 0)


def test_signing_in_gives_another_key_and_takes_nothing_along(clock: Clock) -> None:
    users.user("alice")
    browser = Client()
    planted = browser.session
    planted["planted"] = "by somebody else"
    planted.save()
    before = planted.session_key

    sign_in(browser)

    assert key_of(browser) != before
    assert not Session.objects.filter(session_key=before).exists()
    assert "planted" not in browser.session


def test_a_key_that_the_server_did_not_make_is_not_taken(clock: Clock) -> None:
    users.user("alice")
    browser = Client()
    made_up = "a" * 32
    browser.cookies[settings.SESSION_COOKIE_NAME] = made_up

    sign_in(browser)

    assert not Session.objects.filter(session_key=made_up).exists()


def test_the_twelve_hours_begin_at_the_sign_in(clock: Clock) -> None:
    users.user("alice")
    browser = Client()
    browser.session.save()
    clock.pass_(minutes=20)

    sign_in(browser)

    assert Session.objects.get(user__isnull=False).started_at == clock.now


def test_a_session_says_where_it_comes_from(alice: Client) -> None:
    row = Session.objects.get()

    assert row.user == User.objects.get(username="alice")
    assert row.address == "127.0.0.1"
    assert "Firefox" in row.agent


def test_another_password_gives_the_session_another_key_and_no_more_time(
    alice: Client, clock: Clock
) -> None:
    other = Client()
    sign_in(other)
    before, began_at = key_of(alice), clock.now
    clock.pass_(minutes=10)

    answer = alice.post(
        "/password", {"former": PASSWORD, "new": "rather different", "again": "rather different"}
    )

    assert answer.status_code == 302
    row = Session.objects.get()
    assert key_of(alice) == row.session_key != before
    assert row.started_at == began_at
    assert is_in(alice)
    assert not is_in(other)


def test_sessions_that_are_over_go_at_the_next_sign_in(alice: Client, clock: Clock) -> None:
    clock.pass_(hours=1)

    sign_in(Client())

    assert Session.objects.count() == 1


@pytest.mark.slow
def test_one_user_has_so_many_sessions_and_the_oldest_ends(alice: Client, clock: Clock) -> None:
    for _ in range(MAX_PER_USER):
        clock.pass_(seconds=1)
        sign_in(Client())

    assert Session.objects.count() == MAX_PER_USER
    assert not is_in(alice)


def test_a_signed_out_session_is_gone_from_the_table(alice: Client) -> None:
    alice.post("/logout")

    assert not Session.objects.exists()


def test_the_script_that_renews_a_page_says_that_it_polls() -> None:
    script = Path(ROOT, "console", "static", "console", "renewal.js").read_text(encoding="utf-8")

    assert f'"{POLL_HEADER}": "1"' in script


def test_an_asynchronous_view_keeps_the_end_of_a_session(clock: Clock) -> None:
    store = SessionStore()
    store["_auth_user_id"] = str(users.user("alice").pk)
    store.save()
    began_at = clock.now
    clock.pass_(minutes=10)

    async def change() -> SessionStore:
        found = SessionStore(store.session_key)
        await found.aset("seen", "yes")
        await found.acycle_key()
        await found.asave()
        return found

    changed = async_to_sync(change)()
    row = Session.objects.get()
    async_to_sync(changed.aflush)()

    assert row.session_key != store.session_key
    assert row.started_at == began_at
    assert row.active_at == clock.now
    assert not Session.objects.exists()
