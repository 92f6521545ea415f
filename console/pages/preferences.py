"""Sets a browser's preferences, and redirects back to the former page."""

from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme

from console.pages.form_addresses import takes_forms
from console.preferences import COOKIE_SECONDS, LOCAL, THEME_COOKIE, THEMES, TIMES_COOKIE
from gateway.access.requirements import signed_in

SYSTEM: Final = "system"
# field: (cookie, values, the default, which needs no cookie)
CHOICES: Final = {
    "theme": (THEME_COOKIE, frozenset({*THEMES, SYSTEM}), SYSTEM),
    "times": (TIMES_COOKIE, frozenset({LOCAL, "utc"}), "utc"),
}


@signed_in
@takes_forms(lambda _: "/")
def preferences(request: HttpRequest) -> HttpResponse:
    chosen = {field: request.POST[field] for field in CHOICES if field in request.POST}
    for field, value in chosen.items():
        _, values, _ = CHOICES[field]
        if value not in values:
            return HttpResponseBadRequest(
                f"{field} is {value[:64]!r}; choose one of {', '.join(sorted(values))}",
                content_type="text/plain; charset=utf-8",
            )
    answer = HttpResponseRedirect(_way_back(request))
    for field, value in chosen.items():
        cookie, _, default = CHOICES[field]
        if value == default:
            answer.delete_cookie(cookie, samesite="Lax")
        else:
            answer.set_cookie(
                cookie,
                value,
                max_age=COOKIE_SECONDS,
                secure=settings.SESSION_COOKIE_SECURE,
                httponly=True,
                samesite="Lax",
            )
    return answer


def _way_back(request: HttpRequest) -> str:
    """Return the page of the form, if it is one of this console's."""
    wanted = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(
        wanted, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return wanted if is_ours else "/"
