"""Finds completely installed pinned packages in an environment, and removes incomplete ones.

Standard library only: it runs before any package is installed. Both installers write `INSTALLER`
into a package's metadata after all of its files, so a package without it is incomplete.
"""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

# Pins with a marker are ignored: they may be for another Python.
PIN: Final = re.compile(r"^(?P<name>[A-Za-z0-9_.-]+)==(?P<version>[^\s;\\]+)\s*\\?$", re.MULTILINE)
METADATA: Final = ".dist-info"
LAST_FILE: Final = "INSTALLER"


def has_all(site_packages: Path, requirements: Path) -> bool:
    """Return whether each package that a file pins without a marker is complete."""
    there = {_plain(folder.name.removesuffix(METADATA)) for folder in _whole(site_packages)}
    pins = PIN.finditer(requirements.read_text(encoding="utf-8"))
    return all(_plain(f"{pin['name']}-{pin['version']}") in there for pin in pins)


def remove_cut_off(site_packages: Path) -> None:
    """Remove the metadata of incomplete packages, so that installers write these packages again."""
    whole = set(_whole(site_packages))
    for folder in site_packages.glob(f"*{METADATA}"):
        if folder not in whole:
            shutil.rmtree(folder, ignore_errors=True)


def _whole(site_packages: Path) -> Iterable[Path]:
    return (file.parent for file in site_packages.glob(f"*{METADATA}/{LAST_FILE}"))


def _plain(name: str) -> str:
    """Return the normalized name, which is the same for all spellings."""
    return re.sub(r"[-_.]+", "-", name).lower()
