"""Changes of access wait in their own database until somebody has taken them over."""

import logging

import pytest
from django.db import DatabaseError, transaction

from gateway.access import changes
from gateway.access.audit import Actor

pytestmark = pytest.mark.usefixtures("database")
ALICE = Actor(name="alice", address="192.0.2.7")


@pytest.fixture(autouse=True)
def nobody_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes._Table, "deliver", None)  # noqa: SLF001 - its one name


def tell(subject: str = "bob") -> None:
    with transaction.atomic():
        changes.tell("user.created", actor=ALICE, subject=subject, grant="viewer")


def test_a_change_waits_until_it_is_taken_over() -> None:
    tell()

    [change] = changes.waiting()
    changes.told([change.number])

    assert (change.event, change.actor, change.subject) == ("user.created", ALICE, "bob")
    assert change.details == {"grant": "viewer"}
    assert changes.waiting() == []


def test_a_change_that_is_taken_back_is_told_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="gateway.access.audit"), transaction.atomic():
        changes.tell("user.created", actor=ALICE, subject="bob")
        transaction.set_rollback(True)

    assert changes.waiting() == []
    assert caplog.text == ""


def test_whoever_takes_over_is_asked_after_each_change() -> None:
    seen: list[list[str]] = []
    changes.delivered_by(lambda: seen.append([each.subject for each in changes.waiting()]))

    tell("bob")
    tell("carol")

    assert seen == [["bob"], ["bob", "carol"]]


def test_a_database_that_is_away_keeps_no_change_from_being_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> None:
        raise DatabaseError("database is locked")

    changes.delivered_by(fail)

    tell()

    assert len(changes.waiting()) == 1
    assert "changes.not_delivered error=database is locked" in caplog.text


def test_the_newest_changes_wait_where_nobody_takes_them_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(changes, "MAX_WAITING", 2)

    for name in ("a", "b", "c"):
        tell(name)

    assert [each.subject for each in changes.waiting()] == ["b", "c"]


def test_changes_of_a_transaction_send_one_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(changes, "hint", lambda: sent.append(len(changes.waiting())))

    with transaction.atomic():
        for name in ("a", "b", "c"):
            changes.tell("user.created", actor=ALICE, subject=name)
    tell("d")

    assert sent == [3, 4]


def test_hint_outlives_a_savepoint_that_is_rolled_back(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(changes, "hint", lambda: sent.append(len(changes.waiting())))

    with transaction.atomic():
        with transaction.atomic():
            changes.tell("user.created", actor=ALICE, subject="a")
            transaction.set_rollback(True)
        changes.tell("user.created", actor=ALICE, subject="b")

    assert sent == [1]
