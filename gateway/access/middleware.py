"""Enforces the requirement of every view: the one place that admits or refuses a request.

Runs after Django's session and user middleware. A view declares its demands by `requirements`; a
view without a declaration is refused.
"""

from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import get_resolver

from gateway.access import audit, selectors
from gateway.access.grants import Decision, decide
from gateway.access.requirements import Audience, Requirement, requirement_of
from gateway.access.sessions import POLL_HEADER, SessionStore

UNDECLARED = Decision(
    is_allowed=False,
    reason="This address has no access rule, so it is closed to all users. This is a bug in this "
    "release: report it to your administrator.",
)


class AccessDenied(PermissionDenied):
    """A signed-in user lacks a right; the decision names it."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision.reason)
        self.decision = decision


class AccessGate:
    async_capable = False
    sync_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def admit(
        self,
        request: HttpRequest,
        view: Callable[..., HttpResponse],
        _args: tuple[object, ...],
        kwargs: Mapping[str, Any],
    ) -> HttpResponse | None:
        """Return a redirect or refusal; None admits the request."""
        requirement = requirement_of(view)
        if requirement is not None and requirement.audience is Audience.PUBLIC:
            return None
        user = request.user
        if isinstance(user, AnonymousUser):
            # The address of a form leads to its page.
            return redirect_to_login(request.get_full_path())
        if requirement is None:
            return refuse(request, UNDECLARED)
        _note_activity(request, requirement)
        access = selectors.access_of(request)
        if not requirement.is_open_before_change and access.must_change_password:
            return HttpResponseRedirect(settings.PASSWORD_CHANGE_URL)
        if requirement.operation is None:
            return None
        asked = None if requirement.resource is None else requirement.resource(request, kwargs)
        decision = decide(access.rights, requirement.operation, asked)
        return None if decision.is_allowed else refuse(request, decision)

    # The name that Django expects.
    process_view = admit


def refuse(request: HttpRequest, decision: Decision) -> HttpResponse:
    """Return the page for a user who lacks a right; views may call it for checks of their own."""
    audit.record(
        "access.refused",
        actor=selectors.actor_of(request),
        subject=request.path,
        method=request.method or "",
        reason=decision.reason,
    )
    page = get_resolver().resolve_error_handler(403)
    return page(request, exception=AccessDenied(decision))  # type: ignore[call-arg]  # of 403


def _note_activity(request: HttpRequest, requirement: Requirement) -> None:
    session = request.session
    assert isinstance(session, SessionStore), "SESSION_ENGINE names it"
    if requirement.is_activity and POLL_HEADER not in request.headers:
        session.mark_active()
