"""Tracks whether changes reach the database: since when one waits, and the last refusal.

Reading proves nothing about writing: readers pass a writer that holds the lock, and a full disk.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from brokers.clock import Clock
from brokers.controlplane.lanes import Unanswered


class Writes:
    """The writes of one agent. Belongs to its event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # When each attempt that still runs began.
        self._begun: dict[int, float] = {}
        self._last = 0
        # When the first of the failed attempts began; None after one that succeeded.
        self._failing_since: float | None = None
        self._succeeded_at = clock.monotonic()
        self.last_refusal = ""
        self.last_refusal_at_ms = 0

    @property
    def is_failing(self) -> bool:
        """Whether the last attempt that ended has failed."""
        return self._failing_since is not None

    @property
    def oldest_ms(self) -> int:
        """How long the oldest change waits, counting its failed attempts; 0 if none does."""
        begun = [*self._begun.values()]
        if self._failing_since is not None:
            begun.append(self._failing_since)
        return int(1000 * (self._clock.monotonic() - min(begun))) if begun else 0

    @property
    def proof_age_ms(self) -> int:
        """The time since a write succeeded."""
        return int(1000 * (self._clock.monotonic() - self._succeeded_at))

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Count the block as an attempt to write; a ConnectionError is a refusal."""
        self._last += 1
        number, began = self._last, self._clock.monotonic()
        self._begun[number] = began
        try:
            yield
        except ConnectionError as error:
            # A write that waits behind another one does not learn what both wait for.
            if not isinstance(error, Unanswered) or self._failing_since is None:
                self.last_refusal = str(error).strip()
            self.last_refusal_at_ms = self._clock.now_ms()
            if self._failing_since is None:
                self._failing_since = began
            raise
        else:
            self._failing_since = None
            self._succeeded_at = self._clock.monotonic()
        finally:
            del self._begun[number]
