"""Finds the user of a session cookie without changing the session.

A stream or a program's call is no activity: nothing here writes a session, extends it, or gives it
a new key. Django's own `get_user` is not used because it renews a session that was signed with a
former key.
"""

from dataclasses import dataclass
from typing import Final

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import User
from django.utils.crypto import constant_time_compare

from gateway.access import selectors
from gateway.access.grants import Rights
from gateway.access.sessions import SessionStore

# Django's keys have 32 characters.
MAX_KEY_LENGTH: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionUser:
    """A signed-in user who need not change a password first."""

    number: int
    name: str
    rights: Rights


def user_of(session_key: str) -> SessionUser | None:
    """Return the user of a session key; None if there is none who may proceed."""
    if not session_key or len(session_key) > MAX_KEY_LENGTH:
        return None
    # Empty for a session that has ended or never existed.
    session = SessionStore(session_key).load()
    if session.get(BACKEND_SESSION_KEY) not in settings.AUTHENTICATION_BACKENDS:
        return None
    user = User.objects.filter(pk__in=[session.get(SESSION_KEY)], is_active=True).first()
    if user is None:
        return None
    # The hash depends on the password: a new one ends the sessions of the old one.
    held = session.get(HASH_SESSION_KEY, "")
    valid = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    if not any(constant_time_compare(held, known) for known in valid):
        return None
    if selectors.must_change_password(user.pk):
        return None
    return SessionUser(
        number=user.pk, name=user.get_username(), rights=selectors.rights_of_user(user.pk)
    )
