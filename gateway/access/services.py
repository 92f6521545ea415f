"""Changes users, their rights and their sessions.

Each call is one transaction and one reported change. A change that violates a rule raises Refused
with a sentence for the page. Changed rights and passwords end the user's sessions, so no session
key outlives the rights it was given with.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from gateway.access import first_user, grants, models, selectors
from gateway.access.audit import Actor
from gateway.access.changes import tell
from gateway.access.grants import BadGrant, Grant
from gateway.access.operations import Role

# More than any person can review; they are read and compiled with every request.
MAX_GRANTS: Final = 100


class Refused(Exception):
    """A change that violates a rule; the text names the rule and an alternative."""


def create_user(*, actor: Actor, name: str, grant: Grant, password: str | None = None) -> str:
    """Create a user with a first grant; return the password, to be changed at first login."""
    # Normalize as the sign-in form does, which would not find the name otherwise.
    name = User.normalize_username(name)
    given = _checked_password(password, User(username=name))
    check_grant(grant)
    try:
        with transaction.atomic():
            user = User(username=name)
            _validate_name(user)
            user.set_password(given)
            user.save()
            models.Account.objects.create(user=user, must_change_password=True)
            _create_grant(user, grant)
            tell("user.created", actor=actor, subject=name, grant=described(grant))
    except IntegrityError:
        raise Refused(f"there is a user “{name}” already: choose another name") from None
    return given


def add_grant(*, actor: Actor, number: int, grant: Grant) -> None:
    check_grant(grant)
    with _changing(number) as user:
        if user.grants.count() >= MAX_GRANTS:
            raise Refused(
                f"{user.username} has {MAX_GRANTS} rights, the maximum: remove some, or give a "
                "role or a prefix in their place"
            )
        try:
            with transaction.atomic():
                _create_grant(user, grant)
        except IntegrityError:
            raise Refused(f"{user.username} has this right already") from None
        _end_sessions(user)
        tell("user.granted", actor=actor, subject=user.username, grant=described(grant))


def remove_grant(*, actor: Actor, number: int, grant: int) -> None:
    with _changing(number) as user:
        row = user.grants.filter(pk=grant).first()
        if row is None:
            raise Refused(f"{user.username} no longer has this right: reload the page")
        told = selectors.grant_of(row)
        is_own = user.username == actor.name
        if is_own and told == grants.FULL_ADMIN:
            raise Refused("you cannot take the role of admin from yourself: ask another admin")
        row.delete()
        _end_sessions(user)
        tell(
            "user.revoked",
            actor=actor,
            subject=user.username,
            grant=str(row) if told is None else described(told),
        )


def set_enabled(*, actor: Actor, number: int, is_enabled: bool) -> None:
    """Enable or disable a user's sign-in."""
    with _changing(number) as user:
        if not is_enabled:
            _refuse_own(actor, user, "disable")
        user.is_active = is_enabled
        user.save(update_fields=["is_active"])
        _end_sessions(user)
        event = "user.enabled" if is_enabled else "user.disabled"
        tell(event, actor=actor, subject=user.username)


def delete_user(*, actor: Actor, number: int) -> None:
    with _changing(number) as user:
        _refuse_own(actor, user, "delete")
        user.delete()
        _forget_first_password(user)
        tell("user.deleted", actor=actor, subject=user.username)


def reset_password(*, actor: Actor, number: int, password: str | None = None) -> str:
    """Reset a user's password to one that must be changed at first login; return it."""
    with _changing(number) as user:
        if user.username == actor.name:
            raise Refused("change your own password on the page of your account")
        given = _checked_password(password, user)
        _set_password(user, given, must_change=True)
        _end_sessions(user)
        tell("user.password_reset", actor=actor, subject=user.username)
    return given


def change_own_password(user: User, *, actor: Actor, password: str) -> None:
    """Set a password that the user has chosen; a form has checked the former one.

    All sessions end except one: the caller gives that one a new key.
    """
    with transaction.atomic():
        _set_password(user, password, must_change=False)
        tell("user.password_changed", actor=actor, subject=user.username)


def end_sessions(*, actor: Actor, number: int, but: str | None = None) -> int:
    """Sign a user out everywhere, except in the session of one key; return how many ended."""
    with _changing(number) as user:
        if ended := _end_sessions(user, but=but):
            tell("user.sessions_ended", actor=actor, subject=user.username, sessions=str(ended))
    return ended


def described(grant: Grant) -> str:
    """Return a grant in the words of the audit log and the pages."""
    what = grant.role or grant.operation
    assert what is not None, "checked when it was made"
    where = "all clusters" if grant.cluster == grants.ANY else f"cluster {grant.cluster}"
    if grant.kind is None:
        return f"{what.value} on {where}"
    names = "" if grant.pattern == grants.ANY else f" {grant.pattern}"
    return f"{what.value} on {grant.kind.value}{names or 's'} of {where}"


def check_grant(grant: Grant) -> None:
    """Raise Refused for an invalid grant."""
    try:
        grants.check(grant)
    except BadGrant as error:
        raise Refused(str(error)) from error


def columns_of(grant: Grant) -> dict[str, str]:
    """Return a grant as columns of either table."""
    return {
        "role": grant.role.value if grant.role else "",
        "operation": grant.operation.value if grant.operation else "",
        "cluster": grant.cluster,
        "kind": grant.kind.value if grant.kind else "",
        "pattern": grant.pattern,
    }


@contextmanager
def _changing(number: int) -> Iterator[User]:
    """Change one user in a transaction, and refuse a change that leaves no administrator.

    The rows of all full administrators are locked first, so two that demote each other at the same
    time take turns, and the second one is refused.
    """
    with transaction.atomic():
        list(selectors.admin_grants().select_for_update(of=("self",)).order_by("pk"))
        user = User.objects.filter(pk=number).first()
        if user is None:
            raise Refused("this user no longer exists: go back to the list of users")
        had_admin = selectors.admin_grants().exists()
        yield user
        if had_admin and not selectors.admin_grants().exists():
            raise Refused(
                f"{user.username} is the last admin of this console: make another user an admin "
                "first"
            )


def _refuse_own(actor: Actor, user: User, verb: str) -> None:
    if user.username == actor.name:
        raise Refused(f"you cannot {verb} your own account: ask another admin")


def _create_grant(user: User, grant: Grant) -> None:
    models.Grant.objects.create(user=user, **columns_of(grant))


def _validate_name(user: User) -> None:
    try:
        user.clean_fields(exclude=["password"])
    except ValidationError as error:
        raise Refused(" ".join(error.messages)) from error


def _checked_password(password: str | None, user: User) -> str:
    """Return a valid password for a user; generate one if it is None."""
    if password is None:
        return first_user.new_password()
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Refused(" ".join(error.messages)) from error
    return password


def _set_password(user: User, password: str, *, must_change: bool) -> None:
    user.set_password(password)
    user.save(update_fields=["password"])
    models.Account.objects.update_or_create(
        user=user, defaults={"must_change_password": must_change}
    )
    _forget_first_password(user)


def _forget_first_password(user: User) -> None:
    name = user.username
    transaction.on_commit(lambda: first_user.forget_password_of(name))


def _end_sessions(user: User, *, but: str | None = None) -> int:
    ended, _ = models.Session.objects.filter(user=user).exclude(session_key=but or "").delete()
    return ended


def ensure_role(*, actor: Actor, name: str, role: Role) -> None:
    """Give a user a role on everything, for an operator with a shell on the host."""
    user = User.objects.filter(username=name).first()
    if user is None:
        raise Refused(f"there is no user “{name}”: `createsuperuser` makes one")
    add_grant(actor=actor, number=user.pk, grant=Grant(role=role))
