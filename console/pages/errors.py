"""Shows error pages; all but the refusal of a right need no database, session or login.

Django passes details to these views, and none of them is for visitors to see.
"""

import sys
from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.core.exceptions import DisallowedHost, RequestDataTooBig
from django.db import Error
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils import timezone

from console import kept_forms
from console.queries.frame import Frame, frame
from console.queries.reading import Reading, State
from gateway.access import selectors
from gateway.access.middleware import AccessDenied

# status: (what happened, what to do next)
WORDS: Final = {
    400: ("The request is invalid", "Go back and try it again from the page."),
    403: (
        "This is not allowed",
        "The form may have been open for too long: go back, reload the page and send it again.",
    ),
    404: ("There is no such page", "Check the address, or start from the overview."),
    409: ("This cannot be done as things are now", "Look again, then try it again."),
    500: (
        "Something failed here",
        "It is in the web log. Try again; if it persists, contact your administrator.",
    ),
    503: (
        "The database does not answer",
        "Brokers keep serving meanwhile. Check whether the database runs, then try again.",
    ),
}
# A console may have hundreds of admins; a page names only some.
NAMED_ADMINS: Final = 3
# The length limit of a DNS name.
MAX_SHOWN_HOST: Final = 253


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What the frame of a page needs, of a page that has nothing else."""

    frame: Frame


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer an invalid request; one with a host name that is not the console's says so."""
    if isinstance(exception, DisallowedHost):
        named = request.META.get("HTTP_HOST", "")[:MAX_SHOWN_HOST]
        return error_page(
            400,
            title=f"This console does not answer to the name {named}",
            next_step="Use the address that `./samsa status` shows, or start the home with the name"
            " in SAMSA_ALLOWED_HOSTS.",
        )
    if isinstance(exception, RequestDataTooBig):
        return error_page(
            400,
            title=f"The form is larger than {settings.DATA_UPLOAD_MAX_MEMORY_SIZE:,} bytes",
            next_step="Nothing was done. Go back and send less: a record of this size is sent with"
            " `./samsa produce --file`.",
        )
    return error_page(400)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer a user who lacks a right: which one, and who can grant it."""
    if not isinstance(exception, AccessDenied):
        return error_page(403)
    named = selectors.admins()
    more = len(named) - NAMED_ADMINS
    listed = ", ".join(named[:NAMED_ADMINS]) + (f" and {more} more" if more > 0 else "")
    context: dict[str, object] = {
        "title": "You may not do this",
        "next_step": f"{exception.decision.reason} Admins of this console: {listed or 'none yet'}.",
    }
    around = frame(request.GET.get("cluster"), selectors.rights_of(request))
    reading = Reading(state=State.LOADED, data=Around(frame=around), read_at=timezone.now())
    context |= {"reading": reading, "data": reading.data}
    return render(request, "console/forbidden.html", context, status=403)


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001
    """Answer a form without a valid token; one of before another sign-in of its user is kept."""
    return kept_forms.rescued(request) or error_page(403)


def not_found(_request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001
    return error_page(404)


def failed(_request: HttpRequest) -> HttpResponse:
    """Answer an unexpected error; a database that is down is named."""
    is_database = isinstance(sys.exc_info()[1], Error)
    return error_page(503 if is_database else 500)


def error_page(status: int, *, title: str = "", next_step: str = "") -> HttpResponse:
    usual_title, usual_step = WORDS[status]
    context = {
        "status": status,
        "title": title or usual_title,
        "next_step": next_step or usual_step,
    }
    # Render without the request: looking up the user might be what failed.
    return HttpResponse(render_to_string("console/error.html", context), status=status)
