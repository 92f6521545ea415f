"""Every address of the project, requested by each kind of user, from the table of addresses."""

import pytest
from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import include, path
from pytest_django import Settings

from gateway import urls
from gateway.access import selectors
from gateway.access.middleware import AccessGate
from gateway.access.operations import OPERATIONS, ROLES, Operation, Role
from gateway.access.requirements import Audience
from gateway.access.requirements import requires as requires_right
from tests.builders import users
from tests.builders.addresses import addresses, needs

pytestmark = pytest.mark.usefixtures("database")

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def browser_of(role: Role | None, *, must_change: bool = False) -> Client:
    browser = Client()
    browser.force_login(users.user(f"{role}", role=role, must_change=must_change))
    return browser


def test_every_address_declares_who_may_use_it() -> None:
    found = addresses()

    assert len(found) >= 13
    assert [address.path for address in found if address.requirement is None] == []


def test_the_public_addresses_are_few_and_known() -> None:
    assert [address.path for address in needs(Audience.PUBLIC)] == ["/login", "/logout"]


def test_nobody_gets_in_without_signing_in_by_any_method() -> None:
    browser = Client()

    for address in [*needs(Audience.SIGNED_IN), *needs(Audience.GRANTED)]:
        for method in METHODS:
            answer = browser.generic(method, address.path)
            assert answer.status_code == 302, (method, address.path)
            assert answer["Location"].startswith("/login?next=/"), (method, address.path)


@pytest.mark.slow
@pytest.mark.parametrize("role", [None, *Role])
def test_whoever_lacks_a_right_is_refused_by_every_method(role: Role | None) -> None:
    held = ROLES[role].operations if role else frozenset()
    browser = browser_of(role)

    for address in needs(Audience.GRANTED):
        assert address.requirement
        operation = address.requirement.operation
        for method in METHODS:
            is_refused = browser.generic(method, address.path).status_code == 403
            assert is_refused is (operation not in held), (method, address.path)


def test_a_viewer_reaches_these_addresses_and_no_others() -> None:
    browser = browser_of(Role.VIEWER)

    reached = {
        address.path
        for address in [*needs(Audience.SIGNED_IN), *needs(Audience.GRANTED)]
        if browser.get(address.path).status_code != 403
    }

    own = {"/account", "/account/session", "/account/sessions/end"}
    own |= {"/password", "/preferences", "/search"}
    # Ask for a right on each object of the plan that comes back, or on what a chart is about.
    by_object = {"/plans/apply", "/plans/preview", "/plans/show", "/series"}
    # Forms about one group, which say themselves what their user may not do.
    by_object |= {"/group/reset", "/group/offsets/delete", "/group/delete"}
    seen = {"/", "/topics", "/topics/orders", "/groups", "/groups/orders", "/group"}
    seen |= {"/brokers", "/brokers/1", "/brokers/1/order"}
    seen |= {"/connectors", "/connectors/orders", "/connectors/orders/dead-letters"}
    seen |= {"/connectors/orders/redrives", "/spark"}
    # Shows users their own tokens and calls, and nothing of others.
    own |= {"/tokens", "/tokens/new", "/tokens/1/revoke", "/traffic", "/api"}
    # Says whose right is missing, where it has found the topic; records come from elsewhere.
    seen |= {"/topics/orders/messages"}
    assert reached == {*seen, *by_object, *own}


def test_a_given_password_opens_nothing_but_the_page_that_changes_it() -> None:
    browser = browser_of(Role.ADMIN, must_change=True)

    for address in [*needs(Audience.SIGNED_IN), *needs(Audience.GRANTED)]:
        for method in METHODS:
            answer = browser.generic(method, address.path)
            if address.path == "/password":
                assert answer.status_code != 302 or method == "POST"
            else:
                assert (answer.status_code, answer["Location"]) == (302, "/password")


def test_the_page_of_a_refusal_names_the_right_and_who_gives_it(settings: Settings) -> None:
    users.user("alice")
    users.user("zoe")

    view = requires_right(Operation.MANAGE_USERS)(lambda _request: HttpResponse("shown"))

    settings.ROOT_URLCONF = urls_of(view)
    answer = browser_of(Role.VIEWER).get("/")

    page = answer.content.decode()
    assert answer.status_code == 403
    assert "You may not manage users. The role admin includes it" in page
    assert "Admins of this console: alice, zoe." in page


@pytest.mark.parametrize("operation", Operation)
def test_a_refusal_can_be_told_for_every_operation(
    operation: Operation, settings: Settings
) -> None:
    view = requires_right(operation)(lambda _request: HttpResponse("shown"))

    settings.ROOT_URLCONF = urls_of(view)
    answer = browser_of(None).get("/")

    assert answer.status_code == 403
    assert f"You may not {OPERATIONS[operation].verb}." in answer.content.decode()


def test_a_view_that_declares_nothing_serves_nobody(settings: Settings) -> None:
    def forgotten(_request: HttpRequest) -> HttpResponse:
        return HttpResponse("shown to everybody")

    settings.ROOT_URLCONF = urls_of(forgotten)
    answer = browser_of(Role.ADMIN).get("/")
    of_nobody = Client().get("/")

    assert answer.status_code == 403
    assert "has no access rule" in answer.content.decode()
    assert of_nobody["Location"] == "/login?next=/"


def urls_of(view: object) -> object:
    """Return a table of addresses with one view at the root."""

    class Table:
        urlpatterns = [  # noqa: RUF012
            path("", view),  # type: ignore[call-overload]
            path("account", view),  # type: ignore[call-overload]
            # The frame around a refusal leads to pages.
            path("", include("console.urls")),
        ]
        handler400 = urls.handler400
        handler403 = urls.handler403
        handler404 = urls.handler404
        handler500 = urls.handler500

    return Table


@pytest.mark.parametrize(
    "wanted",
    [
        "//evil.example/",
        "https://evil.example/",
        "https:evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "javascript:alert(1)",
        " //evil.example",
        "///evil.example",
    ],
)
def test_signing_in_leads_to_no_other_site(wanted: str) -> None:
    users.user("alice")

    answer = Client().post(
        "/login", {"username": "alice", "password": users.PASSWORD, "next": wanted}
    )

    assert answer.status_code == 302
    assert answer["Location"] == "/"


def test_a_visitor_returns_to_the_address_of_before_signing_in() -> None:
    end = "/account/sessions/end"
    assert Client().post(end)["Location"] == f"/login?next={end}"
    assert Client().get("/topics?q=a")["Location"] == "/login?next=/topics%3Fq%3Da"


@pytest.mark.parametrize("grants", [0, 3])
def test_a_request_reads_its_session_its_user_and_what_decides_in_three_queries(
    grants: int,
) -> None:
    user = users.user("alice", role=Role.VIEWER)
    for operation in list(Operation)[1 : 1 + grants]:
        users.grant(user, operation)
    browser = Client()
    browser.force_login(user)
    view = requires_right(Operation.VIEW)(lambda _request: HttpResponse("shown"))

    settings.ROOT_URLCONF = urls_of(view)
    with CaptureQueriesContext(connection) as read:
        answer = browser.get("/")

    assert answer.content == b"shown"
    assert len(read) == 3


def test_rights_are_the_same_read_for_a_request_and_by_number() -> None:
    for role in (None, *Role):
        user = users.user(f"{role}", role=role, must_change=role is Role.VIEWER)
        request = RequestFactory().get("/")
        request.user = user

        access = selectors.access_of(request)

        assert access.rights.grants == selectors.rights_of_user(user.pk).grants
        assert access.must_change_password == selectors.must_change_password(user.pk)
        assert selectors.access_of(request) is access


def test_the_gate_stands_behind_the_session_and_the_user() -> None:
    order = settings.MIDDLEWARE
    assert order[-1] == f"{AccessGate.__module__}.{AccessGate.__name__}"


def test_cookies_of_the_session_are_for_this_site_and_no_script() -> None:
    users.user("alice")
    browser = Client()
    browser.post("/login", {"username": "alice", "password": users.PASSWORD})

    cookie = browser.cookies[settings.SESSION_COOKIE_NAME]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
    assert cookie["max-age"] == 12 * 3600
