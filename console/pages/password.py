"""Changes a user's own password: by choice, or because another person has set it."""

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from console.forms.passwords import PasswordForm
from console.pages.login import BUSY_SECONDS, limited
from gateway.access import login_limits, selectors, services
from gateway.access.operations import Operation
from gateway.access.requirements import open_before_change, signed_in
from gateway.access.turns import TooBusy


@open_before_change
@signed_in
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def password(request: HttpRequest) -> HttpResponse:
    """Change the own password; wrong present passwords count as failed logins."""
    user = request.user
    assert isinstance(user, User), "the address is open to those who are signed in"
    if request.method != "POST":
        return _form(request, PasswordForm(user))
    sources = login_limits.Sources(
        address=request.META.get("REMOTE_ADDR") or "", account=user.username
    )
    wait_s = login_limits.attempt(sources)
    if wait_s:
        return limited(request, wait_s, is_busy=False)
    try:
        return _change(request, user, sources)
    except TooBusy:
        login_limits.take_back(sources)
        return limited(request, BUSY_SECONDS, is_busy=True)


def _change(request: HttpRequest, user: User, sources: login_limits.Sources) -> HttpResponse:
    form = PasswordForm(user, request.POST)
    is_valid = form.is_valid()
    if "former" in form.cleaned_data:
        # The present password was right, whatever is wrong with the new one.
        login_limits.forget(sources)
    if not is_valid:
        return _form(request, form, status=400)
    actor = selectors.actor_of(request)
    services.change_own_password(user, actor=actor, password=form.cleaned_data["new"])
    # This session continues under another key, the others end.
    update_session_auth_hash(request, user)
    services.end_sessions(actor=actor, number=user.pk, but=request.session.session_key)
    messages.success(request, "Your password is changed. Your other sessions have ended.")
    can_view = selectors.rights_of(request).allows_somewhere(Operation.VIEW)
    return redirect("console:overview" if can_view else "console:account")


def _form(request: HttpRequest, form: PasswordForm, *, status: int = 200) -> HttpResponse:
    assert request.user.pk is not None, "signed in"
    context = {"form": form, "must_change": selectors.must_change_password(request.user.pk)}
    return render(request, "console/password.html", context, status=status)
