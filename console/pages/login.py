"""The login, bounded per address and per account."""

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from console import login_limits


class Login(LoginView):
    template_name = "console/login.html"
    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        # Counted before the password is looked at: guesses sent at once must not all pass, and
        # checking a password is work on purpose.
        wait_s = login_limits.attempt(_sources(request))
        if wait_s:
            context = {"minutes": -(-wait_s // 60)}
            response = render(request, "console/login_limited.html", context, status=429)
            response["Retry-After"] = str(wait_s)
            return response
        answer: HttpResponse = super().post(request, *args, **kwargs)
        return answer

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        login_limits.forget(_sources(self.request))
        answer: HttpResponse = super().form_valid(form)
        return answer


def _sources(request: HttpRequest) -> login_limits.Sources:
    return login_limits.Sources(
        address=request.META.get("REMOTE_ADDR") or "",
        account=request.POST.get("username", ""),
    )
