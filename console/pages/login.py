"""Signs users in, limited by address and account, and by concurrent password checks."""

from typing import Final

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.decorators import method_decorator

from console import kept_forms
from console.events import running
from console.pages.form_addresses import takes_forms
from gateway.access import audit, first_user, login_limits, selectors, sessions
from gateway.access.turns import TooBusy

# The Retry-After while too many passwords are being checked.
BUSY_SECONDS: Final = 5


class Login(LoginView):
    template_name = "console/login.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if "password" not in request.POST:
            # The page of too many attempts leads back, with the form that is kept.
            return self.get(request, *args, **kwargs)
        # Count before the check: guesses sent at once must not all pass, and checking a password is
        # deliberately expensive.
        sources = _sources(request)
        wait_s = login_limits.attempt(sources)
        if wait_s:
            return limited(request, wait_s, is_busy=False)
        try:
            answer: HttpResponse = super().post(request, *args, **kwargs)
        except TooBusy:
            # Not a failure of the user.
            login_limits.take_back(sources)
            return limited(request, BUSY_SECONDS, is_busy=True)
        return answer

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        login_limits.forget(_sources(self.request))
        # Drop all data of the browser's former session before signing in.
        self.request.session.flush()
        answer: HttpResponse = super().form_valid(form)
        sessions.note_origin(self.request)
        sessions.make_room(form.get_user().pk)
        audit.record(
            "user.signed_in",
            actor=selectors.actor_of(self.request),
            subject=form.get_user().get_username(),
        )
        return answer

    def get_success_url(self) -> str:
        """Return the page of the form that was kept for this user; else the requested page."""
        form = kept_forms.bring_back(self.request, self.request.POST.get("kept", ""))
        return form or str(super().get_success_url())

    def get_redirect_url(self, request: HttpRequest | None = None) -> str:  # noqa: ARG002 - as its stubs
        """Return the requested page, on this site and other than this page."""
        wanted: str = super().get_redirect_url()
        return "" if wanted.partition("?")[0] == self.request.path else wanted

    def get_context_data(self, **kwargs: object) -> dict[str, object]:
        context: dict[str, object] = super().get_context_data(**kwargs)
        named, kept = (self.request.POST.get(name, "") for name in ("username", "kept"))
        return {**context, "name": named, "kept": kept, "has_password_file": first_user.has_file()}


@method_decorator(takes_forms(lambda _: "/"), name="dispatch")
class Logout(LogoutView):
    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        key = request.session.session_key
        answer: HttpResponse = super().post(request, *args, **kwargs)
        if key:
            running.end_session(key)
        return answer


def limited(request: HttpRequest, wait_s: int, *, is_busy: bool) -> HttpResponse:
    context = {"minutes": -(-wait_s // 60), "seconds": wait_s, "is_busy": is_busy}
    response = render(request, "console/login_limited.html", context, status=429)
    response["Retry-After"] = str(wait_s)
    return response


def _sources(request: HttpRequest) -> login_limits.Sources:
    return login_limits.Sources(
        address=request.META.get("REMOTE_ADDR") or "",
        account=request.POST.get("username", ""),
    )
