"""Connectors run with their authors' rights, and report a lost one."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from connectors import services
from connectors.authors import Known, creation_refusal
from connectors.changes import By
from connectors.models import Connector
from gateway.access import models as access
from gateway.access import selectors, token_selectors
from gateway.access.callers import Caller, CallerKind, of_host
from gateway.access.grants import Rights
from gateway.access.operations import Kind, Operation, Role
from tests.builders import tokens, users

pytestmark = pytest.mark.usefixtures("database")
C = "cluster-of-the-tests-0"
SOURCE = {
    "connector.class": "Lines",
    "topic": "t",
    "connection.password": "${secret:shop}",
}


def by(name: str) -> By:
    number = selectors.number_of(name)
    assert number is not None
    rights = selectors.rights_of_user(number)
    return By(caller=Caller(kind=CallerKind.SESSION, name=name, rights=rights))


def by_token(name: str) -> By:
    number = tokens.number_of(name)
    found = token_selectors.by_number(number)
    rights = Rights() if found is None else found.rights
    return By(caller=Caller(kind=CallerKind.TOKEN, name=name, rights=rights, number=number))


def lost() -> str:
    return Known(C).lost(Connector.objects.get().claims)


def take_all_from(name: str) -> None:
    access.Grant.objects.filter(user__username=name).delete()


def test_a_config_rests_upon_the_rights_of_who_wrote_it() -> None:
    users.user("ann")

    services.create(by("ann"), C, "a", SOURCE)

    assert lost() == ""
    take_all_from("ann")
    assert lost() == (
        "The connector runs with the rights of user ann, which may not produce on topic t:"
        " give it that right and restart the connector, or have a user with the right send the"
        " config again unchanged"
    )


@pytest.mark.parametrize("what", ["disabled", "deleted"])
def test_who_may_not_sign_in_any_more_has_no_rights(what: str) -> None:
    ann = users.user("ann")
    services.create(by("ann"), C, "a", SOURCE)

    if what == "deleted":
        ann.delete()
    else:
        User.objects.update(is_active=False)

    assert "rights of user ann, which is disabled or deleted" in lost()
    assert "have a user who may produce on topic t send the config again" in lost()


def test_another_user_of_the_same_name_is_another_author() -> None:
    users.user("ann").delete()
    users.user("bob")
    ann = users.user("ann")
    services.create(by("ann"), C, "a", SOURCE)
    ann.delete()
    users.user("ann")

    assert "rights of user ann, which is disabled or deleted" in lost()


def test_who_sends_the_config_again_stands_in_for_it() -> None:
    users.user("ann")
    users.user("bob")
    services.create(by("ann"), C, "a", SOURCE)
    take_all_from("ann")

    services.put_config(by("bob"), C, "a", SOURCE)

    assert lost() == ""


def test_a_secret_stays_that_of_who_put_it_in() -> None:
    users.user("ann")
    users.user("olga", role=Role.OPERATOR)
    services.create(by("ann"), C, "a", SOURCE)
    services.patch_config(by("olga"), C, "a", {"batch.size": "5"})

    users.grant(User.objects.get(username="ann"), Operation.USE_SECRETS, kind=Kind.SECRET)
    access.Grant.objects.filter(user__username="ann", role="admin").delete()
    assert lost() == ""

    take_all_from("ann")
    assert "rights of user ann, which may not use secrets" in lost()


@pytest.mark.parametrize(
    ("what", "is_lost"), [("revoked", True), ("expired", False), ("owner disabled", True)]
)
def test_a_token_stands_until_it_is_revoked_or_its_owner_disabled(what: str, is_lost: bool) -> None:
    ann = users.user("ann")
    tokens.token("app", grants=tokens.EVERYTHING, owner=ann)
    services.create(by_token("app"), C, "a", SOURCE)
    assert lost() == ""

    if what == "revoked":
        tokens.revoke("app")
    elif what == "expired":
        access.Token.objects.update(expires_at=timezone.now() - timedelta(days=1))
    else:
        User.objects.update(is_active=False)

    assert bool(lost()) is is_lost


def test_an_author_creates_the_topics_that_they_may_create() -> None:
    ann = users.user("ann")
    services.create(by("ann"), C, "a", SOURCE)
    claims = Connector.objects.get().claims

    assert creation_refusal(C, claims, "t") == ""
    ann.grants.update(role="", operation=Operation.PRODUCE.value)
    assert creation_refusal(C, claims, "t") == (
        "topic t does not exist, and user ann, with whose rights the connector runs, may not create"
        " it: create the topic or give that right, and restart the connector"
    )
    assert creation_refusal(C, None, "t") == ""


def test_a_connector_of_an_older_release_rests_upon_nobody() -> None:
    assert Known(C).lost(None) == ""
    assert Known(C).lost([{"kind": "user", "operation": "of-a-newer-release"}]) == ""


def test_the_owner_of_the_home_has_every_right_on_its_machine() -> None:
    services.create(By(caller=of_host("ann")), C, "a", SOURCE)

    claims = Connector.objects.get().claims
    assert {(one["kind"], one["name"]) for one in claims or ()} == {("host", "ann")}
    assert lost() == ""
    assert creation_refusal(C, claims, "t") == ""
