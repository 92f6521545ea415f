"""Views of REST framework know the same callers as the bare side."""

import pytest
from django.test import RequestFactory
from rest_framework.request import Request

from gateway.access import token_text
from gateway.rest.authentication import CHALLENGE, CallerAuthentication, Gate
from gateway.rest.codes import ApiError, Code
from gateway.rest.credentials import Asked
from gateway.rest.identity import KNOWN_SECONDS, Identity
from gateway.rest.strangers import Strangers
from tests.builders import tokens

pytestmark = pytest.mark.usefixtures("database")


def test_a_view_gets_the_caller_of_a_token() -> None:
    headers = {"authorization": f"Bearer {tokens.token('of-a-view')}"}
    request = Request(RequestFactory().get("/v3/clusters", headers=headers))

    user, caller = CallerAuthentication().authenticate(request)

    assert caller.key == "token:of-a-view"
    assert user.is_authenticated
    assert str(user) == caller.key


def test_nobody_is_refused_with_a_challenge() -> None:
    request = Request(RequestFactory().get("/v3/clusters"))

    with pytest.raises(ApiError, match="nobody is known"):
        CallerAuthentication().authenticate(request)
    assert CallerAuthentication().authenticate_header(request) == CHALLENGE


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def asked(text: str, address: str = "192.0.2.1") -> Asked:
    return Asked(method="GET", headers={"authorization": f"Bearer {text}"}, address=address)


def refused(gate: Gate, call: Asked) -> Code:
    with pytest.raises(ApiError) as told:
        gate.admitted(call)
    return told.value.code


def test_an_address_that_makes_tokens_up_waits_and_who_was_known_there_does_not() -> None:
    clock, known = Clock(), tokens.token("known")
    gate = Gate(Identity(monotonic=clock), Strangers(per_second=2, monotonic=clock))
    gate.admitted(asked(known))

    codes = [refused(gate, asked(token_text.new())) for _ in range(3)]
    # What was known is looked up again by now.
    clock.now += KNOWN_SECONDS
    codes += [refused(gate, asked(token_text.new())) for _ in range(3)]

    assert codes == [*[Code.NOT_AUTHENTICATED] * 2, Code.TOO_MANY] * 2
    assert gate.admitted(asked(known)).name == "known"
    assert gate.admitted(asked(tokens.token("new"), "192.0.2.2")).name == "new"


def test_what_was_refused_is_refused_again_without_a_question() -> None:
    clock, text = Clock(), tokens.token("ended")
    tokens.revoke("ended")
    gate = Gate(Identity(monotonic=clock), Strangers(per_second=1, monotonic=clock))

    codes = [refused(gate, asked(text)) for _ in range(5)]

    assert codes == [Code.NOT_AUTHENTICATED] * 5


def test_tokens_that_are_somebodys_are_not_counted() -> None:
    clock = Clock()
    gate = Gate(Identity(monotonic=clock), Strangers(per_second=1, monotonic=clock))

    names = [gate.admitted(asked(tokens.token(f"t{number}"))).name for number in range(5)]

    assert names == ["t0", "t1", "t2", "t3", "t4"]
