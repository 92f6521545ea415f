"""Tables and the first user: made when needed, and only then."""

import json
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder
from pytest_django import Settings

from tests.database import FILES, pointed_at, project_home, sqlite_databases

project_home()

from django.contrib.auth import get_user_model  # noqa: E402

from brokers import release  # noqa: E402
from brokers.controlplane import models  # noqa: E402
from brokers.controlplane.agent import tables  # noqa: E402
from brokers.controlplane.agent.home import NewerRelease  # noqa: E402
from gateway.access.models import Account  # noqa: E402


@pytest.fixture
def home(tmp_path: Path, settings: Settings) -> Path:
    settings.SAMSA_HOME, settings.SAMSA_SECRETS = tmp_path, tmp_path / "secrets"
    return tmp_path


@pytest.fixture
def migrations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The databases that were migrated, in order."""
    seen: list[str] = []

    def migrate(command: str, **options: object) -> None:
        if command == "migrate":
            seen.append(str(options["database"]))
        call_command(command, **options)

    monkeypatch.setattr(tables, "call_command", migrate)
    return seen


@pytest.mark.slow
def test_a_new_home_gets_tables_and_a_user(home: Path, migrations: list[str]) -> None:
    places = {alias: {"NAME": home / file} for alias, file in FILES.items()}
    with pointed_at(places):
        tables.ensure_tables()

        password = (home / "secrets" / "admin-password").read_text().strip()
        user = get_user_model().objects.get()
        assert user.check_password(password)
        assert user.password.startswith("argon2")
        assert not models.Cluster.objects.exists()
    assert migrations == ["default", "cluster", "connect"]


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

    assert migrations == ["default", "cluster", "connect"]


@pytest.mark.slow
def test_a_database_that_is_gone_is_made_anew(home: Path, migrations: list[str]) -> None:
    with sqlite_databases(home):
        tables.ensure_tables()
        migrations.clear()
    places = {"default": {"NAME": home / "a.db"}, "cluster": {"NAME": home / "b.db"}}

    with pointed_at(places):
        tables.ensure_tables()
        assert get_user_model().objects.count() == 1

    assert migrations == ["default", "cluster", "connect"]


def test_a_home_with_the_first_password_asks_at_each_start_whether_it_is_void(
    home: Path, migrations: list[str]
) -> None:
    with sqlite_databases(home):
        tables.ensure_tables()
        migrations.clear()
        file = home / "secrets" / tables.PASSWORD_FILE
        user = get_user_model().objects.get()
        user.set_password("chosen on another host")
        user.save()
        Account.objects.update(must_change_password=False)

        tables.ensure_tables()

        assert not file.exists()
    assert migrations == []


def test_a_database_of_a_newer_release_is_refused_before_anything_is_written(
    home: Path, migrations: list[str]
) -> None:
    with sqlite_databases(home):
        tables.ensure_tables()
        migrations.clear()
        MigrationRecorder(connections["cluster"]).record_applied("controlplane", "9999_future")
        (home / tables.HASH_FILE).write_text("of another release")

        with pytest.raises(
            NewerRelease, match=r"cluster was written by .* controlplane\.9999_future"
        ):
            tables.ensure_tables()

    assert migrations == []
    assert (home / tables.HASH_FILE).read_text() == "of another release"


def test_migrations_of_an_app_that_an_earlier_release_had_are_not_of_a_newer_one(
    home: Path, migrations: list[str]
) -> None:
    with sqlite_databases(home):
        tables.ensure_tables()
        MigrationRecorder(connections["default"]).record_applied("sessions", "0001_initial")

        tables.ensure_tables()


def test_a_home_notes_its_release_and_all_migrations_of_its_apps(home: Path) -> None:
    with sqlite_databases(home):
        tables.ensure_tables()

        said = json.loads((home / release.RELEASE_FILE).read_text())

        assert said["release"] == release.name()
        assert set(said["migrations"]) == {
            f"{app.label}.{file.stem}"
            for app in apps.get_app_configs()
            for file in Path(app.path, "migrations").glob("[0-9]*.py")
            if file.is_relative_to(release.ROOT) and ".venv" not in file.parts
        }
