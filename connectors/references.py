"""Finds references to secrets in a config: `${file:PATH:KEY}`, `${env:NAME}`, `${secret:NAME}`.

It validates references, and resolves none: only a worker does that, in `connectors.providers`. So
all displays of a config show the reference.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

# The syntax of Kafka Connect: ${provider:key}, or ${provider:path:key}; the first closing brace
# ends a reference.
REFERENCE: Final = re.compile(r"\$\{([A-Za-z0-9_.-]{1,40}):(?:([^}:]*):)?([^}:]+)\}")
FILE: Final = "file"
ENV: Final = "env"
SECRET: Final = "secret"  # noqa: S105 - a word
PROVIDERS: Final = (FILE, ENV, SECRET)
# What a worker may read for its configs; nothing unless the operator of the home allows it.
# Folders, and names of variables, each separated by commas.
FOLDERS_SETTING: Final = "SAMSA_CONNECT_SECRET_DIRS"
NAMES_SETTING: Final = "SAMSA_CONNECT_ENV_NAMES"
# The name of a secret of the home, and of its file in the secrets folder.
SECRET_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A reference in a text; `path` is empty if it has none."""

    provider: str
    path: str
    key: str
    written: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The folders and variables that references may name."""

    folders: tuple[str, ...] = ()
    names: frozenset[str] = frozenset()


def references(text: str) -> Iterator[Reference]:
    """Yield the references to known providers; other texts in braces are left alone."""
    for found in REFERENCE.finditer(text):
        provider, path, key = found.groups()
        if provider in PROVIDERS:
            yield Reference(provider=provider, path=path or "", key=key, written=found[0])


def has_reference(text: object) -> bool:
    return isinstance(text, str) and next(references(text), None) is not None


def refused_reference(text: str, allowed: Allowed) -> str | None:
    """Return why a reference in a text is not allowed, with what to do; else None."""
    return next((wrong for found in references(text) if (wrong := _refused(found, allowed))), None)


def _refused(found: Reference, allowed: Allowed) -> str | None:
    if found.provider == ENV:
        if found.path or found.key not in allowed.names:
            return f"{found.written} may not be read: add {found.key} to {NAMES_SETTING}"
        return None
    if found.provider == SECRET:
        if found.path or not SECRET_NAME.fullmatch(found.key):
            return f"{found.written} names no secret: give one word, as ${{secret:db-password}}"
        return None
    if not found.path:
        return f"{found.written} names no key: give ${{file:/FOLDER/FILE:KEY}}"
    path = PurePosixPath(found.path)
    is_plain = path.is_absolute() and ".." not in path.parts and "\0" not in found.path
    if is_plain and any(path.is_relative_to(folder) for folder in allowed.folders):
        return None
    return f"{found.written} may not be read: add the folder of the file to {FOLDERS_SETTING}"
