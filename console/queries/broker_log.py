"""Reads lines of a broker's log for a page, once the agent of the broker's host has sent them."""

import json
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from brokers.controlplane import orders

# Keys of an entry that get their own columns.
PLACED: Final = frozenset({"event", "level", "timestamp", "timestamp_ms"})
MARKS: Final = {"warning": "warn", "error": "bad", "critical": "bad"}
# A page that follows the log polls this many times, every three seconds, then stops until asked.
MAX_ROUNDS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """One line; `at` is None for a line that is not a log entry of Samsa."""

    at: datetime | None
    level: str
    mark: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPart:
    """What one log order has returned so far; `rows` is None until then."""

    number: int  # of the broker
    order: int
    round: int
    rows: tuple[LogRow, ...] | None = None
    cursor: str = ""
    has_gap: bool = False
    failure: str = ""
    follows: bool = False

    @property
    def next_round(self) -> int:
        return self.round + 1

    @property
    def is_last(self) -> bool:
        return self.round >= MAX_ROUNDS


def log_part(
    cluster_id: str, number: int, order: int, *, round_number: int = 0, follows: bool = False
) -> LogPart | None:
    """Return what a log order has returned so far; None if there is no such order."""
    now_ms = int(1000 * time.time())
    found = orders.log_lines(cluster_id=cluster_id, broker_id=number, number=order, now_ms=now_ms)
    if found is None:
        return None
    asked, lines = found
    part = LogPart(number=number, order=order, round=round_number, follows=follows)
    if lines is not None:
        rows = tuple(row_of(line) for line in lines.lines)
        return replace(part, rows=rows, cursor=lines.cursor, has_gap=lines.has_gap)
    if asked.is_open:
        return part
    failure = asked.message or "the lines are no longer kept: request them again"
    return replace(part, failure=failure)


def row_of(line: str) -> LogRow:
    """Return a line for display: an entry of Samsa in its parts, any other line unchanged."""
    entry = _entry(line)
    if entry is None:
        return LogRow(at=None, level="", mark="", text=line)
    level = str(entry.get("level", "")).lower()
    keys = " ".join(
        f"{key}={value if isinstance(value, str) else json.dumps(value)}"
        for key, value in entry.items()
        if key not in PLACED
    )
    return LogRow(
        at=_moment(entry),
        level=level,
        mark=MARKS.get(level, ""),
        text=f"{entry['event']} {keys}".rstrip(),
    )


def _entry(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) and "event" in entry else None


def _moment(entry: dict[str, Any]) -> datetime | None:
    try:
        milliseconds = entry.get("timestamp_ms")
        if type(milliseconds) is int:
            return datetime.fromtimestamp(milliseconds / 1000, tz=UTC)
        found = datetime.fromisoformat(str(entry.get("timestamp")))
    except (ValueError, OverflowError, OSError):
        return None
    return found if found.tzinfo is not None else None
