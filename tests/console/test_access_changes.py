"""Changes of users and tokens become entries of the audit, once each, whatever fails between."""

import ast
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, transaction
from django.test import Client

from brokers.controlplane import audit, services
from console import access_changes
from gateway.access import changes, token_services
from gateway.access import services as access
from gateway.access.audit import Actor
from gateway.access.grants import Grant
from gateway.access.operations import Role
from tests.cluster import ROOT
from tests.console import cluster_rows

ALICE: Final = Actor(name="alice", address="192.0.2.7")
HOST: Final = Actor(name="host:root")
VIEWER: Final = Grant(role=Role.VIEWER)


@pytest.fixture
def cluster_id() -> str:
    return cluster_rows.cluster().cluster_id


def create(name: str) -> int:
    access.create_user(actor=ALICE, name=name, grant=VIEWER)
    return User.objects.get(username=name).pk


def entries(cluster_id: str) -> list[tuple[str, str, str, str]]:
    """Return kinds, subjects, names and actors, the oldest first."""
    return [
        (each.kind, each.subject, each.name, each.actor)
        for each in reversed(audit.entries(cluster_id=cluster_id))
    ]


def test_what_changes_access_is_an_entry(cluster_id: str) -> None:
    bob = create("bob")
    access.add_grant(actor=ALICE, number=bob, grant=Grant(role=Role.OPERATOR))
    access.set_enabled(actor=ALICE, number=bob, is_enabled=False)
    token_services.create_token(actor=HOST, name="ci", grants=[VIEWER], life=timedelta(days=1))
    token_services.revoke_named(actor=HOST, name="ci")
    access.delete_user(actor=ALICE, number=bob)

    assert entries(cluster_id) == [
        ("create user", "user", "bob", "User:alice"),
        ("give right", "user", "bob", "User:alice"),
        ("disable user", "user", "bob", "User:alice"),
        ("create token", "token", "ci", "host:root"),
        ("revoke token", "token", "ci", "host:root"),
        ("delete user", "user", "bob", "User:alice"),
    ]
    first, given, *_ = reversed(audit.entries(cluster_id=cluster_id))
    assert (first.via, first.address) == ("browser", "192.0.2.7")
    assert first.after == {"grant": "viewer on all clusters"}
    assert given.after == {"grant": "operator on all clusters"}
    assert audit.entries(cluster_id=cluster_id)[1].via == "host"
    assert changes.waiting() == []
    assert not audit.verify(cluster_id=cluster_id).faults


def test_every_event_has_a_row() -> None:
    words = {
        node.value
        for path in (ROOT / "gateway/access").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    events = {word for word in words if word.startswith(("user.", "token.")) and " " not in word}

    # One is a line of the log alone: what the agent does to the password that it has made.
    assert events - set(access_changes.EVENTS) == {"user.password_must_change"}
    assert set(access_changes.EVENTS) <= events


def test_a_change_that_was_taken_over_and_not_forgotten_is_written_once(
    cluster_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = changes.told

    def fail(_numbers: Sequence[int]) -> None:
        raise OperationalError("the process ends here")

    monkeypatch.setattr(changes, "told", fail)
    create("bob")
    monkeypatch.setattr(changes, "told", told)
    assert len(changes.waiting()) == 1

    changes.deliver()

    assert [kind for kind, *_ in entries(cluster_id)] == ["create user"]
    assert changes.waiting() == []


def test_what_waits_for_the_clusters_database_is_told_when_the_changes_are_looked_at(
    cluster_id: str, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(**_: object) -> bool:
        raise OperationalError("database is locked")

    with monkeypatch.context() as patch:
        patch.setattr(services, "note_access_change", away)
        create("bob")
    assert entries(cluster_id) == []

    page = alice.get("/changes?kind=create+user").content.decode()

    assert "user bob" in page
    assert "grant: viewer on all clusters" in page


def test_a_change_in_the_words_of_a_newer_release_holds_nothing_up(cluster_id: str) -> None:
    with transaction.atomic():
        changes.tell("user.renamed", actor=ALICE, subject="bob")
    create("carol")

    assert [name for _, _, name, _ in entries(cluster_id)] == ["carol"]
    assert changes.waiting() == []


def test_before_there_is_a_cluster_changes_wait() -> None:
    create("bob")
    assert len(changes.waiting()) == 1

    cluster_id = cluster_rows.cluster().cluster_id
    create("carol")

    assert [name for _, _, name, _ in entries(cluster_id)] == ["bob", "carol"]
