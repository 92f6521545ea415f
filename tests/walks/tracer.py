"""Records which files of the project a request walks through, in the order of their first call.

Knows Python's profiling hook, and nothing of what is walked. The hook has to be in place before the
threads of a walk start; it records only within `recording`.
"""

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

ROOT: Final = str(Path(__file__).resolve().parents[2]) + "/"
# How often a walk is recorded, to tell its own files from those of timers.
TIMES: Final = 10
PACKAGES: Final = ("brokers", "connectors", "console", "gateway")


@dataclass(slots=True)
class Walk:
    """The files of one request in the order of their first call, and how many functions it called.

    Those that were entered before its handler are middleware: all requests of its kind walk there.
    """

    middleware: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    functions: set[CodeType] = field(default_factory=set)


class Tracer:
    """See the module."""

    def __init__(self) -> None:
        self._walk: Walk | None = None
        # The code whose first call ends the middleware; None from then on.
        self._handler: CodeType | None = None
        self._packages: tuple[str, ...] = ()
        self._names: dict[str, str] = {}

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Watch this thread, and all that start from now on."""
        threading.setprofile(self._see)
        sys.setprofile(self._see)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    @contextmanager
    def recording(
        self, handler: CodeType | None = None, packages: Sequence[str] = PACKAGES
    ) -> Iterator[Walk]:
        """Record the files of some packages until the block ends."""
        walk = Walk()
        self._names.clear()
        self._packages = tuple(f"{ROOT}{name}/" for name in packages)
        self._handler, self._walk = handler, walk
        try:
            yield walk
        finally:
            self._walk = None

    def _see(self, frame: FrameType, event: str, _argument: Any) -> None:
        walk, code = self._walk, frame.f_code
        # Importing a module is no step of a walk.
        if walk is None or event != "call" or code.co_name == "<module>":
            return
        if code is self._handler:
            self._handler = None
        name = self._name_of(code.co_filename)
        if not name or code in walk.functions:
            return
        walk.functions.add(code)
        if name not in walk.files and name not in walk.middleware:
            (walk.files if self._handler is None else walk.middleware).append(name)

    def _name_of(self, path: str) -> str:
        """Return the path of a file in the project; empty if it is not of these packages."""
        if path not in self._names:
            is_ours = path.startswith(self._packages)
            self._names[path] = path.removeprefix(ROOT) if is_ours else ""
        return self._names[path]


def common(walks: Sequence[Walk]) -> Walk:
    """Return the files and functions of all of these walks: a timer meets one of them by chance."""
    first, *others = walks
    return Walk(
        middleware=[file for file in first.middleware if all(file in w.middleware for w in others)],
        files=[file for file in first.files if all(file in w.files for w in others)],
        functions=first.functions.intersection(*(walk.functions for walk in others)),
    )
