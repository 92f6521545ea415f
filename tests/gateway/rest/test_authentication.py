"""Views of REST framework know the same callers as the bare side."""

import pytest
from django.test import RequestFactory
from rest_framework.request import Request

from gateway.rest.authentication import CHALLENGE, CallerAuthentication
from gateway.rest.codes import ApiError
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
