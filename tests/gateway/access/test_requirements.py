"""What views declare, and how far a declaration carries."""

from collections.abc import Callable

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path
from django.views.decorators.http import require_safe
from pytest_django import Settings

from gateway.access.grants import Resource
from gateway.access.models import Session
from gateway.access.operations import Kind, Operation, Role
from gateway.access.requirements import (
    Audience,
    open_before_change,
    requirement_of,
    requires,
    signed_in,
)
from tests.builders import users
from tests.gateway.access.conftest import Clock

CLUSTER = "0hUvQ2rWSx6lJ3u8T6kRrg"


def view(_request: HttpRequest, **_: object) -> HttpResponse:
    return HttpResponse("shown")


def another_view() -> Callable[[HttpRequest], HttpResponse]:
    """Return a view of one test's own, because a declaration stays with its view."""

    def shown(request: HttpRequest) -> HttpResponse:
        return view(request)

    return shown


def topic_of(_request: HttpRequest, kwargs: object) -> Resource:
    assert isinstance(kwargs, dict)
    return Resource(kind=Kind.TOPIC, cluster=CLUSTER, name=kwargs["name"])


@requires(Operation.DELETE_TOPICS, resource=topic_of)
def delete_topic(request: HttpRequest, name: str) -> HttpResponse:
    return view(request, name=name)


@requires(Operation.VIEW, is_activity=False)
def stream(request: HttpRequest) -> HttpResponse:
    return view(request)


class Table:
    """A table of addresses of pages to come."""

    urlpatterns = [  # noqa: RUF012
        path("topics/<str:name>", delete_topic),
        path("stream", stream),
        # The frame around a refusal leads to pages.
        path("", include("console.urls")),
    ]
    handler403 = "console.pages.errors.forbidden"


def test_a_declaration_survives_the_decorators_around_it() -> None:
    declared = require_safe(requires(Operation.VIEW)(another_view()))

    requirement = requirement_of(declared)

    assert requirement is not None
    assert (requirement.audience, requirement.operation) == (Audience.GRANTED, Operation.VIEW)


def test_a_view_without_a_decorator_declares_nothing() -> None:
    assert requirement_of(view) is None


def test_a_page_is_open_before_the_change_only_where_it_says_so() -> None:
    closed = requirement_of(signed_in(another_view()))
    opened = requirement_of(open_before_change(signed_in(another_view())))

    assert closed is not None
    assert opened is not None
    assert (closed.is_open_before_change, opened.is_open_before_change) == (False, True)


@pytest.mark.usefixtures("database")
def test_a_right_on_some_names_opens_their_addresses_and_no_others(settings: Settings) -> None:
    user = users.user("olga", role=Role.VIEWER)
    users.grant(user, Operation.DELETE_TOPICS, kind=Kind.TOPIC, pattern="orders.*")
    browser = Client()
    browser.force_login(user)

    settings.ROOT_URLCONF = Table
    allowed = browser.post("/topics/orders.created")
    refused = browser.post("/topics/payments")

    assert allowed.status_code == 200
    assert refused.status_code == 403
    assert f"on topic payments of cluster {CLUSTER}" in refused.content.decode()


@pytest.mark.usefixtures("database")
def test_a_stream_is_no_activity(clock: Clock, settings: Settings) -> None:
    browser = Client()
    browser.force_login(users.user("alice"))
    before = Session.objects.get().active_at
    clock.pass_(minutes=5)

    settings.ROOT_URLCONF = Table
    answer = browser.get("/stream")

    assert answer.status_code == 200
    assert Session.objects.get().active_at == before
