"""Decides when a process that ended is started again.

Pure: time arrives as an argument. A process that had served restarts at once, because its clients
wait; one that never serves is retried at growing intervals, because only an operator who reads its
last output can help it.
"""

from dataclasses import dataclass, replace
from typing import Final

FIRST_DELAY: Final = 0.2
# After a process had served: a kill may cost five seconds altogether.
MAX_DELAY_SERVED: Final = 2.0
# After it never served: often enough to notice that the cause was fixed.
MAX_DELAY_NEVER_SERVED: Final = 15.0
# After it has served this long, earlier failures no longer count.
STABLE_SECONDS: Final = 10.0
# Failures in a row without serving that are reported as a crash loop.
CRASH_LOOP: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts:
    """The failures of one component."""

    total: int = 0
    in_a_row: int = 0  # since it last served for long
    never_served: int = 0  # in a row
    delay: float = 0.0  # before the next start

    @property
    def is_crash_loop(self) -> bool:
        return self.never_served >= CRASH_LOOP

    def after_exit(self, served_seconds: float | None) -> "Restarts":
        """Count an exit; `served_seconds` is None if the process was never ready."""
        has_served = served_seconds is not None
        was_stable = served_seconds is not None and served_seconds >= STABLE_SECONDS
        in_a_row = 1 if was_stable else self.in_a_row + 1
        most = MAX_DELAY_SERVED if has_served else MAX_DELAY_NEVER_SERVED
        # The exponent is bounded, so that a year of crashes does not overflow.
        delay = min(most, FIRST_DELAY * 2 ** min(in_a_row - 1, 10))
        return replace(
            self,
            total=self.total + 1,
            in_a_row=in_a_row,
            never_served=0 if has_served else self.never_served + 1,
            delay=delay,
        )
