"""Callers that one worker tells another of."""

import asyncio

import pytest
from django.core import signing

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Kind, Operation, Role
from gateway.rest import passed
from gateway.rest.codes import ApiError, Code
from gateway.rest.passed import HEADER, PassedCallers, signed
from tests.fakes.asgi import scope_of

# Before anything that is signed: the key is a setting.
CALLER = Caller(
    kind=CallerKind.TOKEN,
    name="réader",
    number=7,
    rights=Rights(
        [
            Grant(role=Role.OPERATOR, cluster="c1"),
            Grant(operation=Operation.READ_PAYLOADS, kind=Kind.TOPIC, pattern="orders-*"),
            Grant(operation=Operation.MANAGE_USERS),
        ]
    ),
)


def found(header: str, *, method: str = "GET", target: str = "/a%2Fb?max=1") -> Caller:
    return asyncio.run(PassedCallers().of(scope_of(method, target, {HEADER: header})))


def signed_here() -> str:
    return signed(CALLER, "GET", "/a%2Fb?max=1")


def test_a_caller_keeps_the_rights_that_consumers_need() -> None:
    told = found(signed_here())

    assert (told.kind, told.name, told.number) == (CALLER.kind, CALLER.name, CALLER.number)
    assert told.key == CALLER.key
    assert told.rights.grants == CALLER.rights.grants[:2]


@pytest.mark.parametrize(
    "header",
    ["", "x", signed_here()[:-1], signing.dumps({"name": "x"})],
    # Every worker signs for itself, and all must give a test one name.
    ids=["nothing", "a word", "cut", "for another use"],
)
def test_what_no_worker_has_signed_for_this_is_refused(header: str) -> None:
    with pytest.raises(ApiError) as refused:
        found(header)

    assert refused.value.code is Code.NOT_AUTHENTICATED


def test_a_signed_caller_is_good_for_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    header = signed_here()
    monkeypatch.setattr(passed, "GOOD_FOR_S", -1)

    with pytest.raises(ApiError):
        found(header)


@pytest.mark.parametrize(
    ("method", "target"),
    [("DELETE", "/a%2Fb?max=1"), ("GET", "/a/b?max=1"), ("GET", "/a%2Fb?max=2"), ("GET", "/a%2Fb")],
)
def test_a_signed_caller_makes_one_call_and_no_other(method: str, target: str) -> None:
    with pytest.raises(ApiError) as refused:
        found(signed_here(), method=method, target=target)

    assert refused.value.code is Code.NOT_AUTHENTICATED
