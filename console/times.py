"""Formats moments for pages, titles and exports; `gateway.moments` reads them.

All are in the active zone of the request (`console.preferences`), so that no page mixes zones. A
clock time that occurs twice, in the night when clocks go back, has its offset appended.
"""

from datetime import UTC, datetime
from typing import Final

from django.utils import timezone

# The largest unit that fits at least once; "1 min ago" reads better than "90 s ago".
UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
# Below this, clocks of two machines differ more than the text would say.
NOW_SECONDS: Final = 2


def exact(value: datetime) -> str:
    """Return date, time and offset: 2026-11-19 10:12:33+01:00."""
    return timezone.localtime(value).isoformat(sep=" ", timespec="seconds")


def exported(value: datetime) -> str:
    """Return a moment for another program: in the active zone, with its offset, exactly."""
    return timezone.localtime(value).isoformat()


def title(value: datetime) -> str:
    """Return a moment in the active zone and in UTC, for the title of a shorter text."""
    in_utc = f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    name = timezone.get_current_timezone_name()
    return in_utc if name == "UTC" else f"{exact(value)} {name} · {in_utc}"


def clock(value: datetime) -> str:
    local = timezone.localtime(value)
    return f"{local:%H:%M:%S}{_offset_if_twice(local)}"


def minute(value: datetime) -> str:
    """Return day and time of day, for columns of moments that are days apart."""
    local = timezone.localtime(value)
    return f"{local:%Y-%m-%d %H:%M}{_offset_if_twice(local)}"


def second(value: datetime) -> str:
    """Return day and time of day to the second, for a log of events."""
    local = timezone.localtime(value)
    return f"{local:%Y-%m-%d %H:%M:%S}{_offset_if_twice(local)}"


def short(value: datetime, now: datetime) -> str:
    """Return the clock time of a moment today, else its day."""
    local, today = timezone.localtime(value), timezone.localtime(now).date()
    if local.date() == today:
        return clock(value)
    return f"{local.day} {local:%b}" if local.year == today.year else f"{local:%Y-%m-%d}"


def ago(value: datetime, now: datetime) -> str:
    """Return how long ago a moment was. The page's script updates it by the same rule."""
    seconds = (now - value).total_seconds()
    if abs(seconds) < NOW_SECONDS:
        return "now"
    size, unit = next(row for row in UNITS if abs(seconds) >= row[0])
    amount = f"{int(abs(seconds) // size)} {unit}"
    return f"{amount} ago" if seconds > 0 else f"in {amount}"


def _offset_if_twice(local: datetime) -> str:
    is_twice = local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
    return f"{local:%z}" if is_twice else ""
