"""Databases for new homes: their tables are made once in a run, and copied.

An agent that finds them has no migration to do, which is two thirds of its start. What a first
start does is proved by tests that run `./samsa up`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from cli.environment import ROOT
from tests.suite.shared import made_once, run_folder

# What the folder of a run calls them.
TABLES: Final = "tables"
MAKE_SECONDS: Final = 120
# As an agent makes them.
FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600


def place_tables(home: Path) -> None:
    """Copy databases into a home that is not there, or empty; do nothing outside of a run."""
    if run_folder() is None or (home.exists() and any(home.iterdir())):
        return
    made = made_once(TABLES, make)
    home.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    for file in made.iterdir():
        shutil.copyfile(file, home / file.name)
        (home / file.name).chmod(FILE_MODE)


def make(folder: Path) -> None:
    """Make the tables in a process of their own: this one may not have Django."""
    subprocess.run(
        [sys.executable, "-P", "-m", "tests.suite.tables", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=MAKE_SECONDS,
        check=True,
    )


def main(folder: Path) -> None:
    # Imported late: they need the packages of a run.
    from tests.database import migrate_files, project_home  # noqa: PLC0415

    project_home()
    migrate_files(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
