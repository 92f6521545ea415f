"""Tokens of programs, every value defaulted. Needs the project set up."""

from collections.abc import Sequence
from datetime import timedelta

from django.contrib.auth.models import User

from gateway.access import models, token_services
from gateway.access.audit import Actor
from gateway.access.grants import Grant
from gateway.access.token_scopes import Scope, grants_of

EVERYTHING = grants_of(Scope.ADMIN)
HOST = Actor(name="host:tester")


def token(
    name: str = "app",
    *,
    grants: Sequence[Grant] | None = None,
    owner: User | None = None,
    life: timedelta | None = None,
) -> str:
    """Make a token that reads `orders.*`, and return its text."""
    return token_services.create_token(
        actor=HOST,
        name=name,
        grants=grants_of(Scope.READ, "orders.*") if grants is None else grants,
        owner_id=None if owner is None else owner.pk,
        life=life,
    )


def number_of(name: str) -> int:
    found: int = models.Token.objects.values_list("pk", flat=True).get(name=name)
    return found


def revoke(name: str = "app") -> None:
    token_services.revoke_named(actor=HOST, name=name)
