"""Adds headers to every answer, and determines the client of every request.

A page may load resources of this host only, and runs no inline script; so text of a record or a
topic name in a page stays text.
"""

from collections.abc import Callable
from typing import Final

from django.conf import settings
from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.text import compress_string

from gateway.addresses import client_address
from gateway.rest.compression import accepts_gzip

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
POLICY_HEADER: Final = "Content-Security-Policy"
# An alternative that a view can request by a keyword in the header: images in style sheets.
DATA_IMAGES: Final = POLICY.replace("img-src 'self'", "img-src 'self' data:")
POLICIES: Final = {"data images": DATA_IMAGES}
HEADERS: Final = {
    POLICY_HEADER: POLICY,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
# Pages behind the login must not stay in a browser's history, or in a proxy. Static files set their
# own lifetime.
UNLESS_SAID: Final = {"Cache-Control": "no-store"}


# What gets much smaller. The checkout has about a hundred such files; all compressed take 1 MB.
COMPRESSED_TYPES: Final = frozenset({"text/css", "text/javascript", "image/svg+xml"})
MAX_COMPRESSED: Final = 200
OK: Final = 200


class SecurityHeaders:
    """First in the list, so that it covers every answer."""

    # An attribute of Django: asynchronous code would only move work between threads.
    async_capable = False
    sync_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self._get_response(request)
        policy = POLICIES.get(response.get(POLICY_HEADER, ""), POLICY)
        for name, value in HEADERS.items():
            response[name] = value
        response[POLICY_HEADER] = policy
        for name, value in UNLESS_SAID.items():
            response.setdefault(name, value)
        return response


class CompressedStatic:
    """Compresses scripts and styles for browsers that take gzip, each once per process.

    Pages are not compressed: text that others chose beside a secret would reveal its length.
    """

    async_capable = False
    sync_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response
        self._compressed: dict[tuple[str, str], bytes] = {}

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = self._get_response(request)
        if not (
            request.method == "GET"
            and request.path.startswith(settings.STATIC_URL)
            and isinstance(response, FileResponse)
            and response.status_code == OK
            and response.get("Content-Type", "").partition(";")[0] in COMPRESSED_TYPES
        ):
            return response
        if not accepts_gzip(request.headers.get("Accept-Encoding", "")):
            patch_vary_headers(response, ("Accept-Encoding",))
            return response
        # A file that changes has another time.
        key = (request.path, response.get("Last-Modified", ""))
        body = self._compressed.get(key)
        if body is None:
            body = compress_string(b"".join(response.streaming_content))  # type: ignore[arg-type]
            if len(self._compressed) >= MAX_COMPRESSED:
                self._compressed.clear()
            self._compressed[key] = body
        response.close()
        own = {"Content-Encoding": "gzip", "Content-Length": str(len(body))}
        answer = HttpResponse(body, headers=dict(response.items()) | own)
        patch_vary_headers(answer, ("Accept-Encoding",))
        return answer


class ClientAddress:
    """Replaces a trusted proxy's address by the client's, for all later code."""

    async_capable = False
    sync_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if settings.TRUSTED_PROXIES:
            request.META["REMOTE_ADDR"] = client_address(
                request.META.get("REMOTE_ADDR") or "",
                request.META.get("HTTP_X_FORWARDED_FOR", ""),
                settings.TRUSTED_PROXIES,
            )
        return self._get_response(request)
