"""Shows a user's own account: their rights and sessions."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from console.pages.form_addresses import takes_forms
from console.queries import users as query
from gateway.access import selectors, services, sessions
from gateway.access.requirements import signed_in


@signed_in
@require_safe
def account(request: HttpRequest) -> HttpResponse:
    asking = query.Asking(
        rights=selectors.rights_of(request),
        name=request.user.get_username(),
        session_key=request.session.session_key,
    )
    reading = query.user_page(asking, request.user.pk)
    context = {"page": "account", "reading": reading, "data": reading.data}
    status = 503 if reading.is_failed else 200
    return render(request, "console/account.html", context, status=status)


@signed_in
@require_safe
def session(request: HttpRequest) -> HttpResponse:
    """Return the user of the session and the time left to it, for the script of every page."""
    return JsonResponse(
        {
            "user": request.user.get_username(),
            "ends_s": sessions.left_s(request),
            "is_limit": sessions.is_at_limit(request),
            "csrf": get_token(request),
        }
    )


@signed_in
@takes_forms(lambda _: reverse("console:account"))
def end_other_sessions(request: HttpRequest) -> HttpResponse:
    actor, key = selectors.actor_of(request), request.session.session_key
    assert request.user.pk is not None, "signed in"
    ended = services.end_sessions(actor=actor, number=request.user.pk, but=key)
    messages.success(request, f"{ended} other session{'' if ended == 1 else 's'} ended.")
    return redirect("console:account")
