"""Whose session a stream belongs to, read without touching it.

A stream is no activity: nothing here writes a session, makes it last longer, or gives it a new key.
So Django's own `get_user` is not asked, which renews a session that was signed with a former key.
"""

from collections.abc import Mapping
from typing import Final

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.db import close_old_connections
from django.utils.crypto import constant_time_compare

from console.events.hub import Owner
from gateway.access import selectors
from gateway.access.sessions import SessionStore

# Django's keys have 32 characters.
MAX_KEY_LENGTH: Final = 64


def owner_of(cookies: Mapping[str, str]) -> Owner | None:
    """Return who sent these cookies; None for anybody who is not signed in."""
    key = cookies.get(settings.SESSION_COOKIE_NAME, "")
    if not key or len(key) > MAX_KEY_LENGTH:
        return None
    try:
        return _owner(key)
    finally:
        # There is no request whose end would do it.
        close_old_connections()


def is_valid(session_key: str) -> bool:
    return owner_of({settings.SESSION_COOKIE_NAME: session_key}) is not None


def _owner(session_key: str) -> Owner | None:
    # Empty for a session that has ended, or never was.
    session = SessionStore(session_key).load()
    if session.get(BACKEND_SESSION_KEY) not in settings.AUTHENTICATION_BACKENDS:
        return None
    user = User.objects.filter(pk=session.get(SESSION_KEY), is_active=True).first()
    if user is None:
        return None
    # The hash is of the password: a new one ends the sessions of the old one.
    held = session.get(HASH_SESSION_KEY, "")
    valid = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    if not any(constant_time_compare(held, known) for known in valid):
        return None
    if selectors.must_change_password(user.pk):
        return None
    return Owner(user_id=user.pk, session_key=session_key, rights=selectors.rights_of_user(user.pk))
