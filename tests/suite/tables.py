"""Databases for new homes: their tables are made once in a run, and copied.

An agent that finds them has no migration to do, which is two thirds of its start. What a first
start does is proved by tests that run `./samsa up`.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from cli.environment import ROOT
from tests.suite.shared import run_folder

MAKE_SECONDS: Final = 120
# As an agent makes them.
FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600


def place_tables(home: Path) -> None:
    """Copy databases into a home that is not there, or empty; do nothing outside of a run."""
    place = run_folder()
    if place is None or (home.exists() and any(home.iterdir())):
        return
    made = place / "tables"
    with (place / "tables.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            make(made)
    home.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    for file in made.iterdir():
        shutil.copyfile(file, home / file.name)
        (home / file.name).chmod(FILE_MODE)


def make(folder: Path) -> None:
    """Make the tables in a process of their own: this one may not have Django."""
    beside = folder.with_name("tables-beside")
    beside.mkdir(exist_ok=True)
    subprocess.run(
        [sys.executable, "-P", "-m", "tests.suite.tables", str(beside)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=MAKE_SECONDS,
        check=True,
    )
    beside.rename(folder)


def main(folder: Path) -> None:
    # Imported late: they need the packages of a run.
    from tests.database import FILES, migrated  # noqa: PLC0415

    source = migrated()
    for name in FILES.values():
        shutil.copyfile(source / name, folder / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
