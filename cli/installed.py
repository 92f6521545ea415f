"""Tells which pinned packages are whole in an environment, and removes what was cut off.

Standard library only: it runs before any package is there. Both installers write `INSTALLER` into
a package's metadata behind all of its files, so a package without it was cut off in the middle.
"""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

# Pins with a marker are left out: they may be of another Python.
PIN: Final = re.compile(r"^(?P<name>[A-Za-z0-9_.-]+)==(?P<version>[^\s;\\]+)\s*\\?$", re.MULTILINE)
METADATA: Final = ".dist-info"
LAST_FILE: Final = "INSTALLER"


def has_all(site_packages: Path, requirements: Path) -> bool:
    """Tell whether each package that a file pins without a marker is there as a whole."""
    there = {_plain(folder.name.removesuffix(METADATA)) for folder in _whole(site_packages)}
    pins = PIN.finditer(requirements.read_text(encoding="utf-8"))
    return all(_plain(f"{pin['name']}-{pin['version']}") in there for pin in pins)


def remove_cut_off(site_packages: Path) -> None:
    """Remove the metadata of half packages, so that installers write these packages again."""
    whole = set(_whole(site_packages))
    for folder in site_packages.glob(f"*{METADATA}"):
        if folder not in whole:
            shutil.rmtree(folder, ignore_errors=True)


def _whole(site_packages: Path) -> Iterable[Path]:
    return (file.parent for file in site_packages.glob(f"*{METADATA}/{LAST_FILE}"))


def _plain(name: str) -> str:
    """Return a name as all spellings of it are alike."""
    return re.sub(r"[-_.]+", "-", name).lower()
