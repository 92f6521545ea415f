"""Time windows: assigns times to windows. Pure.

A window includes its start and excludes its end. Sessions that overlap or touch are merged, as in
Spark.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from spark_integration.streams.durations import MICROS_PER_MS, parse_duration
from spark_integration.streams.errors import refused

# The most windows of one record, which is copied into each.
MOST_OVERLAPPING: Final = 1000


class Shape(Enum):
    # Adjacent windows.
    TUMBLING = "tumbling"
    # Windows of the given size; one begins with each slide.
    HOPPING = "hopping"
    # From a record to the gap after the last record that arrived before the end.
    SESSION = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    shape: Shape
    size_ms: int
    # The distance between two starts; nothing for sessions.
    slide_ms: int = 0

    def to_json(self) -> Any:
        return {"shape": self.shape.value, "size_ms": self.size_ms, "slide_ms": self.slide_ms}


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Span:
    """One window, in microseconds since 1970."""

    start: int
    end: int


def tumbling(size: str) -> Window:
    size_ms = parse_duration("tumbling", size)
    return Window(shape=Shape.TUMBLING, size_ms=size_ms, slide_ms=size_ms)


def hopping(size: str, *, slide: str) -> Window:
    size_ms, slide_ms = parse_duration("hopping", size), parse_duration("hopping", slide)
    if slide_ms > size_ms:
        raise refused(
            "hopping",
            f"slide {slide!r} is longer than the size {size!r}, so records would be dropped",
            "give a slide no longer than the size",
        )
    if size_ms > slide_ms * MOST_OVERLAPPING:
        raise refused(
            "hopping",
            f"{size!r} by {slide!r} puts a record into {-(-size_ms // slide_ms)} windows",
            f"give a slide that makes it {MOST_OVERLAPPING} at most",
        )
    return Window(shape=Shape.HOPPING, size_ms=size_ms, slide_ms=slide_ms)


def session(gap: str) -> Window:
    return Window(shape=Shape.SESSION, size_ms=parse_duration("session", gap))


def spans_of(window: Window, time: int) -> Iterator[Span]:
    """Yield the windows of a time; for sessions, the one that it begins."""
    size = window.size_ms * MICROS_PER_MS
    if window.shape is Shape.SESSION:
        yield Span(start=time, end=time + size)
        return
    slide = window.slide_ms * MICROS_PER_MS
    start = time - time % slide
    while start + size > time:
        yield Span(start=start, end=start + size)
        start -= slide


def are_one_session(earlier: Span, later: Span) -> bool:
    return later.start <= earlier.end
