"""Which file of the project depends on which, by what their texts say.

Read from syntax trees: imports, names of modules in strings (Django's settings, `python -m`), and
tables of modules that share a package. Nothing is imported.
"""

import ast
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Final

from tests.tidy.project import Source

DOTTED: Final = re.compile(r"\w+(\.\w+)+")
# What a framework finds by its place: the module of an app's configuration stands for them.
FOUND_BY_DJANGO: Final = ("models", "migrations", "management", "templatetags")
# Every test depends on the plugin, and on what it can start only if it names that itself.
NOT_FOLLOWED: Final = {"tests/suite/plugin.py": "tests/suite/services.py"}


@dataclass(frozen=True)
class Graph:
    """The files of the project by path, `tests/suite/graph.py`, and the edges between them."""

    sources: Mapping[str, Source]

    @cached_property
    def modules(self) -> dict[str, str]:
        """Path of every module and package by its dotted name."""
        return {source.dotted: path for path, source in self.sources.items()}

    @cached_property
    def needs(self) -> dict[str, frozenset[str]]:
        """What each file names directly, without itself."""
        return {
            path: frozenset(self._named_by(source)) - {path, NOT_FOLLOWED.get(path, "")}
            for path, source in self.sources.items()
        }

    @cached_property
    def users(self) -> dict[str, set[str]]:
        """The files that name each file."""
        found: dict[str, set[str]] = {path: set() for path in self.sources}
        for path, needed in self.needs.items():
            for other in needed:
                found[other].add(path)
        return found

    def reached_from(self, changed: Iterable[str]) -> set[str]:
        """Return the changed files and all that depend on them, through any number of others."""
        found = {path for path in changed if path in self.sources}
        waiting = deque(found)
        while waiting:
            new = self.users[waiting.popleft()] - found
            found |= new
            waiting.extend(new)
        return found

    def mentioning(self, name: str) -> set[str]:
        """Return the files whose text holds a name, of a file that is no Python."""
        return {path for path, source in self.sources.items() if name in source.text}

    def _named_by(self, source: Source) -> Iterator[str]:
        path = PurePosixPath(source.path.as_posix())
        for _, name in source.imports():
            yield from self._files_of(name)
        for node in source.nodes():
            match node:
                case ast.JoinedStr(values=[ast.Constant(value=str(start)), *_]) if "." in start:
                    yield from self._below(start.rpartition(".")[0])
                case ast.Constant(value=str(text)) if DOTTED.fullmatch(text):
                    yield from self._files_of(text)
                    # As a program, a package is its `__main__`.
                    yield from self._files_of(f"{text}.__main__")
        if path.name == "apps.py":
            for found in FOUND_BY_DJANGO:
                yield from self._below(f"{source.dotted.rpartition('.')[0]}.{found}")
        if path.parts[0] == "tests":
            conftests = (str(folder / "conftest.py") for folder in path.parents)
            yield from (conftest for conftest in conftests if conftest in self.sources)

    def _files_of(self, name: str) -> Iterator[str]:
        """The module that a name is, or lies in, and the packages around it, which are run too."""
        words = name.split(".")
        for length in range(1, len(words) + 1):
            if (path := self.modules.get(".".join(words[:length]))) is not None:
                yield path

    def _below(self, package: str) -> Iterator[str]:
        for name, path in self.modules.items():
            if name == package or name.startswith(f"{package}."):
                yield path
