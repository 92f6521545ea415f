"""The commands for whoever has a shell on a host."""

import io

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from gateway.access import selectors
from gateway.access.grants import FULL_ADMIN
from tests.builders import users

pytestmark = pytest.mark.usefixtures("database")


def test_a_role_is_given_where_nobody_can_open_the_users_page() -> None:
    root = User.objects.create_superuser("root", password="x")  # noqa: S106
    said = io.StringIO()

    call_command("grant_role", "root", "admin", stdout=said)

    assert selectors.rights_of_user(root.pk).grants == (FULL_ADMIN,)
    assert said.getvalue() == "root has the role admin on all clusters\n"


def test_a_role_that_cannot_be_given_is_told_with_what_to_do() -> None:
    users.user("alice")

    with pytest.raises(CommandError, match=r"no user “carol”: `createsuperuser` makes one"):
        call_command("grant_role", "carol", "admin")
    with pytest.raises(CommandError, match="alice has this right already"):
        call_command("grant_role", "alice", "admin")
