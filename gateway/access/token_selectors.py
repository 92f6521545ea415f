"""Reads API tokens: the owner and rights of one, and the lists of pages and the host."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from django.db.models import QuerySet
from django.utils import timezone

from gateway.access import models, selectors
from gateway.access.grants import Grant, Rights, common


class TokenState(Enum):
    VALID = "valid"
    EXPIRED = "expired"
    REVOKED = "revoked"
    # The owner may not sign in, so the token does not work.
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownToken:
    """A presented token, and the rights that it has now."""

    number: int
    name: str
    state: TokenState
    rights: Rights
    expires_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSummary:
    number: int
    name: str
    prefix: str
    state: TokenState
    grants: tuple[Grant, ...]
    created_by: str
    # Empty if the token was created on the host.
    owner: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    last_address: str


def by_digest(digest: str) -> KnownToken | None:
    """Return the token of a digest, whatever its state; None if there never was one."""
    return _known(models.Token.objects.filter(digest=digest))


def by_number(number: int) -> KnownToken | None:
    return _known(models.Token.objects.filter(pk=number))


def tokens(*, owner_id: int | None = None) -> list[TokenSummary]:
    """Return the tokens of a user, or all, by name; services limit their number."""
    rows = models.Token.objects.select_related("owner").order_by("name")
    if owner_id is not None:
        rows = rows.filter(owner_id=owner_id)
    return _summaries(rows.prefetch_related("grants"))


def token(number: int, *, owner_id: int | None = None) -> TokenSummary | None:
    """Return one token; `owner_id` restricts the search to that user's tokens."""
    return next((row for row in tokens(owner_id=owner_id) if row.number == number), None)


def _known(rows: QuerySet[models.Token]) -> KnownToken | None:
    row = rows.select_related("owner").first()
    if row is None:
        return None
    rights = Rights(_grants(row.grants.order_by("pk")))
    if row.owner_id is not None:
        rights = common(rights, selectors.rights_of_user(row.owner_id))
    return KnownToken(
        number=row.pk,
        name=row.name,
        state=_state(row, timezone.now()),
        rights=rights,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
    )


def _summaries(rows: Iterable[models.Token]) -> list[TokenSummary]:
    now = timezone.now()
    return [
        TokenSummary(
            number=row.pk,
            name=row.name,
            prefix=row.prefix,
            state=_state(row, now),
            grants=tuple(_grants(row.grants.all())),
            created_by=row.created_by,
            owner="" if row.owner is None else row.owner.get_username(),
            created_at=row.created_at,
            expires_at=row.expires_at,
            last_used_at=row.last_used_at,
            last_address=row.last_address,
        )
        for row in rows
    ]


def _state(row: models.Token, now: datetime) -> TokenState:
    if row.revoked_at is not None:
        return TokenState.REVOKED
    if row.expires_at is not None and row.expires_at <= now:
        return TokenState.EXPIRED
    if row.owner is not None and not row.owner.is_active:
        return TokenState.DISABLED
    return TokenState.VALID


def _grants(rows: Iterable[models.TokenGrant]) -> list[Grant]:
    known = (selectors.grant_of(row) for row in rows)
    return [grant for grant in known if grant is not None]
