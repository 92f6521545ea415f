"""The home that browsers visit, and what no answer of it may contain."""

from typing import Final

from tests.suite.services import SharedHome

NEW_PASSWORD: Final = "three unrelated words 7"  # noqa: S105 - of a home that is gone soon
# Of sessions, inspection ports and metrics.
FEWEST_KEYS: Final = 3


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
    return keys | {NEW_PASSWORD}


def logs_of(home: SharedHome) -> str:
    """Return what all processes of the home have logged."""
    return "".join(path.read_text(errors="replace") for path in home.home.logs.glob("*.log"))
