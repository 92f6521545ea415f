"""Checks whether Spark is new enough. Pure; runs on any Spark, to report one that is too old."""

from typing import Final

# The first release whose Python sources support limits and Trigger.AvailableNow in streams.
OLDEST: Final = (4, 2)


def is_too_old(version: str) -> bool:
    """Return whether a version of Spark, such as 4.2.0.dev1, is too old for the source."""
    parts = version.split(".")[:2]
    return tuple(int(part) for part in parts if part.isdecimal()) < OLDEST


def needed() -> str:
    return ".".join(map(str, OLDEST))
