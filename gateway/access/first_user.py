"""Creates the first user of a console, and the file that holds its initial password.

That password opens nothing but the page that changes it, and changing it deletes the file; the
agent checks at its start for a file that is left.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from gateway.access import audit, models
from gateway.access.changes import tell
from gateway.access.operations import Role

NAME: Final = "admin"
PASSWORD_FILE: Final = "admin-password"  # noqa: S105 - the name of the file
PASSWORD_BYTES: Final = 18  # 24 characters to type, beyond all guessing
ACTOR: Final = audit.Actor(name="agent")


def ensure() -> bool:
    """Create the first user of a console that has none; return whether it was created."""
    if User.objects.exists():
        _settle()
        return False
    password = new_password()
    # Write the file before the user: a crash in between leaves a password that opens nothing, and
    # the next start writes another one. A user whose password is lost would let no one in.
    _write(password)
    with transaction.atomic():
        user = User.objects.create_user(username=NAME, password=password)
        models.Account.objects.create(user=user, must_change_password=True)
        models.Grant.objects.create(user=user, role=Role.ADMIN.value)
        tell("user.created", actor=ACTOR, subject=NAME, grant=Role.ADMIN.value)
    return True


def new_password() -> str:
    return secrets.token_urlsafe(PASSWORD_BYTES)


def file() -> Path:
    return Path(settings.SAMSA_SECRETS, PASSWORD_FILE)


def has_file() -> bool:
    """Tell whether this home has a password of the first user that may still be valid."""
    return file().exists()


def forget_password_of(name: str) -> None:
    """Delete the file if it holds a password of this user, which has just become invalid."""
    if name != NAME:
        return
    try:
        file().unlink(missing_ok=True)
    except OSError as error:
        # The password in it is no longer valid; the agent tries again at its start.
        audit.log.warning("could not delete %s, whose password is void: %s", file(), error)


def _settle() -> None:
    """Require the first user to change a password that the file holds; delete an outdated file.

    Checking a password costs as much as a login, so do it only if the file exists and the user need
    not change the password yet: once, in a home that an earlier release created.
    """
    try:
        told = file().read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return
    user = User.objects.filter(username=NAME).first()
    if user is not None and _must_change(user):
        return
    if user is None or not user.check_password(told):
        forget_password_of(NAME)
        return
    models.Account.objects.update_or_create(user=user, defaults={"must_change_password": True})
    audit.record("user.password_must_change", actor=ACTOR, subject=NAME)


def _must_change(user: User) -> bool:
    return models.Account.objects.filter(user=user, must_change_password=True).exists()


def _write(password: str) -> None:
    path = file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        path.unlink()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as written:
        written.write(f"{password}\n")
        written.flush()
        os.fsync(written.fileno())
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
