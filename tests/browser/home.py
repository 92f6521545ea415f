"""The home that browsers visit, and the people who visit it."""

import os
import subprocess
import sys
from typing import Final

from tests.suite.services import SharedHome

GIVEN_PASSWORD: Final = "given by somebody 3"  # noqa: S105 - opens one page only
NEW_PASSWORD: Final = "three unrelated words 7"  # noqa: S105 - of a home that is gone soon
MAKE_USER: Final = """
from tests.builders import users
users.user({name!r}, must_change=True, password={password!r})
"""


def address_of(home: SharedHome) -> str:
    return str(home.status()["console"]).rstrip("/")


def first_password(home: SharedHome) -> str:
    """Return what the home's file tells of the first user, until it is changed."""
    return (home.home.folder / "secrets" / "admin-password").read_text(encoding="ascii").strip()


def make_newcomer(home: SharedHome, name: str) -> None:
    """Make an admin who has to change the password they were given."""
    program = MAKE_USER.format(name=name, password=GIVEN_PASSWORD)
    subprocess.run(
        [sys.executable, "manage.py", "shell", "-v", "0", "-c", program],
        env={**os.environ, "SAMSA_HOME": str(home.home.folder)},
        check=True,
        timeout=60,
        capture_output=True,
    )
