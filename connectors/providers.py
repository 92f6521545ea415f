"""Resolves the references in a config, in a worker, just before a slice.

Files, variables and secrets are read at that moment, so the next slice uses a changed value. The
settings of this host decide again which of them may be read.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from connectors.references import (
    ENV,
    FILE,
    REFERENCE,
    SECRET,
    Allowed,
    Reference,
    references,
    refused_reference,
)
from connectors.sdk.configs import MASK
from connectors.sdk.errors import ConfigError
from connectors.vault import Opened, revealed

# A certificate chain with its key has some ten kilobytes.
MAX_FILE_BYTES: Final = 262_144


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The files and variables of this host to which references may point."""

    allowed: Allowed
    # One file per secret, with the name of the secret.
    secrets: Path
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clear:
    """A resolved config, and those of its values that logs and traces must not contain."""

    config: dict[str, str]
    secrets: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Clear(keys={sorted(self.config)})"


def resolve(config: Mapping[str, str], sources: Sources) -> Clear:
    """Resolve all references of a config; ConfigError if one does not exist."""
    found: dict[str, str] = {}
    hidden: set[str] = set()
    for key, text in config.items():
        clear = revealed(text)
        values = list(_values(key, clear, sources))
        # `configs` knows the secret parts of a value that is otherwise shown.
        is_whole = isinstance(text, Opened) and text.shown == MASK
        if is_whole:
            hidden.add(clear)
        hidden.update(value for _, value in values)
        # One pass over the original text: references in resolved values are not followed.
        by_text = dict(values)
        found[key] = REFERENCE.sub(lambda match: by_text.get(match[0], match[0]), clear)  # noqa: B023 - used at once
        if is_whole:
            hidden.add(found[key])
    return Clear(config=found, secrets=tuple(sorted(hidden - {""}, key=len, reverse=True)))


def _values(key: str, text: str, sources: Sources) -> Iterator[tuple[str, str]]:
    """Yield each reference of a text with its value."""
    wrong = refused_reference(text, sources.allowed)
    if wrong is not None:
        raise ConfigError(f"{key}: {wrong}")
    for reference in references(text):
        yield reference.written, _READERS[reference.provider](key, reference, sources)


def _read_variable(key: str, reference: Reference, sources: Sources) -> str:
    value = sources.environment.get(reference.key)
    if value is None:
        raise ConfigError(f"{key}: {reference.written}: this worker has no variable of that name")
    return value


def _read_secret(key: str, reference: Reference, sources: Sources) -> str:
    path = sources.secrets / reference.key
    try:
        return _text_of(path).rstrip("\r\n")
    except OSError as error:
        raise ConfigError(
            f"{key}: {reference.written}: {path} cannot be read: {error.strerror}; write the value"
            " into this file, for its owner alone"
        ) from None


def _read_file(key: str, reference: Reference, sources: Sources) -> str:
    path = Path(reference.path)
    try:
        real = path.resolve(strict=True)
        folders = [Path(folder).resolve() for folder in sources.allowed.folders]
        # A symbolic link in a folder must not lead out of it.
        if not any(real.is_relative_to(folder) for folder in folders):
            raise ConfigError(
                f"{key}: {reference.written} leads out of the folders that may be read"
            )
        values = properties(_text_of(real))
    except OSError as error:
        raise ConfigError(
            f"{key}: {reference.written}: the file cannot be read: {error.strerror}"
        ) from None
    if reference.key not in values:
        raise ConfigError(f"{key}: {reference.written}: the file has no key {reference.key}")
    return values[reference.key]


def _text_of(path: Path) -> str:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        # A pipe or a device could block the worker, or be endless.
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "it is not a regular file")
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise OSError(0, f"it has more than {MAX_FILE_BYTES} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise OSError(0, "it is not UTF-8 text") from None


def properties(text: str) -> dict[str, str]:
    """Parse a properties file: `key=value` or `key: value` on each line."""
    found = {}
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        at = min((i for i in map(stripped.find, "=:") if i >= 0), default=len(stripped))
        found[stripped[:at].strip()] = stripped[at + 1 :].strip()
    return found


_READERS: Final = {ENV: _read_variable, SECRET: _read_secret, FILE: _read_file}
