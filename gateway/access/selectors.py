"""Reads users, their rights and their sessions for other packages."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.contrib.auth.models import User
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac

from gateway.access import models
from gateway.access.audit import Actor
from gateway.access.grants import ANY, Grant, Rights
from gateway.access.operations import Kind, Operation, Role

# Users of a console are people; a page shows this many and the total.
MAX_USERS: Final = 500
ATTRIBUTE: Final = "_samsa_access"
GRANT_COLUMNS: Final = ("role", "operation", "cluster", "kind", "pattern")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What decides on a user's request."""

    rights: Rights
    must_change_password: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedGrant:
    """A grant with the number that identifies it for removal."""

    number: int
    grant: Grant


@dataclass(frozen=True, slots=True, kw_only=True)
class UserSummary:
    number: int
    name: str
    grants: tuple[NumberedGrant, ...]
    last_login: datetime | None
    sessions: int
    is_enabled: bool
    must_change_password: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSession:
    """A signed-in browser. Pages identify it by the digest, since they must not show its key."""

    digest: str
    started_at: datetime
    active_at: datetime
    ends_at: datetime
    address: str
    agent: str


def access_of(request: HttpRequest) -> Access:
    """Return what decides on a request: one query, however often it is called."""
    found = getattr(request, ATTRIBUTE, None)
    if found is None:
        found = _access(request.user.pk)
        setattr(request, ATTRIBUTE, found)
    assert isinstance(found, Access), "only this function sets it"
    return found


def rights_of(request: HttpRequest) -> Rights:
    """Return the rights of a request's user."""
    return access_of(request).rights


def rights_of_user(user_id: int) -> Rights:
    rows = models.Grant.objects.filter(user_id=user_id).order_by("pk")
    return Rights(row.grant for row in _grants(rows))


def number_of(name: str) -> int | None:
    """Return the id of the user with a name: another user may have that name later."""
    return User.objects.filter(username=name).values_list("pk", flat=True).first()


def rights_of_enabled(number: int) -> Rights | None:
    """Return the rights of a user; None if the user is deleted or may not sign in."""
    is_enabled = User.objects.filter(pk=number, is_active=True).exists()
    return rights_of_user(number) if is_enabled else None


def must_change_password(user_id: int) -> bool:
    return models.Account.objects.filter(user_id=user_id, must_change_password=True).exists()


def actor_of(request: HttpRequest) -> Actor:
    return Actor(
        name=request.user.get_username() or "nobody",
        address=request.META.get("REMOTE_ADDR") or "",
    )


def users(*, contains: str = "") -> list[UserSummary]:
    """Return users by name, at most MAX_USERS of them, in three queries."""
    rows = list(_user_rows().filter(username__icontains=contains).order_by("username")[:MAX_USERS])
    return _summaries(rows)


def user_count() -> int:
    return User.objects.count()


def user(number: int) -> UserSummary | None:
    found = _summaries(list(_user_rows().filter(pk=number)))
    return found[0] if found else None


def user_name(number: int) -> str:
    """Return a user's name; "nobody" for a deleted user."""
    return User.objects.filter(pk=number).values_list("username", flat=True).first() or "nobody"


def open_sessions(user_id: int) -> list[OpenSession]:
    """Return a user's sessions that have not ended, the most active first."""
    rows = models.Session.objects.filter(user_id=user_id, expire_date__gt=timezone.now())
    return [
        OpenSession(
            digest=digest(row.session_key),
            started_at=row.started_at,
            active_at=row.active_at,
            ends_at=row.expire_date,
            address=row.address,
            agent=row.agent,
        )
        for row in rows.order_by("-active_at")
    ]


def is_session(session_key: str | None, named: str) -> bool:
    """Tell whether a digest belongs to the session of a key."""
    return session_key is not None and constant_time_compare(digest(session_key), named)


def admins() -> list[str]:
    """Return the names of the enabled users who can grant every right."""
    return list(admin_grants().order_by("user__username").values_list("user__username", flat=True))


def admin_grants() -> QuerySet[models.Grant]:
    return models.Grant.objects.filter(
        role=Role.ADMIN.value, cluster=ANY, kind="", pattern=ANY, user__is_active=True
    )


def digest(session_key: str) -> str:
    return salted_hmac("gateway.access.session", session_key, algorithm="sha256").hexdigest()[:16]


def grant_of(row: models.GrantColumns) -> Grant | None:
    """Return the grant of a row; None for values that a newer release has written."""
    return _grant(row.role, row.operation, row.cluster, row.kind, row.pattern)


def _grant(role: str, operation: str, cluster: str, kind: str, pattern: str) -> Grant | None:
    try:
        return Grant(
            role=Role(role) if role else None,
            operation=Operation(operation) if operation else None,
            cluster=cluster,
            kind=Kind(kind) if kind else None,
            pattern=pattern,
        )
    except ValueError:
        return None


def _access(user_id: int | None) -> Access:
    """Read a user's rights and state in one query: a row for each grant, or one without any."""
    columns = ("account__must_change_password", *(f"grants__{name}" for name in GRANT_COLUMNS))
    rows = User.objects.filter(pk__in=[user_id]).order_by("grants__pk").values_list(*columns)
    found: list[Grant] = []
    must_change = False
    for flag, *columns_of_grant in rows:
        # None if the user has no row in the joined table.
        must_change = bool(flag)
        grant = None if columns_of_grant[0] is None else _grant(*columns_of_grant)
        found += [] if grant is None else [grant]
    return Access(rights=Rights(found), must_change_password=must_change)


def _grants(rows: Iterable[models.Grant]) -> list[NumberedGrant]:
    known = [(row.pk, grant_of(row)) for row in rows]
    return [
        NumberedGrant(number=number, grant=grant) for number, grant in known if grant is not None
    ]


def _user_rows() -> QuerySet[User]:
    is_open = Q(sessions__expire_date__gt=timezone.now())
    return User.objects.annotate(open_sessions=Count("sessions", filter=is_open))


def _summaries(rows: list[User]) -> list[UserSummary]:
    numbers = [row.pk for row in rows]
    granted: dict[int, list[models.Grant]] = {}
    for grant in models.Grant.objects.filter(user_id__in=numbers).order_by("pk"):
        granted.setdefault(grant.user_id, []).append(grant)
    given = set(
        models.Account.objects.filter(user_id__in=numbers, must_change_password=True).values_list(
            "user_id", flat=True
        )
    )
    return [
        UserSummary(
            number=row.pk,
            name=row.get_username(),
            grants=tuple(_grants(granted.get(row.pk, ()))),
            last_login=row.last_login,
            sessions=getattr(row, "open_sessions", 0),
            is_enabled=row.is_active,
            must_change_password=row.pk in given,
        )
        for row in rows
    ]
