"""Makes the tables and the first user, when a home is new or the code is.

A start that finds nothing to do must cost nothing, so the migrations are not asked: a hash over
them stands in the home, and only another hash makes Django look.
"""

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import django
from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, OperationalError, ProgrammingError, connections

from brokers.controlplane import database, models
from brokers.controlplane.agent.home import sync_folder
from brokers.controlplane.logs import log

HASH_FILE: Final = "migrated"
ADMIN_NAME: Final = "admin"
ADMIN_PASSWORD_FILE: Final = "admin-password"  # noqa: S105 - the name of the file
ADMIN_PASSWORD_BYTES: Final = 18  # 24 characters to type, beyond all guessing
# Two agents that start on one PostgreSQL take turns by this number, which is ours by chance.
MIGRATION_LOCK: Final = 0x53414D5341


def ensure_tables() -> None:
    """Migrate and make the first user, where the home does not say that it was done."""
    wanted = _hash()
    record = settings.SAMSA_HOME / HASH_FILE
    with suppress(FileNotFoundError):
        if record.read_text(encoding="ascii") == wanted and _has_tables():
            return
    with _alone():
        for alias in (DEFAULT_DB_ALIAS, *sorted({database.alias()} - {DEFAULT_DB_ALIAS})):
            call_command(
                "migrate", database=alias, verbosity=0, interactive=False, skip_checks=True
            )
        ensure_admin()
    record.write_text(wanted, encoding="ascii")
    log.info("tables.migrated", databases=len(settings.DATABASES))


def ensure_admin() -> None:
    """Make the first user of a console that has none, with a password nobody knows yet."""
    users = get_user_model()
    if users.objects.exists():
        return
    password = secrets.token_urlsafe(ADMIN_PASSWORD_BYTES)
    folder: Path = settings.SAMSA_SECRETS
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / ADMIN_PASSWORD_FILE
    # On the disk before the user is: a crash in between leaves a password that opens nothing, and
    # the next start writes another one; a user whose password is lost would let nobody in.
    file.unlink(missing_ok=True)
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as written:
        written.write(f"{password}\n")
        written.flush()
        os.fsync(written.fileno())
    sync_folder(folder)
    users.objects.create_superuser(username=ADMIN_NAME, password=password)
    log.info("admin.created", user=ADMIN_NAME, password_file=str(file))


def _hash() -> str:
    """Return a hash over all that decides which tables there should be, and where."""
    seen = hashlib.sha256(django.get_version().encode())
    for name in sorted(settings.DATABASES):
        place = settings.DATABASES[name]
        seen.update(
            repr(
                [name, *(str(place.get(key, "")) for key in ("ENGINE", "NAME", "HOST", "PORT"))]
            ).encode()
        )
    for app in sorted(apps.get_app_configs(), key=lambda app: app.label):
        seen.update(app.label.encode())
        for file in sorted(Path(app.path, "migrations").glob("[0-9]*.py")):
            seen.update(file.name.encode() + file.read_bytes())
    return seen.hexdigest()


def _has_tables() -> bool:
    """Tell whether the database is the one that was migrated: its file may be gone."""
    try:
        models.Cluster.objects.exists()
        get_user_model().objects.exists()
    except ProgrammingError:
        return False
    except OperationalError as error:
        # SQLite's words; anything else means that the database is away.
        if "no such table" not in str(error):
            raise
        return False
    return True


@contextmanager
def _alone() -> Iterator[None]:
    """Keep other agents from migrating the same database meanwhile."""
    here = connections[DEFAULT_DB_ALIAS]
    if here.vendor != "postgresql":
        yield
        return
    with here.cursor() as cursor:
        # A large table may take longer to change than any other statement may last.
        cursor.execute("SET statement_timeout = 0")
        cursor.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])
            cursor.execute("RESET statement_timeout")
