"""Finds plugins in the folder `plugins` of a home, and decides whether they may be loaded.

Their code runs with the rights of the home, so only its owner may be able to write there. Loading
is the job of `connectors.registry`.
"""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = "plugins"
# Names of packages; other folders are skipped, such as `__pycache__` and editors' files.
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
# A plugin with its dependencies has some hundreds of files.
MAX_FILES: Final = 10_000
MAX_PLUGINS: Final = 100
OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
ROOT: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HomePlugin:
    """One folder below `plugins`; `refusal` says why it is not loaded."""

    origin: str
    package: Path
    refusal: str = ""


def found(home: Path) -> Iterator[HomePlugin]:
    """Yield the plugins of a home by name; a refusal of the folder itself if it is not trusted."""
    folder = home / FOLDER
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if NAME.fullmatch(entry.name))
    except FileNotFoundError:
        return
    except OSError as error:
        reason = f"{folder} cannot be read: {error.strerror}"
        yield HomePlugin(origin=FOLDER, package=folder, refusal=reason)
        return
    # A user who may write into the home can replace this folder.
    if names and (reason := _untrusted(home) or _untrusted(folder)):
        yield HomePlugin(origin=FOLDER, package=folder, refusal=reason)
        return
    for name in names[:MAX_PLUGINS]:
        package, origin = folder / name, f"{FOLDER}/{name}"
        if package.is_dir() or package.is_symlink():
            yield HomePlugin(origin=origin, package=package, refusal=_refusal(package))


def _refusal(package: Path) -> str:
    """Return why a plugin is not loaded; nothing if it may be."""
    for count, path in enumerate(_all_of(package)):
        if count >= MAX_FILES:
            return f"{package} has more than {MAX_FILES} files: a plugin is one package"
        if reason := _untrusted(path):
            return reason
    if not (package / "__init__.py").is_file():
        return f"{package} has no __init__.py: it names the plugin's classes as CONNECTORS"
    return ""


def _all_of(package: Path) -> Iterator[Path]:
    yield package
    for folder, folders, files in os.walk(package, followlinks=False):
        yield from (Path(folder, name) for name in (*folders, *files))


def _untrusted(path: Path) -> str:
    """Return why others could change a file or folder, with what to do; nothing if they cannot."""
    try:
        found = path.lstat()
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    if stat.S_ISLNK(found.st_mode):
        return f"{path} is a symbolic link, whose target others may change: copy the files"
    if found.st_uid not in {os.geteuid(), ROOT}:
        return f"{path} belongs to user {found.st_uid}: give it to user {os.geteuid()} (chown)"
    if found.st_mode & OTHERS_WRITE:
        return f"other users may write {path}: run `chmod -R go-w {path}`"
    return ""
