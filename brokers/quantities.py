"""Parses sizes and durations as users write them, and words the numbers of configs.

Pure. The key of a config says in which unit its number counts, as Kafka's keys do. Only what users
type and read has units: what is stored and sent is the plain number.
"""

import re
from collections.abc import Mapping
from enum import Enum
from fractions import Fraction
from typing import Final

MAX_INT64: Final = 2**63 - 1
# No quantity is longer.
MAX_CHARS: Final = 60


class Unit(Enum):
    """What the number of a config counts."""

    MS = "ms"
    SECONDS = "s"
    MINUTES = "min"
    HOURS = "h"
    BYTES = "B"


class BadQuantity(ValueError):
    """A text is no size or duration; the message says so, in words that follow the text."""


# The last part of a key, and its unit.
UNITS: Final[Mapping[str, Unit]] = {
    "ms": Unit.MS,
    "seconds": Unit.SECONDS,
    "minutes": Unit.MINUTES,
    "hours": Unit.HOURS,
    "bytes": Unit.BYTES,
}
# Kafka's keys that end in another word.
OTHERS: Final[Mapping[str, Unit]] = {
    "errors.retry.timeout": Unit.MS,
    "follower.replication.throttled.rate": Unit.BYTES,
    "leader.replication.throttled.rate": Unit.BYTES,
    "log.cleaner.dedupe.buffer.size": Unit.BYTES,
    "log.cleaner.io.buffer.size": Unit.BYTES,
    "log.cleaner.io.max.bytes.per.second": Unit.BYTES,
}
# Keys that can be without a limit, and the number that says so.
NO_LIMIT: Final[Mapping[str, int]] = {
    **dict.fromkeys(("retention.bytes", "log.retention.bytes"), -1),
    **dict.fromkeys(("retention.ms", "log.retention.ms"), -1),
    **dict.fromkeys(("log.retention.minutes", "log.retention.hours"), -1),
    **dict.fromkeys(("flush.ms", "log.flush.interval.ms"), MAX_INT64),
    **dict.fromkeys(("flush.messages", "log.flush.interval.messages"), MAX_INT64),
    **dict.fromkeys(("max.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"), MAX_INT64),
    "errors.retry.timeout": -1,
    "message.timestamp.before.max.ms": MAX_INT64,
    "log.message.timestamp.before.max.ms": MAX_INT64,
}
UNLIMITED: Final = frozenset({"unlimited", "no limit", "never", "forever", "infinite"})
# From here on a number of milliseconds or records is never reached: 146 million years.
ENDLESS: Final = 2**62
# The config of a topic that a source creates has this before its own name.
CREATED: Final = re.compile(r"topic\.creation\.[^.]+\.")

WHOLE: Final = re.compile(r"[+-]?[0-9]+")
PART: Final = re.compile(r"\s*([0-9]{1,20}(?:\.[0-9]{1,9})?)\s*([A-Za-z]+)\s*")
# Lengths in milliseconds, the longest first.
TIMES: Final = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1))
SPELLINGS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
    **dict.fromkeys(("w", "week", "weeks"), 604_800_000),
}
LENGTHS: Final[Mapping[Unit, int]] = {
    Unit.MS: 1,
    Unit.SECONDS: 1_000,
    Unit.MINUTES: 60_000,
    Unit.HOURS: 3_600_000,
}
WORDS: Final[Mapping[Unit, str]] = {
    Unit.MS: "milliseconds",
    Unit.SECONDS: "seconds",
    Unit.MINUTES: "minutes",
    Unit.HOURS: "hours",
    Unit.BYTES: "bytes",
}
BINARY: Final = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
DECIMAL: Final = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3))
# Letters without a B are not among them: 5 G is 5 GiB to some programs, and 5 GB to others.
SIZES: Final[Mapping[str, int]] = {
    "b": 1,
    **dict.fromkeys(("byte", "bytes"), 1),
    **{name.lower(): size for name, size in (*BINARY, *DECIMAL)},
    **{name.lower().removesuffix("b"): size for name, size in BINARY},
}
# Below this, bytes are read as they are.
FEW_BYTES: Final = 1_000
# More parts of a duration are not read faster than a number.
MAX_PARTS: Final = 3


def unit_of(key: str) -> Unit | None:
    """Return the unit of a config, by its key; None if it counts something else."""
    return OTHERS.get(key) or UNITS.get(key.rpartition(".")[2])


def plain(key: str, text: str) -> str:
    """Return the value of a config as it is stored: a size or a duration becomes a number.

    Other texts are returned as they are. Raises BadQuantity.
    """
    return number(unit_of(key), text, unlimited=_unlimited(key))


def number(unit: Unit | None, text: str, *, unlimited: int | None = None) -> str:
    """Return a size or a duration as a plain number of a unit. Raises BadQuantity."""
    given = text.strip()
    if unlimited is not None and " ".join(given.lower().split()) in UNLIMITED:
        return str(unlimited)
    # No quantity is as long, and tables of configs have limits of their own.
    if unit is None or not given or len(given) > MAX_CHARS or WHOLE.fullmatch(given):
        return text
    return str(parse(unit, given))


def parse(unit: Unit, text: str) -> int:
    """Return a size or a duration such as 5 GiB, 12h or 1h30m in a unit. Raises BadQuantity."""
    names = SIZES if unit is Unit.BYTES else SPELLINGS
    total, position = Fraction(0), 0
    seen: list[int] = []
    while len(text) <= MAX_CHARS and (part := PART.match(text, position)):
        size = names.get(part[2].lower())
        # The parts of a duration become smaller, and a size has one.
        if size is None or (seen and (unit is Unit.BYTES or size >= seen[-1])):
            break
        seen.append(size)
        total += Fraction(part[1]) * size
        position = part.end()
    if not seen or position < len(text):
        raise BadQuantity(_advice(unit))
    total /= LENGTHS.get(unit, 1)
    if total.denominator != 1:
        raise BadQuantity(f"is not a whole number of {WORDS[unit]}")
    return int(total)


def in_words(key: str, text: str) -> str:
    """Return the value of a config in larger units, as `plain` reads it; empty if it needs none.

    A value that is long in words begins with "about", and is not exact.
    """
    if not is_number(text):
        return ""
    value, unit, unlimited = int(text), unit_of(key), _unlimited(key)
    if unlimited is not None and (value == unlimited or value >= ENDLESS):
        return "no limit" if unlimited == -1 else "never"
    return "" if unit is None else words_of(unit, value)


def words_of(unit: Unit, value: int) -> str:
    """Return a number of a unit in words; empty if it is none, or reads no better in words."""
    if not 0 < value < ENDLESS or (unit is Unit.BYTES and value < FEW_BYTES):
        return ""
    return size(value) if unit is Unit.BYTES else duration(value * LENGTHS[unit])


def is_number(text: str) -> bool:
    """Return whether a text is a whole number, of a length that can be read."""
    return len(text) <= MAX_CHARS and WHOLE.fullmatch(text) is not None


def worded(key: str, text: str) -> str:
    """Return the value of a config with its words: 604800000 (7 d)."""
    words = in_words(key, text)
    return f"{text} ({words})" if words else text


def duration(milliseconds: int) -> str:
    """Return a duration in words, such as 7 d or 1 h 30 min."""
    left, parts = milliseconds, []
    for name, length in TIMES:
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count} {name}")
    if len(parts) <= MAX_PARTS:
        return " ".join(parts) or "0 ms"
    return f"about {' '.join(parts[:2])}"


def size(count: int) -> str:
    """Return a number of bytes in words, such as 5 GiB or 500 MB."""
    for units, step in ((BINARY, 1024), (DECIMAL, 1000)):
        for name, unit in units:
            # Two digits behind the point are read; a number that has more is not exact.
            if unit <= count < step * unit and 100 * count % unit == 0:
                return f"{count / unit:g} {name}"
    found = next(((name, unit) for name, unit in BINARY if count >= unit), None)
    return f"{count} B" if found is None else f"about {round(count / found[1], 1):g} {found[0]}"


def _unlimited(key: str) -> int | None:
    return NO_LIMIT.get(CREATED.sub("", key, count=1) if key.startswith("topic.") else key)


def _advice(unit: Unit) -> str:
    if unit is Unit.BYTES:
        return "is not a size: write 5 GiB, 500 MB, or a number of bytes"
    return f"is not a duration: write 2d, 12h, 1h30m, 500ms, or a number of {WORDS[unit]}"
