"""Reads data for a page in one of four states, with the last good answer as a fallback.

Loaded and empty are answers. If the database fails, the last answer is shown with its age (stale);
if there is none, the page says that reading failed, and why. An error that looks like an empty list
would be worse than an error.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final, Generic, TypeVar

from django.db import Error

T = TypeVar("T")
U = TypeVar("U")

# Answers kept for an outage: a few pages, filters and clusters. The oldest is evicted first.
MAX_KEPT: Final = 32


class State(Enum):
    LOADED = "loaded"
    EMPTY = "empty"
    FAILED = "failed"
    STALE = "stale"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading(Generic[T]):
    """The result of a read. `data` is None exactly if it failed."""

    state: State
    data: T | None
    read_at: datetime
    age_s: int = 0
    reason: str = ""

    def about(self, data: "U | None") -> "Reading[U]":
        """Return the same reading with data that was made of this one's."""
        return Reading(
            state=self.state,
            data=data,
            read_at=self.read_at,
            age_s=self.age_s,
            reason=self.reason,
        )

    @property
    def is_stale(self) -> bool:
        return self.state is State.STALE

    @property
    def is_failed(self) -> bool:
        return self.state is State.FAILED

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY


class LastGood:
    """The last good answers of this process, by query key."""

    def __init__(self) -> None:
        self._kept: dict[object, tuple[Any, float]] = {}

    def read(
        self,
        key: object,
        query: Callable[[], T],
        *,
        is_empty: Callable[[T], bool],
        now: Callable[[], float] = time.time,
    ) -> Reading[T]:
        """Query, or fall back on the last answer for the same key."""
        asked_at = now()
        try:
            data = query()
        except Error as error:
            return self._fallback(key, asked_at, reason=reason_of(error))
        self._kept.pop(key, None)
        self._kept[key] = (_without_tables(data), asked_at)
        while len(self._kept) > MAX_KEPT:
            self._kept.pop(next(iter(self._kept)), None)
        state = State.EMPTY if is_empty(data) else State.LOADED
        return Reading(state=state, data=data, read_at=moment(asked_at))

    def _fallback(self, key: object, asked_at: float, *, reason: str) -> Reading[Any]:
        if key not in self._kept:
            return Reading(state=State.FAILED, data=None, read_at=moment(asked_at), reason=reason)
        data, read_at = self._kept[key]
        return Reading(
            state=State.STALE,
            data=data,
            read_at=moment(read_at),
            age_s=max(0, int(asked_at - read_at)),
            reason=reason,
        )


def _without_tables(data: T) -> T:
    """Return an answer without the collector's tables, which its page no longer needs.

    Each answer would keep all tables of its time: gigabytes, on a large cluster.
    """
    page: Any = data
    around = getattr(page, "frame", None)
    if around is None or around.live is None:
        return data
    kept: T = replace(page, frame=replace(around, live=around.live.without_tables()))
    return kept


def reason_of(error: Error) -> str:
    """Return a database error in one short line."""
    words = str(error).strip().splitlines()
    return words[0][:200] if words else type(error).__name__


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, tz=UTC)


last_good: Final = LastGood()
