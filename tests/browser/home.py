"""The home that browsers visit, and the people who visit it."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.suite.services import SharedHome

GIVEN_PASSWORD: Final = "given by somebody 3"  # noqa: S105 - opens one page only
NEW_PASSWORD: Final = "three unrelated words 7"  # noqa: S105 - of a home that is gone soon
# Of sessions, inspection ports and metrics.
FEWEST_KEYS: Final = 3
MAKE_USER: Final = """
from tests.builders import users
users.user({name!r}, must_change=True, password={password!r})
"""


@contextmanager
def alone_in(home: SharedHome) -> Iterator[None]:
    """Wait for others who restart brokers of this home: what they stop is missed elsewhere."""
    with (home.home.folder / "visited").open("wb") as file:
        # Bounded by the timeout of every test.
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def address_of(home: SharedHome) -> str:
    return str(home.status()["console"]).rstrip("/")


def first_password(home: SharedHome) -> str:
    """Return what the home's file tells of the first user, until it is changed."""
    return (home.home.folder / "secrets" / "admin-password").read_text(encoding="ascii").strip()


def secrets_of(home: SharedHome) -> set[str]:
    """Return the keys that processes of the home share, and the passwords of its users."""
    files = [path for path in (home.home.folder / "secrets").iterdir() if path.is_file()]
    # A line is a key, after the number of the key.
    lines = [line for path in files for line in path.read_text("ascii").split()]
    keys = {line.rpartition(".")[2] for line in lines}
    assert len(keys) >= FEWEST_KEYS, f"{files} hold the keys of a cluster"
    return keys | {GIVEN_PASSWORD, NEW_PASSWORD}


def logs_of(home: SharedHome) -> str:
    """Return what all processes of the home have logged."""
    return "".join(path.read_text(errors="replace") for path in home.home.logs.glob("*.log"))


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
