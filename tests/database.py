"""Django in tests: the project set up once per process, and fresh databases for each test.

Tables are made once per run and copied, so that a test pays for a file copy and not for migrations.
What runs on PostgreSQL takes a database of its own on a server that `tests/postgres.py` starts.
"""

import atexit
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from brokers.key_files import write_keys
from tests.postgres import PostgresServer
from tests.suite.shared import made_once
from tests.suite.tables import TABLES

SESSION_KEY = f"1.{'5e' * 32}"
CLUSTER_ID = "cluster-of-the-tests-0"
# The database of a server that others are copies of.
MIGRATED = "migrated"
FILES = {"default": "web.db", "cluster": "cluster.db", "connect": "connect.db"}


@cache
def project_home() -> Path:
    """Set up Django, once per process, with a home that the process owns; return it."""
    assert "gateway.home" not in sys.modules, "it was imported before it could know this home"
    home = Path(tempfile.mkdtemp(prefix="samsa-django-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    # What an agent would have written.
    write_keys(home / "secrets" / "session", (SESSION_KEY,))
    (home / "cluster-id").write_text(f"{CLUSTER_ID}\n", encoding="ascii")
    os.environ["SAMSA_HOME"] = str(home)
    # The name by which Django's test client asks.
    os.environ["SAMSA_ALLOWED_HOSTS"] = "testserver"
    os.environ["DJANGO_SETTINGS_MODULE"] = "gateway.settings"
    os.environ.pop("DATABASE_URL", None)
    # Imported late: Django reads its settings when it is first asked for one.
    import django  # noqa: PLC0415

    django.setup()
    # Else workers inherit it, and pytest-django sets Django up there before a home is made.
    del os.environ["DJANGO_SETTINGS_MODULE"]
    return home


def migrated() -> Path:
    """Return a folder with the SQLite files, their tables made and nothing in them."""
    project_home()
    return made_once(TABLES, migrate_files)


def migrate_files(folder: Path) -> None:
    from django.core.management import call_command  # noqa: PLC0415
    from django.db import connections  # noqa: PLC0415

    with pointed_at({alias: {"NAME": folder / name} for alias, name in FILES.items()}):
        for alias in FILES:
            call_command(
                "migrate", database=alias, verbosity=0, interactive=False, skip_checks=True
            )
            with connections[alias].cursor() as cursor:
                # Out of the log and into the file, which is copied alone.
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def sqlite_databases(folder: Path) -> Iterator[None]:
    """Point Django at fresh, empty databases in a folder."""
    source = migrated()
    for name in FILES.values():
        shutil.copyfile(source / name, folder / name)
    with pointed_at({alias: {"NAME": folder / name} for alias, name in FILES.items()}):
        yield


@contextmanager
def pointed_at(places: dict[str, dict[str, Any]], *, is_one: bool = False) -> Iterator[None]:
    """Change the settings of Django's databases for a while, in every thread to come."""
    from django.conf import settings  # noqa: PLC0415
    from django.db import connections  # noqa: PLC0415
    from django.test.utils import override_settings  # noqa: PLC0415

    from brokers.controlplane.services import refusals  # noqa: PLC0415

    assert settings.configured, "the project is set up"
    # As in a new process; otherwise a refusal of an earlier test would count as repeated here.
    refusals._hours.clear()  # noqa: SLF001
    before = {alias: dict(connections.settings[alias]) for alias in places}
    connections.close_all()
    for alias, place in places.items():
        forget(alias)
        connections.settings[alias] = {**before[alias], **place}
    try:
        with override_settings(IS_ONE_DATABASE=is_one):
            yield
    finally:
        for alias, place in before.items():
            connections[alias].close()
            forget(alias)
            connections.settings[alias] = place


def forget(alias: str) -> None:
    """Drop this thread's connection object, which has the settings it was made with."""
    from django.db import connections  # noqa: PLC0415

    with suppress(AttributeError):
        del connections[alias]


@contextmanager
def postgres_database(server: PostgresServer) -> Iterator[str]:
    """Point Django at a fresh database of a server, its tables made; return its URL."""
    name = f"test_{secrets.token_hex(8)}"
    url = server.make_database(name, template=migrated_on(server.folder, server.port))
    try:
        with pointed_at_postgres(url):
            yield url
    finally:
        # A server that a test has stopped takes its databases with it.
        if server.is_shared:
            server.drop_database(name)


def migrated_on(folder: Path, port: int) -> str:
    """Make, once per run and server, a database with all tables and nothing in them."""
    project_home()

    def migrate(_folder: Path) -> None:
        from django.core.management import call_command  # noqa: PLC0415

        server = PostgresServer(folder=folder, port=port)
        with pointed_at_postgres(server.make_database(MIGRATED)):
            try:
                call_command("migrate", verbosity=0, interactive=False, skip_checks=True)
            except BaseException:
                # The next worker that asks meets the same failure, and not a database in its way.
                server.drop_database(MIGRATED)
                raise

    made_once(f"{TABLES}-{folder.name}", migrate)
    return MIGRATED


@contextmanager
def pointed_at_postgres(url: str) -> Iterator[None]:
    """Point all of Django's databases at one of PostgreSQL's."""
    from django.db import connections  # noqa: PLC0415

    from gateway.settings import server as place_of  # noqa: PLC0415

    with pointed_at(dict.fromkeys(FILES, place_of(url)), is_one=True):
        try:
            yield
        finally:
            # Pools are kept by alias, whatever server they lead to.
            for alias in FILES:
                connection: Any = connections[alias]
                connection.close()
                connection.close_pool()
