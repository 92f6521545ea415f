"""Writes a broker's log: one line of JSON per event, on stderr.

The lines have structlog's format, but are written without it: its import costs a third of the time
in which a broker has to answer its first client. Events that peers can cause at will go through
`limited`, which writes a few lines of each kind per minute and counts the rest.
"""

import json
import os
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from brokers.clock import Clock, iso_time

STDERR: Final = 2
# Lines of one kind of event in one period: enough to see what happens.
MAX_LINES_OF_A_KIND: Final = 5
PERIOD_SECONDS: Final = 60.0
# Kinds are written out in the code, so there are dozens; a kind made from a peer's bytes is a bug.
MAX_KINDS: Final = 1_000
# A line longer than a pipe's atomic write may be torn by another process, and helps no reader.
MAX_VALUE_CHARS: Final = 2_000


@dataclass(slots=True)
class _Kind:
    since: float
    written: int = 0
    held_back: int = 0


class Log:
    """Writes events. Every line has the `keys` of the constructor."""

    def __init__(
        self, clock: Clock, *, write: Callable[[bytes], object] | None = None, **keys: object
    ) -> None:
        self._clock = clock
        self._write = write or _to_stderr
        self._kinds: dict[tuple[str, str], _Kind] = {}
        self._keys: dict[str, object] = keys

    def info(self, event: str, /, **keys: object) -> None:
        """Log an event that an operator wants to see even in a quiet week."""
        self._line("info", event, keys)

    def warning(self, event: str, /, **keys: object) -> None:
        """Log an event that an operator should look at."""
        self._line("warning", event, keys)

    def error(self, event: str, /, **keys: object) -> None:
        """Log an event that an operator must look at."""
        self._line("error", event, keys)

    def bug(self, event: str, error: BaseException, /, **keys: object) -> None:
        """Log a bug with its place in the code, once per period for each place."""
        trace = "".join(traceback.format_exception(error))
        places = traceback.extract_tb(error.__traceback__)
        kind = f"{type(error).__name__} {places[-1] if places else None}"
        if self._may_write(event, kind, keys):
            self._line("error", event, {**keys, "error": repr(error), "exception": trace})

    def limited(self, event: str, kind: str, /, **keys: object) -> None:
        """Log a warning that may come by the thousands; `kind` is one of a few fixed words."""
        if self._may_write(event, kind, keys):
            self._line("warning", event, keys)

    def _may_write(self, event: str, kind: str, keys: dict[str, object]) -> bool:
        now = self._clock.monotonic()
        entry = self._kinds.get((event, kind))
        if entry is None or now - entry.since >= PERIOD_SECONDS:
            if entry is not None and entry.held_back:
                keys["held_back"] = entry.held_back
            if len(self._kinds) >= MAX_KINDS:
                self._kinds.clear()
            entry = self._kinds[event, kind] = _Kind(now)
        if entry.written >= MAX_LINES_OF_A_KIND:
            entry.held_back += 1
            return False
        entry.written += 1
        return True

    def _line(self, level: str, event: str, keys: dict[str, object]) -> None:
        line = {
            "timestamp": iso_time(self._clock.now_ms()),
            "level": level,
            "event": event,
            **self._keys,
            **{name: _readable(value) for name, value in keys.items()},
        }
        self._write((json.dumps(line) + "\n").encode())


def _readable(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = str(value)
    return text if len(text) <= MAX_VALUE_CHARS else f"…{text[-MAX_VALUE_CHARS:]}"


def _to_stderr(line: bytes) -> None:
    # A log reader that has gone must not end the broker.
    with suppress(OSError):
        os.write(STDERR, line)
