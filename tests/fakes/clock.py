"""A clock that a test moves."""


class ManualClock:
    """A clock that moves only by explicit calls. One thread only."""

    __slots__ = ("_monotonic_ms", "_now_ms")

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = 0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._monotonic_ms / 1000

    def advance(self, milliseconds: int) -> None:
        assert milliseconds >= 0, f"time cannot advance by {milliseconds} ms"
        self._now_ms += milliseconds
        self._monotonic_ms += milliseconds

    def set_wall(self, now_ms: int) -> None:
        """Set the wall time alone, also backwards, as an operator or NTP may."""
        self._now_ms = now_ms
