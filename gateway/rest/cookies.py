"""Accepts the console's session for calls of its own pages, and prevents its use by other sites.

A browser sends cookies for any page, and to every port of a host. So a call must prove that it
comes from a page of the same origin; one that changes something must also have Django's CSRF token
in a header, which no other origin can read.
"""

from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseForbidden
from django.http.cookie import parse_cookie
from django.middleware.csrf import CsrfViewMiddleware

from gateway.rest.credentials import Asked
from gateway.rest.origins import is_own

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
# A fetch moves its group's offsets although it is a GET: any page can make a browser send one, and
# an image or a link does not show its origin. These segments occur in its path, before the end:
FETCH_SEGMENTS: Final = frozenset({"consumers", "instances"})
# No browser sends a longer header, and only browsers have our cookies.
MAX_COOKIE_CHARS: Final = 8_192
# The headers that Django reads from META.
NAMES: Final = {
    "host": "HTTP_HOST",
    "origin": "HTTP_ORIGIN",
    "referer": "HTTP_REFERER",
    "x-csrftoken": "HTTP_X_CSRFTOKEN",
}


class _Request(HttpRequest):
    """A request as Django's CSRF check needs it."""

    def __init__(self, asked: Asked, cookies: dict[str, str]) -> None:
        super().__init__()
        self.method = asked.method
        self.META = {NAMES[n]: value for n, value in asked.headers.items() if n in NAMES}
        self.COOKIES = cookies
        self._scheme = "https" if asked.is_secure else "http"

    def _get_scheme(self) -> str:
        return self._scheme


class _Check(CsrfViewMiddleware):
    """Django's CSRF check, without the page of the console that a refused form gets."""

    def _reject(self, request: HttpRequest, reason: str) -> HttpResponseForbidden:  # noqa: ARG002
        return HttpResponseForbidden()


def session_key(asked: Asked) -> str:
    """Return the session key of a call; empty if there is none or it may not be used."""
    key = session_of(asked)
    return key if key and refusal(asked) is None else ""


def session_of(asked: Asked) -> str:
    """Return the session key that a browser has sent, for whatever page."""
    return _cookies(asked).get(settings.SESSION_COOKIE_NAME, "")


def refusal(asked: Asked) -> str | None:
    """Return why the session of a call may not be used; None if it may."""
    is_same = is_same_origin(asked)
    has_effect = asked.is_socket or is_fetch(asked.path)
    if is_same is False or (has_effect and not is_same):
        return "the console's session is not valid for pages of another origin: use a token"
    if asked.is_socket or asked.method in SAFE_METHODS:
        return None
    return (
        None
        if _has_csrf_token(asked)
        else ("the console's session needs the header X-CSRFToken with the value of its cookie")
    )


def is_fetch(path: str) -> bool:
    """Tell whether a path is, or resembles, that of a consumer's records."""
    segments = path.rstrip("/").split("/")
    return segments[-1] == "records" and set(segments) >= FETCH_SEGMENTS


def is_same_origin(asked: Asked) -> bool | None:
    """Tell whether a page of the same origin calls; None if the client does not say."""
    site = asked.headers.get("sec-fetch-site", "")
    if site and site not in {"same-origin", "none"}:
        return False
    origin = asked.headers.get("origin", "")
    if origin:
        return is_own(origin, asked.headers)
    return True if site == "same-origin" else None


def _has_csrf_token(asked: Asked) -> bool:
    request = _Request(asked, _cookies(asked))
    check = _Check(_never)
    check.process_request(request)
    return check.process_view(request, _never, (), {}) is None


def _never(_request: HttpRequest) -> HttpResponse:
    raise AssertionError("only the check is asked")


def _cookies(asked: Asked) -> dict[str, str]:
    header = asked.headers.get("cookie", "")
    found: dict[str, str] = {} if len(header) > MAX_COOKIE_CHARS else parse_cookie(header)
    return found
