"""Changes API tokens. Each call is one transaction and one reported change.

A change that violates a rule raises `services.Refused`. Only the result of `create_token` holds the
text of a token; it is not stored.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from gateway.access import models, token_text
from gateway.access.audit import Actor
from gateway.access.changes import tell
from gateway.access.grants import Grant, Rights, common
from gateway.access.models import ADDRESS_CHARS, MAX_TOKEN_NAME_CHARS
from gateway.access.selectors import rights_of_user
from gateway.access.services import MAX_GRANTS, Refused, check_grant, columns_of, described

# Part of a Kafka principal, of counter keys and of log lines.
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
# Valid tokens: programs of one cluster, each with a token of its own; more indicate a script that
# leaks them. Some places are kept for an operator with a shell on the host.
MAX_TOKENS: Final = 1_000
KEPT_FOR_HOST: Final = 50
# Valid tokens of one owner, and all of them that are stored, so that one user takes few places.
MAX_PER_OWNER: Final = 50
MAX_STORED_PER_OWNER: Final = 250
# Revoked and expired tokens stay visible for this long, for questions about them.
KEPT_AFTER_END: Final = timedelta(days=90)
# Two centuries: omit the lifetime for a token that never expires.
MAX_LIFE: Final = timedelta(days=73_000)
# A write per call would make every program wait for SQLite's single writer.
USE_STEP: Final = timedelta(minutes=1)


def create_token(
    *,
    actor: Actor,
    name: str,
    grants: Sequence[Grant],
    owner_id: int | None = None,
    life: timedelta | None = None,
) -> str:
    """Create a token and return its text, which is not available again.

    With an owner, it allows what both its grants and its owner's rights allow at any time; a token
    without an owner is for an operator with a shell on the host.
    """
    _check_name(name)
    _check_grants(grants)
    if life is not None and not timedelta() < life <= MAX_LIFE:
        raise Refused("a token has to expire in the future: give 1 second to 73,000 days")
    text = token_text.new()
    now = timezone.now()
    try:
        with transaction.atomic():
            _make_room(now, owner_id)
            _require_common_right(grants, owner_id)
            token = models.Token.objects.create(
                name=name,
                digest=token_text.digest(text),
                prefix=token_text.shown(text),
                created_by=actor.name,
                owner_id=owner_id,
                expires_at=None if life is None else now + life,
            )
            models.TokenGrant.objects.bulk_create(
                models.TokenGrant(token=token, **columns_of(grant)) for grant in grants
            )
            rights = ", ".join(described(grant) for grant in grants)
            tell("token.created", actor=actor, subject=name, rights=rights)
    except IntegrityError:
        raise Refused(f"there is, or was, a token “{name}”: choose another name") from None
    return text


def revoke_token(*, actor: Actor, number: int, owner_id: int | None = None) -> str:
    """Revoke a token for good; return its name. `owner_id` restricts it to that user's tokens."""
    with transaction.atomic():
        rows = models.Token.objects.filter(pk=number)
        if owner_id is not None:
            rows = rows.filter(owner_id=owner_id)
        token = rows.first()
        if token is None:
            raise Refused("this token no longer exists: reload the page")
        return _revoke(token, actor)


def revoke_named(*, actor: Actor, name: str) -> None:
    """Revoke a token by its name, for an operator with a shell on the host."""
    with transaction.atomic():
        token = models.Token.objects.filter(name=name).first()
        if token is None:
            raise Refused(f"there is no token “{name}”: `./samsa tokens list` shows all")
        _revoke(token, actor)


def revoke_all_of(*, actor: Actor, owner_id: int) -> int:
    """Revoke all valid tokens of a user; return their number."""
    with transaction.atomic():
        valid = models.Token.objects.filter(_is_valid(timezone.now()), owner_id=owner_id)
        return len([_revoke(token, actor) for token in valid.order_by("pk")])


def note_use(number: int, address: str, *, now: datetime) -> None:
    """Note the use of a token, unless that was done within the last minute."""
    is_old = Q(last_used_at__isnull=True) | Q(last_used_at__lte=now - USE_STEP)
    models.Token.objects.filter(is_old, pk=number).update(
        last_used_at=now, last_address=address[:ADDRESS_CHARS]
    )


def _revoke(token: models.Token, actor: Actor) -> str:
    if token.revoked_at is not None:
        raise Refused(f"{token.name} is revoked already")
    token.revoked_at = timezone.now()
    token.save(update_fields=["revoked_at"])
    tell("token.revoked", actor=actor, subject=token.name)
    return token.name


def _check_name(name: str) -> None:
    if len(name) > MAX_TOKEN_NAME_CHARS or not NAME.fullmatch(name):
        raise Refused(
            f"“{name[:MAX_TOKEN_NAME_CHARS]}” is not a token name: give 1 to "
            f"{MAX_TOKEN_NAME_CHARS} letters, digits, dots, underscores and hyphens"
        )


def _check_grants(grants: Sequence[Grant]) -> None:
    if not grants:
        raise Refused("a token needs at least one right: give it some")
    if len(grants) > MAX_GRANTS:
        raise Refused(f"{len(grants)} rights were given; at most {MAX_GRANTS} fit: use prefixes")
    for grant in grants:
        check_grant(grant)


def _require_common_right(grants: Sequence[Grant], owner_id: int | None) -> None:
    """Refuse a token that opens nothing now, and would when its owner is given rights."""
    if owner_id is not None and not common(Rights(grants), rights_of_user(owner_id)).patterns:
        raise Refused(
            "you have none of the rights that the token asks for, so it would open nothing: ask for"
            " less, or have an admin give you a right first"
        )


def _make_room(now: datetime, owner_id: int | None) -> None:
    """Delete tokens that ended long ago; refuse a token beyond the limits."""
    ended = now - KEPT_AFTER_END
    models.Token.objects.filter(Q(revoked_at__lte=ended) | Q(expires_at__lte=ended)).delete()
    is_valid = _is_valid(now)
    if owner_id is not None:
        own = models.Token.objects.filter(owner_id=owner_id)
        if own.filter(is_valid).count() >= MAX_PER_OWNER:
            raise Refused(
                f"you have {MAX_PER_OWNER} valid tokens, the most of one user: revoke what no"
                " program uses"
            )
        if own.count() >= MAX_STORED_PER_OWNER:
            raise Refused(
                f"you have created {MAX_STORED_PER_OWNER} tokens that are valid or ended in the"
                f" last {KEPT_AFTER_END.days} days, the most of one user: use those that are valid"
            )
    most = MAX_TOKENS if owner_id is None else MAX_TOKENS - KEPT_FOR_HOST
    if models.Token.objects.filter(is_valid).count() >= most:
        raise Refused(
            f"there are {most} valid tokens, the maximum: revoke those that no program uses"
        )


def _is_valid(now: datetime) -> Q:
    return Q(revoked_at__isnull=True) & (Q(expires_at__isnull=True) | Q(expires_at__gt=now))
