"""The URL patterns that are made of rows."""

import pytest
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.rest.route import Route
from gateway.rest.views import ApiView, patterns


class TopicsView(ApiView):
    def get(self, _request: Request) -> Response:
        return Response()

    def post(self, _request: Request) -> Response:
        return Response()


def test_view_with_a_function_that_has_no_row_is_refused() -> None:
    row = Route(method="GET", path="/topics", view=TopicsView)

    with pytest.raises(AssertionError, match="other rows"):
        patterns([row])


def test_methods_of_a_bare_call_at_the_path_of_a_view_are_known_to_it() -> None:
    rows = [Route(method=method, path="/topics", view=TopicsView) for method in ("GET", "POST")]
    bare = Route(method="DELETE", path="/topics")

    [pattern] = patterns([*rows, bare])

    assert pattern.callback.view_initkwargs["beside"] == ["DELETE"]  # type: ignore[attr-defined]
