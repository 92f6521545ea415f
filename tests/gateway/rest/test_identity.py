"""Who a call is made by, and for how long that is remembered."""

import base64
import logging
from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from gateway.access import models, token_selectors, token_services
from gateway.access.callers import Caller, CallerKind
from gateway.access.login_limits import MAX_PER_PAIR
from gateway.access.operations import Kind, Operation, Role
from gateway.access.turns import TooBusy
from gateway.rest import identity
from gateway.rest.codes import ApiError, Code
from gateway.rest.credentials import Asked
from gateway.rest.identity import KNOWN_SECONDS, STALE_SECONDS, VERIFIED_SECONDS, Identity
from tests.builders import tokens, users

pytestmark = pytest.mark.usefixtures("database")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def asked(authorization: str, *, address: str = "10.0.0.1", **headers: str) -> Asked:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Asked(method="GET", headers={"authorization": authorization, **named}, address=address)


def basic(user: str, password: str = users.PASSWORD) -> Asked:
    return asked(f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}")


def refused(found: Identity, call: Asked) -> ApiError:
    with pytest.raises(ApiError) as caught:
        found.identify(call)
    return caught.value


def test_a_token_is_a_caller_with_its_rights_and_its_use_is_noted() -> None:
    text = tokens.token()

    caller = Identity().identify(asked(f"Bearer {text}"))

    assert (caller.kind, caller.name, caller.principal) == (
        CallerKind.TOKEN,
        "app",
        "User:token.app",
    )
    assert caller.decide(Operation.READ_PAYLOADS, Kind.TOPIC, "c", "orders.eu").is_allowed
    assert not caller.decide(Operation.PRODUCE, Kind.TOPIC, "c", "orders.eu").is_allowed
    (row,) = token_selectors.tokens()
    assert row.last_address == "10.0.0.1"
    assert text not in repr(caller)


def test_a_token_that_nobody_has_is_refused() -> None:
    text = tokens.token()
    models.Token.objects.all().delete()

    error = refused(Identity(), asked(f"Bearer {text}"))

    assert (error.code, error.code.number) == (Code.NOT_AUTHENTICATED, 40101)


def test_a_call_that_shows_nothing_is_told_how() -> None:
    assert "Authorization: Bearer TOKEN" in refused(Identity(), asked("")).message


def test_a_revoked_token_is_refused_after_a_moment_and_its_streams_are_too() -> None:
    clock = Clock()
    found = Identity(monotonic=clock)
    call = asked(f"Bearer {tokens.token()}")
    caller = found.identify(call)
    tokens.revoke()

    assert found.identify(call) == caller
    clock.now += KNOWN_SECONDS
    assert "was revoked" in refused(found, call).message
    with pytest.raises(ApiError, match="was revoked"):
        found.again(caller.proof)


def test_an_expired_token_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Identity()
    call = asked(f"Bearer {tokens.token(life=timedelta(seconds=60))}")
    found.identify(call)
    later = timezone.now() + timedelta(seconds=60)
    monkeypatch.setattr(timezone, "now", lambda: later)

    assert "has expired" in refused(found, call).message


def test_a_user_of_the_console_is_known_by_the_password() -> None:
    users.user("olga", role=Role.OPERATOR)

    caller = Identity().identify(basic("olga"))

    assert (caller.kind, caller.principal) == (CallerKind.USER, "User:olga")
    assert caller.decide(Operation.PRODUCE, Kind.TOPIC, "c", "x").is_allowed


def test_a_first_password_opens_nothing_here() -> None:
    users.user("olga", must_change=True)

    assert "change it first" in refused(Identity(), basic("olga")).message


def test_a_password_is_hashed_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    users.user("olga")
    clock = Clock()
    found = Identity(monotonic=clock)
    hashed: list[str] = []

    def counting(*, username: str, password: str) -> object:
        hashed.append(username)
        return authenticate(username=username, password=password)

    monkeypatch.setattr(identity, "authenticate", counting)

    for _ in range(int(VERIFIED_SECONDS)):
        found.identify(basic("olga"))
        clock.now += 1
    assert len(hashed) == 1
    found.identify(basic("olga"))
    assert len(hashed) == 2


def test_a_changed_password_and_a_disabled_user_count_after_a_moment() -> None:
    olga, victor = users.user("olga"), users.user("victor")
    clock = Clock()
    found = Identity(monotonic=clock)
    found.identify(basic("olga"))
    found.identify(basic("victor"))

    olga.set_password("another-one-456")
    olga.save()
    User.objects.filter(pk=victor.pk).update(is_active=False)
    clock.now += KNOWN_SECONDS

    assert refused(found, basic("olga")).code is Code.NOT_AUTHENTICATED
    assert refused(found, basic("victor")).code is Code.NOT_AUTHENTICATED
    assert found.identify(basic("olga", "another-one-456")).name == "olga"


def test_who_guesses_waits_and_the_user_at_another_address_does_not() -> None:
    users.user("olga")
    found = Identity()

    for _ in range(MAX_PER_PAIR):
        assert refused(found, basic("olga", "wrong")).code is Code.NOT_AUTHENTICATED
    error = refused(found, basic("olga"))
    assert error.code is Code.TOO_MANY
    assert error.retry_after_s

    elsewhere = asked(basic("olga").headers["authorization"], address="10.0.0.2")
    assert found.identify(elsewhere).name == "olga"


def test_a_password_that_could_not_be_looked_at_is_no_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    users.user("olga")
    found = Identity()

    def busy(**_given: str) -> object:
        raise TooBusy

    with monkeypatch.context() as patch:
        patch.setattr(identity, "authenticate", busy)
        for _ in range(MAX_PER_PAIR + 1):
            assert refused(found, basic("olga")).retry_after_s == identity.BUSY_SECONDS

    assert found.identify(basic("olga")).name == "olga"


def test_no_log_has_a_token_or_a_password(caplog: pytest.LogCaptureFixture) -> None:
    users.user("olga")
    text = tokens.token()
    found = Identity()

    with caplog.at_level(logging.DEBUG):
        found.identify(asked(f"Bearer {text}"))
        refused(found, basic("olga", "wrong-word"))
        found.identify(basic("olga"))
        refused(found, Asked(method="GET", headers={}, path="/x", query=text.encode()))

    for secret in (text, "wrong-word", users.PASSWORD):
        assert secret not in caplog.text


def test_without_a_database_those_who_were_known_go_on_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    found = Identity(monotonic=clock)
    call = asked(f"Bearer {tokens.token()}")
    caller = found.identify(call)

    def away(_digest: str) -> None:
        raise OperationalError

    monkeypatch.setattr(token_selectors, "by_digest", away)
    clock.now += STALE_SECONDS - 1
    assert found.identify(call) == caller
    assert refused(found, asked(f"Bearer {tokens.token('new')}")).code is Code.UNAVAILABLE
    clock.now += 1
    assert refused(found, call).code is Code.UNAVAILABLE


def test_who_was_refused_stays_refused_without_a_database(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    found = Identity(monotonic=clock)
    call = asked(f"Bearer {tokens.token()}")
    caller = found.identify(call)
    tokens.revoke()
    clock.now += KNOWN_SECONDS
    assert refused(found, call).code is Code.NOT_AUTHENTICATED

    def away(_digest: str) -> None:
        raise OperationalError

    monkeypatch.setattr(token_selectors, "by_digest", away)

    assert refused(found, call).code is Code.UNAVAILABLE
    with pytest.raises(ApiError):
        found.again(caller.proof)


def test_a_password_whose_stream_was_refused_stays_refused_without_a_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    found = Identity(monotonic=clock)
    user = users.user("olga", role=Role.OPERATOR)
    caller = found.identify(basic("olga"))
    user.set_password("another word for olga")
    user.save()
    clock.now += KNOWN_SECONDS
    with pytest.raises(ApiError):
        found.again(caller.proof)

    def away(*_given: object, **_more: object) -> None:
        raise OperationalError

    monkeypatch.setattr(User.objects, "filter", away)
    monkeypatch.setattr("gateway.rest.identity.authenticate", away)
    monkeypatch.setattr("gateway.rest.identity.login_limits.attempt", away)

    assert refused(found, basic("olga")).code is Code.UNAVAILABLE


def test_a_use_that_cannot_be_noted_refuses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*_given: object, **_more: object) -> None:
        raise OperationalError

    monkeypatch.setattr(token_services, "note_use", locked)

    assert Identity().identify(asked(f"Bearer {tokens.token()}")).name == "app"


# --- the console's own pages ---------------------------------------------------------------------


@pytest.fixture
def cookie() -> str:
    browser = Client()
    browser.force_login(users.user("olga", role=Role.OPERATOR))
    return f"{settings.SESSION_COOKIE_NAME}={browser.cookies[settings.SESSION_COOKIE_NAME].value}"


CSRF = "a" * 32


def from_page(cookie: str, method: str = "GET", **headers: str) -> Asked:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Asked(method=method, headers={"cookie": cookie, "host": "localhost:8000", **named})


def test_a_page_of_the_console_reads_with_its_session(cookie: str) -> None:
    caller = Identity().identify(from_page(cookie, sec_fetch_site="same-origin"))

    assert (caller.kind, caller.name) == (CallerKind.SESSION, "olga")


@pytest.mark.parametrize(
    "headers",
    [
        {"sec_fetch_site": "cross-site"},
        # Another port of the same host, to which browsers send cookies all the same.
        {"sec_fetch_site": "same-site"},
        {"origin": "http://evil.example"},
        {"origin": "http://localhost:9999"},
        {"origin": "null"},
    ],
)
def test_no_other_origin_borrows_a_session(cookie: str, headers: dict[str, str]) -> None:
    error = refused(Identity(), from_page(cookie, **headers))

    assert error.code is Code.NOT_AUTHENTICATED
    assert "another origin" in error.message


def test_a_change_by_session_needs_the_csrf_token(cookie: str) -> None:
    found = Identity()
    both = f"{cookie}; {settings.CSRF_COOKIE_NAME}={CSRF}"
    origin = {"origin": "http://localhost:8000"}

    assert "X-CSRFToken" in refused(found, from_page(both, "POST", **origin)).message
    wrong = from_page(both, "POST", x_csrftoken="b" * 32, **origin)
    assert "X-CSRFToken" in refused(found, wrong).message
    right = from_page(both, "POST", x_csrftoken=CSRF, **origin)
    assert found.identify(right).name == "olga"


def test_a_socket_by_session_needs_the_origin_of_the_console(cookie: str) -> None:
    headers = {"cookie": cookie, "host": "localhost:8000"}
    found = Identity()

    error = refused(found, Asked(method="GET", headers=headers, is_socket=True))
    assert "another origin" in error.message
    own = {**headers, "origin": "http://localhost:8000"}
    assert found.identify(Asked(method="GET", headers=own, is_socket=True)).name == "olga"


@pytest.mark.parametrize(
    ("path", "needs"),
    [
        ("/rest/consumers/g/instances/i/records", True),
        ("/rest/consumers/g/instances/i/records/", True),
        ("/rest/consumers/g/instances/i/offsets", False),
        ("/rest/v1/topics/orders/records", False),
    ],
)
def test_a_fetch_by_session_needs_the_origin_of_the_console(
    cookie: str, path: str, *, needs: bool
) -> None:
    headers = {"cookie": cookie, "host": "localhost:8000"}
    # Like the request for an image of any page, by a browser that sends no origin.
    unsaid = Asked(method="GET", headers=headers, path=path)
    own = Asked(method="GET", headers={**headers, "sec-fetch-site": "same-origin"}, path=path)

    if needs:
        assert "another origin" in refused(Identity(), unsaid).message
    else:
        assert Identity().identify(unsaid).name == "olga"
    assert Identity().identify(own).name == "olga"


def test_a_session_that_has_ended_is_nobodys(cookie: str) -> None:
    models.Session.objects.all().delete()

    assert "has ended" in refused(Identity(), from_page(cookie)).message


def test_so_many_callers_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "MAX_REMEMBERED", 2)
    found = Identity()
    calls = [asked(f"Bearer {tokens.token(name)}") for name in ("a", "b", "c")]
    known: list[Caller] = [found.identify(call) for call in calls]

    assert [caller.name for caller in known] == ["a", "b", "c"]
    assert found.remembered(found.key_of(calls[0])) is None
    assert found.remembered(found.key_of(calls[2])) == known[2]
