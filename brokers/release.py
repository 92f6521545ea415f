"""Names this release, and tells whether a home was written by a newer one.

A home notes the release that last served it, and that release's migrations: a file, because the
supervisor has to compare them before it starts anything, and uses no database. The agent compares
the databases themselves as well, which may come from another home.
"""

import json
import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

VERSION: Final = "0.1.0.dev0"
ROOT: Final = Path(__file__).resolve().parents[1]
# In a home, beside its databases.
RELEASE_FILE: Final = "release"
# Larger than any: some hundred names.
RELEASE_BYTES: Final = 256 * 2**10
# The folders of the apps with migrations; each app has its folder's name.
APPS: Final = ("brokers/controlplane", "gateway/access", "connectors", "console")
COMMIT: Final = re.compile(r"[0-9a-f]{40}")
SHOWN_SIGNS: Final = 12
# Unknown migrations that a refusal names; the first ones say enough.
NAMED: Final = 3


def name() -> str:
    """Return the version, and the commit of a checkout, since all of them share a version."""
    commit = _commit(ROOT / ".git")
    return f"{VERSION} ({commit[:SHOWN_SIGNS]})" if commit else VERSION


def migrations() -> set[str]:
    """Return all migrations of this release's own apps, as `app.name`."""
    return {
        f"{Path(app).name}.{file.stem}"
        for app in APPS
        for file in (ROOT / app / "migrations").glob("[0-9]*.py")
    }


def note() -> str:
    """Return the content of a home's file: this release and its migrations."""
    return f"{json.dumps({'release': name(), 'migrations': sorted(migrations())})}\n"


def refusal(home: Path) -> str:
    """Say that a home was written by a newer release, and what to do; empty if it was not."""
    try:
        with (home / RELEASE_FILE).open("rb") as file:
            said = json.loads(file.read(RELEASE_BYTES))
        release, there = str(said["release"]), {str(each) for each in said["migrations"]}
    except (OSError, ValueError, KeyError, TypeError):
        # A release without such a file, or a damaged one: the agent looks into the databases.
        return ""
    return newer(f"the home {home}", there - migrations(), release=release)


def newer(what: str, unknown: Collection[str], *, release: str = "a newer release") -> str:
    """Say that something has migrations that this release does not know; empty without any."""
    if not unknown:
        return ""
    names = ", ".join(sorted(unknown)[:NAMED])
    more = f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
    return (
        f"{what} was written by {release}, and this is the older {name()}, which does not know"
        f" {names}{more}: start it with the newer release, or give another --home"
    )


def _commit(folder: Path) -> str:
    """Return the commit of a checkout; empty if it cannot be told without git."""
    with suppress(OSError, UnicodeDecodeError):
        head = (folder / "HEAD").read_text(encoding="ascii").strip()
        branch = head.removeprefix("ref: ")
        if branch == head:
            return head if COMMIT.fullmatch(head) else ""
        with suppress(FileNotFoundError):
            return (folder / branch).read_text(encoding="ascii").strip()
        for line in (folder / "packed-refs").read_text(encoding="ascii").splitlines():
            commit, _, ref = line.partition(" ")
            if ref == branch:
                return commit
    return ""
