"""Stores the newest log lines of each connector in the database, for pages.

Lines are written in batches, so that a slice with many lines writes seldom.
"""

import logging
import time
from typing import Final

from django.db import DatabaseError

from connectors.models import SUMMARY_CHARS, LogLine
from connectors.runtime.ports import Level
from connectors.runtime.record_parts import bare

log: Final = logging.getLogger(__name__)
# Lines that are kept for a connector, and that a page shows.
MAX_KEPT: Final = 1000
# Lines of one slice; of further lines, only the number is stored.
MAX_LINES: Final = 100
# The longest delay until a line is visible.
WRITE_S: Final = 1.0
LEVELS: Final = {Level.INFO: logging.INFO, Level.WARN: logging.WARNING, Level.ERROR: logging.ERROR}


class TaskLog:
    """The log of one slice; `close` it."""

    def __init__(self, connector: int, *, name: str, number: int | None) -> None:
        self._connector = connector
        self._name = name
        self._number = number
        self._lines: list[LogLine] = []
        self._said = 0
        self._written_at = 0.0

    def write(self, level: Level, text: str) -> None:
        self._said += 1
        if self._said > MAX_LINES:
            return
        said = bare(text)
        log.log(LEVELS[level], "task.said task=%s-%s text=%r", self._name, self._number, said)
        line = LogLine(connector_id=self._connector, task=self._number, level=level.value)
        line.text = text[:SUMMARY_CHARS]
        self._lines.append(line)
        if time.monotonic() - self._written_at > WRITE_S:
            self._flush()

    def close(self) -> None:
        """Write the remaining lines, and delete old ones."""
        if self._said > MAX_LINES:
            left_out = LogLine(connector_id=self._connector, task=self._number, level="WARN")
            left_out.text = f"{self._said - MAX_LINES} more lines of this slice were left out"
            self._lines.append(left_out)
        if not self._said:
            return
        self._flush()
        try:
            lines = LogLine.objects.filter(connector=self._connector).order_by("-id")
            oldest = lines.values_list("id", flat=True)[MAX_KEPT : MAX_KEPT + 1].first()
            if oldest is not None:
                LogLine.objects.filter(connector=self._connector, id__lte=oldest).delete()
        except DatabaseError:
            log.exception("task_log.not_trimmed connector=%s", self._name)

    def _flush(self) -> None:
        lines, self._lines = self._lines, []
        self._written_at = time.monotonic()
        try:
            LogLine.objects.bulk_create(lines)
        except DatabaseError:
            # The connector was deleted, or the database is down; the process's own log has them.
            log.exception("task_log.not_written connector=%s lines=%d", self._name, len(lines))
