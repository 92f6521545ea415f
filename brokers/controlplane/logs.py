"""Writes the agent's log: one JSON object per line on stderr.

The lines have structlog's format, but are written without it: its import would take a third of the
second in which an agent has to start. Events are in the past tense, with keys and without prose.
"""

import json
import logging
import sys
from datetime import timedelta
from typing import Final

from django.utils.dateparse import parse_datetime

from brokers.clock import Clock, SystemClock

EPOCH: Final = parse_datetime("1970-01-01T00:00:00Z")


# How long the same message is not repeated, and how many different ones are remembered.
QUIET_S: Final = 60.0
MAX_REMEMBERED: Final = 100


class Log:
    """Writes events. Safe in any thread: a line is one write."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said: dict[str, float] = {}

    def info(self, event: str, /, **keys: object) -> None:
        """Log an event that an operator wants to see even in a quiet week."""
        self._write("info", event, keys)

    def warning(self, event: str, /, **keys: object) -> None:
        """Log an event that an operator should look at."""
        self._write("warning", event, keys)

    def error(self, event: str, /, **keys: object) -> None:
        """Log an event that an operator must look at."""
        self._write("error", event, keys)

    def limited(self, event: str, /, **keys: object) -> None:
        """Log a warning that others can cause at will; the same message once a minute."""
        now = self._clock.monotonic()
        words = f"{event} {keys}"
        if now - self._said.get(words, -QUIET_S) < QUIET_S:
            return
        if len(self._said) >= MAX_REMEMBERED:
            self._said.clear()
        self._said[words] = now
        self.warning(event, **keys)

    def _write(self, level: str, event: str, keys: dict[str, object]) -> None:
        assert EPOCH is not None, "the epoch is a date"
        now = EPOCH + timedelta(milliseconds=self._clock.now_ms())
        timestamp = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"timestamp": timestamp, "level": level, "event": event, **keys}
        sys.stderr.write(json.dumps(line, default=str) + "\n")
        sys.stderr.flush()


log: Final = Log(SystemClock())


class Forwarder(logging.Handler):
    """Converts log records of libraries, from Python's logging, into the same format."""

    def emit(self, record: logging.LogRecord) -> None:
        log.warning("library.warned", logger=record.name, message=record.getMessage())


def forward_libraries() -> None:
    """Replace the standard handler for warnings and worse."""
    logging.basicConfig(level=logging.WARNING, handlers=[Forwarder()])
