"""Failed logins, counted by address, alone and with the account, in a bounded table."""

import pytest
from django.core.management import call_command

from gateway.access import login_limits
from gateway.access.login_limits import (
    MAX_PER_ADDRESS,
    MAX_PER_PAIR,
    WINDOW,
    Sources,
    attempt,
    forget,
    take_back,
)
from gateway.access.models import FailedLogin

pytestmark = pytest.mark.usefixtures("database")

NOON = 1_700_000_000.0
WINDOW_S = WINDOW.total_seconds()


ALICE = Sources(address="10.0.0.1", account="alice")


def failures() -> dict[str, int]:
    """What the table counts."""
    return dict(FailedLogin.objects.values_list("source", "failures"))


def at(seconds: float, *, address: str = "10.0.0.1", account: str = "alice") -> int:
    """Try at a time after noon; return the seconds to wait."""
    return attempt(Sources(address=address, account=account), now=lambda: NOON + seconds)


@pytest.mark.slow
def test_an_address_gets_so_many_attempts_and_then_has_to_wait() -> None:
    first = [at(number / 10, account=f"user-{number}") for number in range(MAX_PER_ADDRESS)]

    assert first == [0] * MAX_PER_ADDRESS
    assert at(60, account="another") == WINDOW_S - 60 + 1


def test_an_account_gets_fewer_attempts_from_one_address() -> None:
    tried = [at(0) for _ in range(MAX_PER_PAIR + 1)]

    assert tried[:-1] == [0] * MAX_PER_PAIR
    assert tried[-1] > 0


def test_nobody_locks_another_out_of_an_account() -> None:
    for number in range(2 * MAX_PER_PAIR):
        at(0, account=f"made-up-{number}")
        at(0, address="10.0.0.9", account="admin")

    # From the same address as the made-up names, and from one without failed logins.
    assert at(1, account="admin") == 0
    assert at(1, address="10.0.0.2", account="admin") == 0


def test_local_users_do_not_shut_each_other_out_by_the_address_they_share() -> None:
    for number in range(MAX_PER_ADDRESS + 1):
        assert at(0, address="127.0.0.1", account=f"user-{number}") == 0

    assert at(1, address="127.0.0.1", account="admin") == 0
    assert [at(2, address="::1", account="olga") > 0 for _ in range(MAX_PER_PAIR + 1)] == [
        *[False] * MAX_PER_PAIR,
        True,
    ]


def test_an_account_is_the_same_however_its_name_is_typed() -> None:
    assert Sources(address="", account=" Alice ").limits() == (
        Sources(address="", account="alice").limits()
    )


def test_waiting_helps() -> None:
    for _ in range(MAX_PER_PAIR):
        at(0)
    wait_s = at(10)

    assert at(10 + wait_s) == 0


def test_an_attempt_while_waiting_makes_the_wait_no_longer() -> None:
    for _ in range(MAX_PER_PAIR):
        at(0)

    waits = [at(10) for _ in range(5)]

    assert len(set(waits)) == 1


def test_an_account_that_has_logged_in_has_no_failures_at_its_address() -> None:
    for _ in range(MAX_PER_PAIR):
        at(0)

    forget(ALICE)

    assert at(1) == 0


def test_an_account_of_ones_own_buys_no_attempts_at_others() -> None:
    for number in range(5):
        at(0, account=f"user-{number}")
    before = failures()
    at(0)

    forget(ALICE)

    assert failures() == before


def test_an_attempt_that_was_not_looked_at_does_not_count() -> None:
    at(0)
    before = failures()
    at(0)

    take_back(ALICE)

    assert failures() == before


def test_the_table_holds_no_name_that_anybody_typed() -> None:
    at(0, account="hunter2-typed-into-the-wrong-field")

    kept = " ".join(row.source for row in FailedLogin.objects.all())

    assert "hunter2" not in kept
    assert "10.0.0.1" not in kept


def test_the_table_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_limits, "MAX_SOURCES", 10)

    for number in range(30):
        at(number, address=f"10.0.0.{number}", account=f"user-{number}")

    assert FailedLogin.objects.count() <= 10


def test_an_address_that_has_to_wait_adds_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login_limits, "MAX_PER_ADDRESS", 10)
    for number in range(10):
        at(number, account=f"user-{number}")
    rows = FailedLogin.objects.count()

    for number in range(20):
        at(60, account=f"made-up-{number}")

    assert FailedLogin.objects.count() == rows


@pytest.mark.slow
def test_counts_of_an_older_release_are_kept() -> None:
    at(0)
    before = failures()
    call_command("migrate", "access", "0004", verbosity=0)

    call_command("migrate", verbosity=0)

    assert failures() == before
