"""Tables and the first user: made when needed, and only then."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test.utils import override_settings

from tests.database import pointed_at, project_home, sqlite_databases

project_home()

from django.contrib.auth import get_user_model  # noqa: E402

from brokers.controlplane import models  # noqa: E402
from brokers.controlplane.agent import tables  # noqa: E402


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    with override_settings(SAMSA_HOME=tmp_path, SAMSA_SECRETS=tmp_path / "secrets"):
        yield tmp_path


@pytest.fixture
def migrations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The databases that were migrated, in order."""
    seen: list[str] = []

    def migrate(command: str, *, database: str, **rest: object) -> None:
        seen.append(database)
        call_command(command, database=database, **rest)

    monkeypatch.setattr(tables, "call_command", migrate)
    return seen


@pytest.mark.slow
def test_a_new_home_gets_tables_and_a_user(home: Path, migrations: list[str]) -> None:
    places = {"default": {"NAME": home / "web.db"}, "cluster": {"NAME": home / "cluster.db"}}
    with pointed_at(places):
        tables.ensure_tables()

        password = (home / "secrets" / "admin-password").read_text().strip()
        user = get_user_model().objects.get()
        assert user.check_password(password)
        assert user.password.startswith("argon2")
        assert not models.Cluster.objects.exists()
    assert migrations == ["default", "cluster"]


def test_a_home_that_is_up_to_date_is_left_alone(home: Path, migrations: list[str]) -> None:
    with sqlite_databases(home):
        tables.ensure_tables()
        migrations.clear()

        tables.ensure_tables()

    assert migrations == []


def test_a_change_of_the_code_migrates(
    home: Path, migrations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with sqlite_databases(home):
        tables.ensure_tables()
        migrations.clear()
        monkeypatch.setattr("django.get_version", lambda: "another")

        tables.ensure_tables()

    assert migrations == ["default", "cluster"]


@pytest.mark.slow
def test_a_database_that_is_gone_is_made_anew(home: Path, migrations: list[str]) -> None:
    with sqlite_databases(home):
        tables.ensure_tables()
        migrations.clear()
    places = {"default": {"NAME": home / "a.db"}, "cluster": {"NAME": home / "b.db"}}

    with pointed_at(places):
        tables.ensure_tables()
        assert get_user_model().objects.count() == 1

    assert migrations == ["default", "cluster"]


def test_a_console_with_users_gets_no_other(home: Path) -> None:
    with sqlite_databases(home):
        get_user_model().objects.create_user(username="alice", password=None)

        tables.ensure_admin()

        assert get_user_model().objects.count() == 1
    assert not (home / "secrets").exists()


def test_the_password_is_for_its_owner_only(home: Path) -> None:
    with sqlite_databases(home):
        tables.ensure_admin()

    password = home / "secrets" / "admin-password"
    assert stat.S_IMODE(password.stat().st_mode) == 0o600
    assert stat.S_IMODE(password.parent.stat().st_mode) == 0o700


def test_the_password_is_on_the_disk_before_its_user_is(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    had_user: list[bool] = []
    users = get_user_model().objects
    monkeypatch.setattr(os, "fsync", lambda _handle: had_user.append(users.exists()))

    with sqlite_databases(home):
        tables.ensure_admin()

        assert users.exists()
    # The file, and the folder that names it.
    assert had_user == [False, False]
