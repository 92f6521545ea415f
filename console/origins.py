"""Determines who requests a change in a browser, for the audit."""

from django.http import HttpRequest

from brokers.cluster.origins import Origin
from gateway.access.selectors import digest


def origin_of(request: HttpRequest) -> Origin:
    """Return the user, the address behind trusted proxies, and the digest of the session."""
    return Origin(
        actor=f"User:{request.user.get_username()}",
        address=request.META.get("REMOTE_ADDR") or "",
        session=digest(request.session.session_key or ""),
    )
