"""Names and opens files below `<home>/files`, and nothing outside of it.

A config names a file, but its author may not have the rights of the worker. So the path is split,
and each part is opened in the folder before it without following symbolic links: the file that was
checked is the one that is opened.
"""

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from connectors.sdk.errors import ConfigError, ConnectorError, RetriableError

HOME: Final = "SAMSA_HOME"
FOLDER: Final = "files"
# Deeper folders, and longer names, are a mistake; the second is the limit of Linux less the length
# of the suffixes for files beside it.
MAX_PARTS: Final = 32
MAX_NAME_BYTES: Final = 240
# Other users of the host must not read records of topics.
FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600
# The catalog of Iceberg tables, at the top; SQLite keeps files with a hyphen and a word beside it.
CATALOG: Final = "iceberg.db"
# Folders within tables. Spark and Delta ignore names that begin with `_`.
NOTES: Final = "_samsa"
DELTA_LOG: Final = "_delta_log"
ICEBERG_METADATA: Final = "metadata"
# What no config may name, since only the writers of tables know what is in it.
RESERVED: Final[Mapping[str, str]] = MappingProxyType(
    {
        NOTES: "the notes of a job about its table",
        DELTA_LOG: "the log of a Delta table",
        ICEBERG_METADATA: "the metadata of an Iceberg table",
    }
)


def root() -> Path:
    """Return the folder with the files of this process's home."""
    return Path(os.environ.get(HOME) or ".samsa").absolute() / FOLDER


def parts_of(text: str) -> tuple[str, ...]:
    """Return the path of a file as parts; ConfigError if it leads outside."""
    if text.startswith("/"):
        inside = f"{root()}/"
        if not text.startswith(inside):
            raise ConfigError(
                f"{text} is outside of {root()}: move it there, and give its path relative to "
                "that folder"
            )
        text = text.removeprefix(inside)
    parts = tuple(part for part in text.split("/") if part not in ("", "."))
    if not parts:
        raise ConfigError(f"{text!r} names no file: write its path from {root()}")
    if len(parts) > MAX_PARTS:
        raise ConfigError(f"{text} has {len(parts)} parts, at most {MAX_PARTS} are allowed")
    for part in parts:
        if part.startswith("."):
            raise ConfigError(f"{text} has the part {part!r}: parts begin with no dot")
        if "\0" in part or len(part.encode(errors="replace")) > MAX_NAME_BYTES:
            raise ConfigError(f"{part[:80]!r} is not a file name of at most {MAX_NAME_BYTES} bytes")
        if part in RESERVED:
            raise ConfigError(f"{text} has the part {part}, {RESERVED[part]}: give another name")
    if parts[0] == CATALOG or parts[0].startswith(f"{CATALOG}-"):
        raise ConfigError(f"{text} is part of the catalog of Iceberg tables: give another name")
    return parts


def pattern_of(text: str, *, is_folder: bool) -> str:
    """Return the pattern of the names that a path stands for, as rights have it."""
    name = "/".join(parts_of(text))
    return f"{name}/*" if is_folder else name


def problem(text: Any) -> str | None:
    """Check the value of a key with a file name."""
    if text is None:
        return "name a file: Samsa's workers have no standard input or output"
    try:
        parts_of(text)
    except ConfigError as error:
        return str(error)
    return None


@contextmanager
def folder_of(parts: tuple[str, ...], *, is_made: bool = False) -> Iterator[int]:
    """Open the folder of a file for a block. FileNotFoundError unless it exists or is made."""
    folder = root()
    if is_made:
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            inner = _open_folder(part, opened, is_made=is_made)
            os.close(opened)
            opened = inner
        yield opened
    finally:
        os.close(opened)


def open_file(name: str, folder: int, flags: int) -> int:
    """Open a regular file in an open folder. FileNotFoundError if it does not exist."""
    # Opening a pipe would block until another process opens its other end.
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        opened = os.open(name, flags, FILE_MODE, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _failure(name, error) from error
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise ConfigError(f"{name} is not a plain file")
    return opened


def _open_folder(part: str, folder: int, *, is_made: bool) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        if is_made:
            # Another process may create it at the same time.
            with suppress(FileExistsError):
                os.mkdir(part, FOLDER_MODE, dir_fd=folder)
        return os.open(part, flags, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _failure(part, error) from error


def _failure(name: str, error: OSError) -> ConnectorError:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return ConfigError(f"{name} is a symbolic link or no folder: neither is followed")
    if error.errno in (errno.EISDIR, errno.ENXIO):
        return ConfigError(f"{name} is not a plain file")
    if error.errno == errno.EACCES:
        return ConfigError(f"{name} cannot be opened by the worker's user: {error.strerror}")
    return RetriableError(f"{name} cannot be opened: {error.strerror}")
