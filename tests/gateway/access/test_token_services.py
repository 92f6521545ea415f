"""Changes of tokens: what a rule forbids, what is told, what is kept."""

import logging
from datetime import timedelta

import pytest

from gateway.access import models, token_selectors, token_services, token_text
from gateway.access.grants import Grant
from gateway.access.operations import Kind, Operation
from gateway.access.services import MAX_GRANTS, Refused
from gateway.access.token_scopes import Scope, grants_of
from tests.builders import tokens, users
from tests.gateway.access.conftest import Clock

pytestmark = pytest.mark.usefixtures("database")
READS = grants_of(Scope.READ, "orders")


def test_of_a_token_only_a_digest_and_its_beginning_are_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, logger="gateway.access.audit"):
        text = tokens.token()

    (row,) = models.Token.objects.all()
    assert row.digest == token_text.digest(text)
    kept = [str(value) for value in row.__dict__.values()]
    assert not any(text in value for value in kept)
    assert 'token.created actor="host:tester"' in caplog.text
    assert text not in caplog.text


@pytest.mark.parametrize("name", ["", "a b", "a\n", "-a", "ä", "x" * 65, "a/b"])
def test_a_name_that_reads_as_something_else_is_refused(name: str) -> None:
    with pytest.raises(Refused, match="is not a token name"):
        tokens.token(name)


def test_a_name_is_given_once_even_after_its_token_was_revoked() -> None:
    tokens.token("app")
    tokens.revoke("app")

    with pytest.raises(Refused, match="there is, or was, a token “app”"):
        tokens.token("app")


@pytest.mark.parametrize(
    ("grants", "said"),
    [
        ((), "needs at least one right"),
        (READS * MAX_GRANTS, f"{2 * MAX_GRANTS} rights were given"),
        ((Grant(operation=Operation.VIEW, kind=Kind.TOPIC, pattern="a*b"),), "is not a pattern"),
    ],
)
def test_rights_that_mean_nothing_are_refused(grants: tuple[Grant, ...], said: str) -> None:
    with pytest.raises(Refused, match=said):
        tokens.token(grants=grants)


@pytest.mark.parametrize("life", [timedelta(), timedelta(seconds=-1), timedelta(days=80_000)])
def test_an_end_that_is_none_is_refused(life: timedelta) -> None:
    with pytest.raises(Refused, match="expire in the future"):
        tokens.token(life=life)


def test_a_revoked_token_is_revoked_once() -> None:
    tokens.token()
    tokens.revoke()

    with pytest.raises(Refused, match="revoked already"):
        tokens.revoke()


def test_nobody_revokes_the_token_of_somebody_else_by_its_number() -> None:
    olga, victor = users.user("olga"), users.user("victor")
    tokens.token(owner=olga)
    number = tokens.number_of("app")

    with pytest.raises(Refused, match="no longer exists"):
        token_services.revoke_token(actor=tokens.HOST, number=number, owner_id=victor.pk)

    assert token_services.revoke_token(actor=tokens.HOST, number=number, owner_id=olga.pk) == "app"


def test_there_are_so_many_tokens_and_old_ones_make_room(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(token_services, "MAX_TOKENS", 2)
    tokens.token("a")
    tokens.token("b")

    with pytest.raises(Refused, match="the maximum"):
        tokens.token("c")
    tokens.revoke("a")
    clock.pass_(days=90)
    tokens.token("c")

    assert [row.name for row in token_selectors.tokens()] == ["b", "c"]


def test_a_use_is_written_once_a_minute(clock: Clock) -> None:
    tokens.token()
    number = tokens.number_of("app")

    token_services.note_use(number, "10.0.0.1", now=clock())
    first = clock()
    clock.pass_(seconds=59)
    token_services.note_use(number, "10.0.0.2", now=clock())
    (row,) = token_selectors.tokens()
    assert (row.last_used_at, row.last_address) == (first, "10.0.0.1")

    clock.pass_(seconds=1)
    token_services.note_use(number, "10.0.0.3", now=clock())
    (row,) = token_selectors.tokens()
    assert (row.last_used_at, row.last_address) == (clock(), "10.0.0.3")


def test_an_owner_has_a_limit_that_leaves_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_services, "MAX_PER_OWNER", 3)
    monkeypatch.setattr(token_services, "MAX_STORED_PER_OWNER", 5)
    olga, victor = users.user("olga"), users.user("victor")
    for number in range(3):
        tokens.token(f"olga-{number}", owner=olga)

    with pytest.raises(Refused, match="you have 3 valid tokens"):
        tokens.token("one-more", owner=olga)
    tokens.revoke("olga-0")
    tokens.token("olga-3", owner=olga)
    tokens.revoke("olga-1")
    tokens.token("olga-4", owner=olga)
    tokens.revoke("olga-2")

    with pytest.raises(Refused, match="you have created 5 tokens"):
        tokens.token("one-more", owner=olga)
    tokens.token("of-another", owner=victor)


def test_places_are_kept_for_the_host_and_ended_tokens_take_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(token_services, "MAX_TOKENS", 4)
    monkeypatch.setattr(token_services, "KEPT_FOR_HOST", 1)
    olga = users.user("olga")
    for number in range(3):
        tokens.token(f"app-{number}", owner=olga)

    with pytest.raises(Refused, match="there are 3 valid tokens"):
        tokens.token("one-more", owner=olga)
    tokens.token("of-the-host")
    with pytest.raises(Refused, match="there are 4 valid tokens"):
        tokens.token("another-of-the-host")
    tokens.revoke("app-0")
    tokens.revoke("of-the-host")
    tokens.token("one-more", owner=olga)


def test_a_token_needs_a_right_that_its_owner_has() -> None:
    nobody = users.user("olga", role=None)

    for grants in (READS, tokens.EVERYTHING):
        with pytest.raises(Refused, match="you have none of the rights"):
            tokens.token(grants=grants, owner=nobody)


def test_all_valid_tokens_of_a_user_are_revoked_at_once() -> None:
    olga, victor = users.user("olga"), users.user("victor")
    tokens.token("first", owner=olga)
    tokens.token("second", owner=olga)
    tokens.token("of-another", owner=victor)
    tokens.revoke("second")

    assert token_services.revoke_all_of(actor=tokens.HOST, owner_id=olga.pk) == 1
    valid = [row.name for row in token_selectors.tokens() if row.state.value == "valid"]
    assert valid == ["of-another"]
