"""Views of REST framework find the caller that was authenticated before them."""

import io

import pytest
from rest_framework.request import Request

from gateway.host_names import Request as DjangoRequest
from gateway.rest.authentication import CallerAuthentication
from gateway.rest.calls import CALLER
from gateway.rest.codes import ApiError, Code
from tests.fakes.asgi import scope_of
from tests.fakes.rest_door import WRITER


def request(found: object) -> Request:
    scope = {**scope_of("GET", "/v3/clusters", {}), CALLER: found}
    return Request(DjangoRequest(scope, io.BytesIO()))


def test_a_view_gets_the_caller_of_its_scope() -> None:
    user, caller = CallerAuthentication().authenticate(request(WRITER))

    assert caller is WRITER
    assert user.is_authenticated
    assert str(user) == WRITER.key


def test_a_view_refuses_a_caller_by_the_error_that_was_found() -> None:
    error = ApiError(Code.NOT_AUTHENTICATED, "credentials are required")
    refused = request(error)

    with pytest.raises(ApiError, match="credentials are required") as caught:
        CallerAuthentication().authenticate(refused)
    assert caught.value is error
