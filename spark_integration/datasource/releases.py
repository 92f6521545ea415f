"""Which Spark is new enough. Pure, and runs on any Spark: it has to say so on one that is not."""

from typing import Final

# From here on sources in Python read streams with limits, and know Trigger.AvailableNow.
OLDEST: Final = (4, 2)


def is_too_old(version: str) -> bool:
    """Tell whether a version of Spark, such as 4.2.0.dev1, is older than what the source needs."""
    parts = version.split(".")[:2]
    return tuple(int(part) for part in parts if part.isdecimal()) < OLDEST


def needed() -> str:
    return ".".join(map(str, OLDEST))
