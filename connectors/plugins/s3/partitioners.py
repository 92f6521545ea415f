"""Chooses the folder of a record in the bucket: by partition, by fields, or by time; pure.

Values are quoted in the folder's name, so that no record leaves the folder of its topic.
"""

import datetime
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final
from urllib.parse import quote
from zoneinfo import ZoneInfo

from connectors.sdk.errors import ConfigError, DataError
from connectors.sdk.json_text import EPOCH, MILLISECOND, milliseconds
from connectors.sdk.records import SinkRecord
from connectors.sdk.schemas import Struct

# Characters that are not quoted in the name of a folder.
PLAIN: Final = " -_.:+@,"
DAILY: Final = "'year'=YYYY/'month'=MM/'day'=dd"
HOURLY: Final = f"{DAILY}/'hour'=HH"
DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000
# Supported letters of a path's format, with those of strftime.
LETTERS: Final[Mapping[str, str]] = {
    "YYYY": "%Y",
    "yyyy": "%Y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
}
TOKEN: Final = re.compile(r"'([^']*)'|([A-Za-z]+)|([^A-Za-z']+)|(.)")


class Partitioner(ABC):
    @abstractmethod
    def folder(self, record: SinkRecord) -> str:
        """Return the folder below the topic's; DataError if the record lacks a value for it."""

    def time_ms(self, record: SinkRecord) -> int | None:
        """Return the time that decides when files are closed."""
        return record.timestamp_ms


class ByPartition(Partitioner):
    def folder(self, record: SinkRecord) -> str:
        return f"partition={record.first_place.partition}"


class ByField(Partitioner):
    def __init__(self, names: Sequence[str], *, shows_names: bool = True) -> None:
        self._names = names
        self._shows_names = shows_names

    def folder(self, record: SinkRecord) -> str:
        shown = [(name, _folder_name(name, field_of(record.value, name))) for name in self._names]
        return "/".join(f"{name}={value}" if self._shows_names else value for name, value in shown)


class ByTime(Partitioner):
    """Folders by time, such as `year=2026/month=11/day=19`, one for each duration."""

    def __init__(self, path_format: str, *, duration_ms: int, zone: str, field: str = "") -> None:
        self._pattern = time_pattern(path_format)
        self._duration_ms = duration_ms
        self._zone = ZoneInfo(zone)
        self._field = field

    def folder(self, record: SinkRecord) -> str:
        moment_ms = self.time_ms(record)
        if moment_ms is None:
            raise DataError("the record has no time, by which its folder is chosen")
        try:
            moment = EPOCH + moment_ms * MILLISECOND
            local = moment.astimezone(self._zone)
            if self._duration_ms > 0:
                # In local time: days begin at midnight there.
                shift = int(local.utcoffset().total_seconds() * 1000)  # type: ignore[union-attr]
                begin_ms = (moment_ms + shift) // self._duration_ms * self._duration_ms
                local = (EPOCH + begin_ms * MILLISECOND).replace(tzinfo=self._zone)
        except OverflowError as error:
            raise DataError(f"{moment_ms} ms is not a time that a folder can have") from error
        return local.strftime(self._pattern)

    def time_ms(self, record: SinkRecord) -> int | None:
        if not self._field:
            return record.timestamp_ms
        return _time_of(self._field, field_of(record.value, self._field))


def time_pattern(path_format: str) -> str:
    """Convert a path's format for strftime; ConfigError names an unknown letter."""
    pattern = ""
    for quoted, letters, others, stray in TOKEN.findall(path_format):
        if stray or (letters and letters not in LETTERS):
            raise ConfigError(
                f"path.format {path_format!r} has {stray or letters!r}: quote literal text, and "
                f"use {', '.join(LETTERS)} for times"
            )
        pattern += LETTERS.get(letters, "") or (quoted + others).replace("%", "%%")
    return pattern


def field_of(value: Any, name: str) -> Any:
    """Return a field of a value, or of one of its structs if the name has dots."""
    for part in name.split("."):
        if isinstance(value, (Struct, dict)):
            value = value.values.get(part) if isinstance(value, Struct) else value.get(part)
        else:
            value = None
        if value is None:
            raise DataError(f"the value has no field {name}, by which its folder is chosen")
    return value


def _folder_name(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (datetime.date, datetime.time)):
        return quote(value.isoformat(), safe=PLAIN)
    if not isinstance(value, (str, int, float, Decimal)):
        raise DataError(f"the field {name} is a {type(value).__name__}, which names no folder")
    shown = quote(str(value), safe=PLAIN)
    # Some stores treat `.` and `..` like file systems do.
    return shown.replace(".", "%2E") if shown.strip(".") == "" else shown


def _time_of(name: str, value: Any) -> int:
    if isinstance(value, datetime.datetime):
        return milliseconds(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        try:
            moment = datetime.datetime.fromisoformat(value)
        except ValueError:
            raise DataError(f"the field {name} is {value[:100]!r}, which is not a time") from None
        return milliseconds(moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC))
    raise DataError(f"the field {name} is a {type(value).__name__}, which is not a time")
