"""Stores sessions in the web database, with an idle timeout and an absolute one.

Django's own store, with a model that names the user. A row holds the time at which it ends, so
loading an expired session finds none. Polling does not extend a session: see `Requirement` and
POLL_HEADER. Activity is written at most once a minute, because SQLite has one writer at a time.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.http import HttpRequest
from django.utils import timezone

from gateway.access.models import ADDRESS_CHARS, AGENT_CHARS, Session

# A request with this header is an automatic refresh, and no sign of a user's activity.
POLL_HEADER: Final = "Samsa-Poll"
# A write per request would make every page wait for SQLite's single writer.
ACTIVITY_STEP: Final = timedelta(minutes=1)
# One person has a few browsers; more sessions were left behind, or are a leak.
MAX_PER_USER: Final = 20


class SessionStore(DatabaseStore):
    """The session of one request. Django expects this class name in the SESSION_ENGINE module."""

    def __init__(self, session_key: str | None = None) -> None:
        super().__init__(session_key)
        # The times of the row; None before there is one.
        self.started_at: datetime | None = None
        self.active_at: datetime | None = None
        self.address = ""
        self.agent = ""

    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session

    def cycle_key(self) -> None:
        """Give the session another key; a session without a user starts now."""
        if SESSION_KEY not in self:
            self.started_at = None
        super().cycle_key()

    def flush(self) -> None:
        super().flush()
        self.started_at = None

    async def acycle_key(self) -> None:
        if SESSION_KEY not in await self._aget_session():  # type: ignore[attr-defined]  # not in the stubs
            self.started_at = None
        await super().acycle_key()

    async def aflush(self) -> None:
        await super().aflush()
        self.started_at = None

    def create_model_instance(self, data: dict[str, object]) -> Session:
        now = timezone.now()
        if self.started_at is None:
            self.started_at = now
        self.active_at = now
        user_id = data.get(SESSION_KEY)
        return Session(
            session_key=self._get_or_create_session_key(),  # type: ignore[attr-defined]
            session_data=self.encode(data),
            expire_date=end_of(self.started_at, now),
            user_id=None if user_id is None else int(str(user_id)),
            started_at=self.started_at,
            active_at=now,
            address=self.address,
            agent=self.agent,
        )

    async def acreate_model_instance(self, data: dict[str, object]) -> Session:
        # The key is set before this call, so nothing here waits for a database.
        return self.create_model_instance(data)

    def mark_active(self) -> None:
        """Note activity, unless that was done within the last minute."""
        now = timezone.now()
        if self.active_at is None or now - self.active_at < ACTIVITY_STEP:
            return
        assert self.started_at is not None, "a row has both"
        self.active_at = now
        Session.objects.filter(session_key=self.session_key).update(
            active_at=now, expire_date=end_of(self.started_at, now)
        )

    def _get_session_from_db(self) -> Session | None:
        row: Session | None = super()._get_session_from_db()  # type: ignore[misc]
        self._remember(row)
        return row

    async def _aget_session_from_db(self) -> Session | None:
        row: Session | None = await super()._aget_session_from_db()  # type: ignore[misc]
        self._remember(row)
        return row

    def _remember(self, row: Session | None) -> None:
        if row is not None:
            self.started_at, self.active_at = row.started_at, row.active_at
            self.address, self.agent = row.address, row.agent


def end_of(started_at: datetime, active_at: datetime) -> datetime:
    """Return when a session ends without further activity."""
    return min(active_at + settings.SESSION_IDLE, started_at + settings.SESSION_LIMIT)


def left_s(request: HttpRequest) -> float:
    """Return the seconds until the session of a request ends without further activity."""
    started_at, active_at = _times(request)
    return max(0.0, (end_of(started_at, active_at) - timezone.now()).total_seconds())


def is_at_limit(request: HttpRequest) -> bool:
    """Tell whether no activity makes the session of a request longer."""
    started_at, active_at = _times(request)
    return end_of(started_at, active_at) == started_at + settings.SESSION_LIMIT


def note_origin(request: HttpRequest) -> None:
    """Note the origin of a new session; it is saved at the end of the request."""
    session = request.session
    assert isinstance(session, SessionStore), "SESSION_ENGINE names this module"
    session.address = (request.META.get("REMOTE_ADDR") or "")[:ADDRESS_CHARS]
    session.agent = request.headers.get("User-Agent", "")[:AGENT_CHARS]
    session.modified = True


def lasting(keys: Collection[str]) -> set[str]:
    """Return the keys whose sessions exist, have not expired, and have a user who may sign in."""
    rows = Session.objects.filter(
        session_key__in=keys, expire_date__gt=timezone.now(), user__is_active=True
    )
    return set(rows.values_list("session_key", flat=True))


def make_room(user_id: int) -> None:
    """Delete expired sessions, and the oldest ones of a user who would have too many.

    Called while a user signs in: the new session gets its user at the end of the request.
    """
    Session.objects.filter(expire_date__lte=timezone.now()).delete()
    kept = Session.objects.filter(user_id=user_id).order_by("-active_at")
    surplus = list(kept.values_list("pk", flat=True)[MAX_PER_USER - 1 :])
    Session.objects.filter(pk__in=surplus).delete()


def _times(request: HttpRequest) -> tuple[datetime, datetime]:
    session, now = request.session, timezone.now()
    assert isinstance(session, SessionStore), "SESSION_ENGINE names this module"
    return session.started_at or now, session.active_at or now
