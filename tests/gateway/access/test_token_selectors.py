"""What a token allows: its own rights, and never more than its owner has."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from gateway.access import selectors, services, token_selectors, token_text
from gateway.access.audit import Actor
from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import ANY, Grant, Resource, Rights, common, decide
from gateway.access.operations import OPERATIONS, Kind, Operation, Role
from gateway.access.token_scopes import NAMED, SCOPES, Scope, grants_of
from gateway.access.token_selectors import TokenState
from tests.builders import tokens, users
from tests.gateway.access.conftest import Clock

NAMES = ("orders", "orders.eu", "payments")
PATTERNS = ("*", "orders", "orders*", "orders.*", "payments")
MADE = {f"{scope.value}-{pattern}": (scope, pattern) for scope in NAMED for pattern in PATTERNS}
# Every operation on every kind that it applies to.
ASKED = [(operation, kind) for operation in Operation for kind in OPERATIONS[operation].kinds]
CASES = [
    (made, operation, kind, name) for made in MADE for operation, kind in ASKED for name in NAMES
]


def test_the_matrix_has_enough_cases() -> None:
    assert len(CASES) >= 500


@pytest.mark.parametrize("made", MADE)
def test_a_scope_allows_its_operations_on_its_names_and_nothing_else(made: str) -> None:
    scope, pattern = MADE[made]
    caller = Caller(
        kind=CallerKind.TOKEN, name="app", rights=Rights(grants_of(scope, pattern)), number=1
    )
    allowed = {
        Scope.READ: {(Operation.VIEW, Kind.TOPIC), (Operation.READ_PAYLOADS, Kind.TOPIC)},
        Scope.WRITE: {(Operation.VIEW, Kind.TOPIC), (Operation.PRODUCE, Kind.TOPIC)},
        Scope.CREATE: {(Operation.VIEW, Kind.TOPIC), (Operation.CREATE_TOPICS, Kind.TOPIC)},
        Scope.GROUP: {(Operation.VIEW, Kind.GROUP), (Operation.RESET_GROUPS, Kind.GROUP)},
        Scope.CONNECTOR: {(one, Kind.CONNECTOR) for one in SCOPES[Scope.CONNECTOR].operations},
        Scope.SECRET: {(Operation.USE_SECRETS, Kind.SECRET)},
        Scope.FILE: {(Operation.READ_FILES, Kind.FILE), (Operation.WRITE_FILES, Kind.FILE)},
    }[scope]

    for operation, kind in ASKED:
        for name in NAMES:
            fits = name == pattern or (pattern[-1] == ANY and name.startswith(pattern[:-1]))
            decision = caller.decide(operation, kind, "some-cluster", name)

            assert decision.is_allowed == ((operation, kind) in allowed and fits)


def test_an_admin_token_does_everything() -> None:
    rights = Rights(grants_of(Scope.ADMIN))

    for operation, kind in ASKED:
        assert decide(rights, operation, Resource(kind=kind, cluster="c", name="x")).is_allowed


@pytest.mark.usefixtures("database")
def test_a_token_of_the_host_has_its_rights_alone() -> None:
    text = tokens.token(grants=grants_of(Scope.WRITE, "orders"))

    known = token_selectors.by_digest(token_text.digest(text))

    assert known is not None
    assert known.state is TokenState.VALID
    assert known.rights.names(Operation.PRODUCE, cluster="c", kind=Kind.TOPIC).among(NAMES) == [
        "orders"
    ]


@pytest.mark.usefixtures("database")
def test_a_token_loses_what_its_owner_loses_and_gets_it_back() -> None:
    olga = users.user("olga", role=Role.OPERATOR)
    text = tokens.token(owner=olga, grants=grants_of(Scope.READ, "orders"))
    grant = olga.grants.get()

    def may_read() -> bool:
        known = token_selectors.by_digest(token_text.digest(text))
        assert known is not None
        return known.rights.allows(
            Operation.READ_PAYLOADS, Resource(kind=Kind.TOPIC, cluster="c", name="orders")
        )

    assert may_read()
    services.remove_grant(actor=tokens.HOST, number=olga.pk, grant=grant.pk)
    assert not may_read()
    services.add_grant(actor=tokens.HOST, number=olga.pk, grant=Grant(role=Role.OPERATOR))
    assert may_read()


@pytest.mark.usefixtures("database")
def test_a_token_that_asks_for_more_than_its_owner_has_does_what_the_owner_may() -> None:
    victor = users.user("victor", role=Role.VIEWER)
    text = tokens.token(owner=victor, grants=grants_of(Scope.ADMIN))

    known = token_selectors.by_digest(token_text.digest(text))

    assert known is not None
    owned = selectors.rights_of_user(victor.pk)
    for operation, kind in ASKED:
        asked = Resource(kind=kind, cluster="c", name="x")
        assert known.rights.allows(operation, asked) == owned.allows(operation, asked)


@pytest.mark.usefixtures("database")
def test_a_token_of_a_disabled_user_is_none_and_of_a_deleted_one_is_gone() -> None:
    users.user("alice")
    olga = users.user("olga", role=Role.OPERATOR)
    digest = token_text.digest(tokens.token(owner=olga))

    User.objects.filter(pk=olga.pk).update(is_active=False)
    known = token_selectors.by_digest(digest)
    assert known is not None
    assert known.state is TokenState.DISABLED

    services.delete_user(actor=Actor(name="alice"), number=olga.pk)
    assert token_selectors.by_digest(digest) is None


@pytest.mark.usefixtures("database")
def test_a_token_ends_at_its_moment(clock: Clock) -> None:
    digest = token_text.digest(tokens.token(life=timedelta(hours=1)))

    clock.pass_(minutes=59)
    known = token_selectors.by_digest(digest)
    assert known is not None
    assert known.state is TokenState.VALID

    clock.pass_(minutes=1)
    known = token_selectors.by_digest(digest)
    assert known is not None
    assert known.state is TokenState.EXPIRED


def test_what_two_allow_is_what_each_allows() -> None:
    first = Rights([Grant(role=Role.OPERATOR, cluster="c"), *grants_of(Scope.READ, "pay*")])
    second = Rights(grants_of(Scope.WRITE, "orders.*"))

    both = common(first, second)

    assert {grant.pattern for grant in both.grants} == {"orders.*"}
    assert {grant.cluster for grant in both.grants} == {"c"}
