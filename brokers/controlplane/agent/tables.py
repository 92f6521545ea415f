"""Creates the tables and the first user if the home or the code is new.

A start with nothing to do must be fast, so it does not load the migrations: the home stores a hash
of them, and Django checks only if the hash differs.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import django
from django.apps import AppConfig, apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import DEFAULT_DB_ALIAS, OperationalError, ProgrammingError, connections
from django.db.migrations.recorder import MigrationRecorder

from brokers import release
from brokers.controlplane import models
from brokers.controlplane.agent.home import NewerRelease, replace_text
from brokers.controlplane.logs import log

HASH_FILE: Final = "migrated"
# The command of the app that owns the users, and the file with the first user's password.
ENSURE_FIRST_USER: Final = "ensure_first_user"
PASSWORD_FILE: Final = "admin-password"  # noqa: S105 - the name of the file
# The advisory lock by which agents that start on one PostgreSQL take turns; an arbitrary number.
MIGRATION_LOCK: Final = 0x53414D5341

# Apps of earlier releases, whose migrations homes still record.
REMOVED_APPS: Final = frozenset({"sessions"})


def ensure_tables() -> None:
    """Migrate and create the first user, unless the home records that it was done.

    NewerRelease, before anything is written, if a database has migrations without files here.
    """
    _refuse_newer()
    _migrate_if_needed()
    replace_text(settings.SAMSA_HOME / release.RELEASE_FILE, release.note())


def _migrate_if_needed() -> None:
    wanted = _hash()
    record = settings.SAMSA_HOME / HASH_FILE
    with suppress(FileNotFoundError):
        if record.read_text(encoding="ascii") == wanted and _has_tables():
            if Path(settings.SAMSA_SECRETS, PASSWORD_FILE).exists():
                # It may have been changed on another host, which cannot delete the file here.
                call_command(ENSURE_FIRST_USER, verbosity=0)
            return
    with _alone():
        for alias in _databases():
            call_command(
                "migrate", database=alias, verbosity=0, interactive=False, skip_checks=True
            )
        call_command(ENSURE_FIRST_USER, verbosity=0)
    record.write_text(wanted, encoding="ascii")
    log.info("tables.migrated", databases=len(settings.DATABASES))


def _refuse_newer() -> None:
    known = {f"{app.label}.{file.stem}" for app, file in _migrations()}
    for alias in _databases():
        applied = MigrationRecorder(connections[alias]).applied_migrations()
        there = {f"{app}.{name}" for app, name in applied if app not in REMOVED_APPS}
        if refusal := release.newer(f"the database {alias}", there - known):
            raise NewerRelease(refusal)


def _migrations() -> Iterator[tuple[AppConfig, Path]]:
    for app in sorted(apps.get_app_configs(), key=lambda app: app.label):
        for file in sorted(Path(app.path, "migrations").glob("[0-9]*.py")):
            yield app, file


def _databases() -> tuple[str, ...]:
    """Return the databases to migrate: one, if all names mean the same database."""
    if settings.IS_ONE_DATABASE:
        return (DEFAULT_DB_ALIAS,)
    return (DEFAULT_DB_ALIAS, *sorted(set(settings.DATABASES) - {DEFAULT_DB_ALIAS}))


def _hash() -> str:
    """Return a hash of everything that determines the tables and their databases."""
    seen = hashlib.sha256(django.get_version().encode())
    for name in sorted(settings.DATABASES):
        place = settings.DATABASES[name]
        seen.update(
            repr(
                [name, *(str(place.get(key, "")) for key in ("ENGINE", "NAME", "HOST", "PORT"))]
            ).encode()
        )
    for app, file in _migrations():
        seen.update(app.label.encode() + file.name.encode() + file.read_bytes())
    return seen.hexdigest()


def _has_tables() -> bool:
    """Tell whether the database has the migrated tables: its file may be gone."""
    try:
        models.Cluster.objects.exists()
        get_user_model().objects.exists()
        # A table of an app that this one does not import; its file alone may be gone.
        apps.get_model("connectors", "Connector").objects.exists()
    except ProgrammingError:
        return False
    except OperationalError as error:
        # SQLite's message; any other one means that the database is away.
        if "no such table" not in str(error):
            raise
        return False
    return True


@contextmanager
def _alone() -> Iterator[None]:
    """Prevent other agents from migrating the same database at the same time."""
    here = connections[DEFAULT_DB_ALIAS]
    if here.vendor != "postgresql":
        yield
        return
    with here.cursor() as cursor:
        # Changing a large table may take longer than the statement timeout.
        cursor.execute("SET statement_timeout = 0")
        cursor.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])
            cursor.execute("RESET statement_timeout")
