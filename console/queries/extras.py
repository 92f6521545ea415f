"""Reads which optional packages of connectors are installed, and the progress of an installation.

A request is a file in the home, which the supervisor picks up. It writes its progress to a second
file, which exists only if a supervisor installs.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from console.queries.frame import Frame, frame
from console.queries.reading import Reading, last_good
from gateway.access.grants import Rights

# The supervisor of the home uses the same file names.
MARK: Final = "extras.wanted"
TOLD: Final = Path("run", "extras.json")
# The supervisor's file is shorter.
MAX_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    name: str
    # The extra is installed if these are.
    packages: tuple[str, ...]
    purpose: str


# The extras of `./samsa extras`; a missing Java for Spark is not among them.
EXTRAS: Final = {
    extra.name: extra
    for extra in (
        Extra(
            name="spark",
            packages=("pyspark", "pyarrow", "deltalake", "pyiceberg"),
            purpose="Spark, for tables and SQL queries over topics, with a Java where the machine "
            "has none. It downloads 447 MiB, and then builds for a minute or more.",
        ),
        Extra(
            name="parquet",
            packages=("pyarrow",),
            purpose="Parquet files (pyarrow), which the S3 sink writes on demand.",
        ),
    )
}


class Progress(Enum):
    """The state of an extra: the word and the CSS class of its mark."""

    MISSING = ("Not installed", "stale")
    WAITING = ("Waiting", "stale")
    RUNNING = ("Installing", "warn")
    FAILED = ("Failed", "bad")
    INSTALLED = ("Installed", "ok")

    @property
    def word(self) -> str:
        return self.value[0]

    @property
    def mark(self) -> str:
        return self.value[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraRow:
    name: str
    purpose: str
    progress: Progress
    # The last line of the installer, or the reason of its failure.
    line: str = ""
    # Whether running processes were started before it was installed.
    is_new: bool = False

    @property
    def is_open(self) -> bool:
        return self.progress in {Progress.WAITING, Progress.RUNNING}

    @property
    def can_be_asked(self) -> bool:
        return self.progress in {Progress.MISSING, Progress.FAILED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    frame: Frame
    rows: tuple[ExtraRow, ...]
    # Whether a supervisor of this home would install it.
    can_install: bool

    @property
    def is_busy(self) -> bool:
        return any(row.is_open for row in self.rows)


def extras(cluster_id: str | None, rights: Rights) -> Reading[Extras]:
    return last_good.read(
        ("extras", cluster_id, rights.grants),
        lambda: _read(cluster_id, rights),
        is_empty=lambda data: not data.rows,
    )


def ask_for(name: str) -> None:
    """Write the request for the supervisor atomically; disk errors propagate."""
    assert name in EXTRAS, f"{name} is one of the table"
    home: Path = settings.SAMSA_HOME
    number, temporary = tempfile.mkstemp(dir=home)
    with os.fdopen(number, "w", encoding="utf-8") as file:
        file.write(name)
    Path(temporary).replace(home / MARK)


def _read(cluster_id: str | None, rights: Rights) -> Extras:
    told = _told()
    wanted = _wanted()
    return Extras(
        frame=frame(cluster_id, rights),
        rows=tuple(_row(extra, told or {}, wanted) for extra in EXTRAS.values()),
        can_install=told is not None,
    )


def _row(extra: Extra, told: Mapping[str, Any], wanted: str) -> ExtraRow:
    is_its = told.get("name") == extra.name
    state = told.get("state") if is_its else None
    progress = Progress.MISSING
    if all(is_installed(package) for package in extra.packages):
        progress = Progress.INSTALLED
    line = ""
    if wanted == extra.name:
        progress = Progress.WAITING
    elif state == "running":
        progress, line = Progress.RUNNING, str(told.get("line", ""))
    elif state == "failed" and progress is Progress.MISSING:
        progress, line = Progress.FAILED, str(told.get("line", ""))
    return ExtraRow(
        name=extra.name,
        purpose=extra.purpose,
        progress=progress,
        line=line,
        is_new=state == "done" and progress is Progress.INSTALLED,
    )


def is_installed(package: str) -> bool:
    """Tell whether a package is complete: installers write this file last."""
    try:
        return distribution(package).read_text("INSTALLER") is not None
    except PackageNotFoundError:
        return False


def _told() -> Mapping[str, Any] | None:
    """Return the supervisor's status; None if no supervisor of this home installs."""
    found = _text_of(settings.SAMSA_HOME / TOLD)
    try:
        told = json.loads(found)
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


def _wanted() -> str:
    return _text_of(settings.SAMSA_HOME / MARK).strip()


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
