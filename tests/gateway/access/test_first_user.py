"""The first user of a console, and the file with the password."""

import os
import stat
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from gateway.access import first_user, models, selectors
from gateway.access.grants import FULL_ADMIN
from tests.builders import users

pytestmark = pytest.mark.usefixtures("database")


def of_the_release_before(tmp_path: Path, *, password: str) -> User:
    """Make an admin as the former release did, and the file that told another or the same."""
    admin = User.objects.create_superuser("admin", password=password)
    file = tmp_path / "secrets" / "admin-password"
    file.parent.mkdir()
    file.write_text("told-in-the-file\n")
    return admin


def test_a_console_without_users_gets_an_admin_who_must_change_the_password() -> None:
    call_command("ensure_first_user", verbosity=0)

    admin = User.objects.get()
    assert admin.username == "admin"
    assert admin.check_password(first_user.file().read_text().strip())
    assert selectors.must_change_password(admin.pk)
    assert selectors.rights_of_user(admin.pk).grants == (FULL_ADMIN,)


def test_a_console_with_users_gets_no_other(tmp_path: Path) -> None:
    users.user("alice")

    assert not first_user.ensure()

    assert User.objects.count() == 1
    assert not (tmp_path / "secrets").exists()


def test_the_password_is_for_its_owner_only() -> None:
    first_user.ensure()

    file = first_user.file()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_the_password_is_on_the_disk_before_its_user_is(monkeypatch: pytest.MonkeyPatch) -> None:
    had_user: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda _handle: had_user.append(User.objects.exists()))

    first_user.ensure()

    assert User.objects.exists()
    # The file, and the folder that names it.
    assert had_user == [False, False]


def test_an_admin_of_the_release_before_who_never_changed_the_password_must(tmp_path: Path) -> None:
    admin = of_the_release_before(tmp_path, password="told-in-the-file")  # noqa: S106

    first_user.ensure()

    assert selectors.must_change_password(admin.pk)
    assert first_user.has_file()


def test_a_file_whose_password_opens_nothing_goes(tmp_path: Path) -> None:
    admin = of_the_release_before(tmp_path, password="changed long ago")  # noqa: S106

    first_user.ensure()

    assert not selectors.must_change_password(admin.pk)
    assert not first_user.has_file()


def test_a_start_that_has_asked_for_a_change_checks_no_password_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_the_release_before(tmp_path, password="told-in-the-file")  # noqa: S106
    first_user.ensure()

    def check(_user: User, _password: str) -> bool:
        raise AssertionError("a hash costs as much as a login")

    monkeypatch.setattr(User, "check_password", check)
    first_user.ensure()

    assert first_user.has_file()


@pytest.mark.slow
def test_users_of_the_release_before_keep_what_they_could_do() -> None:
    call_command("migrate", "access", "0001", verbosity=0)
    admin = User.objects.create_superuser("admin", password="x")  # noqa: S106
    reader = User.objects.create_user("reader", password="x")  # noqa: S106

    call_command("migrate", "access", verbosity=0)

    roles = dict(models.Grant.objects.values_list("user_id", "role"))
    assert roles == {admin.pk: "admin", reader.pk: "viewer"}
