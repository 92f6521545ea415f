"""Finds the user of a stream's session without changing the session."""

from collections.abc import Collection, Mapping

from django.conf import settings
from django.db import close_old_connections

from console.events.hub import Owner
from gateway.access import session_users, sessions


def owner_of(cookies: Mapping[str, str]) -> Owner | None:
    """Return the user of these cookies; None unless signed in."""
    key = cookies.get(settings.SESSION_COOKIE_NAME, "")
    try:
        user = session_users.user_of(key)
    finally:
        # No request ends in this thread, which would do it otherwise.
        close_old_connections()
    if user is None:
        return None
    return Owner(user_id=user.number, session_key=key, rights=user.rights)


def is_valid(session_key: str) -> bool:
    return owner_of({settings.SESSION_COOKIE_NAME: session_key}) is not None


def lasting(session_keys: Collection[str]) -> set[str]:
    """Return the keys of sessions that have not ended."""
    try:
        return sessions.lasting(session_keys)
    finally:
        close_old_connections()
