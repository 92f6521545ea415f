"""When a process that ended is started again.

Pure: time arrives as an argument. A process that had served comes back at once, because its
clients wait; one that never gets so far is tried ever more rarely, because only somebody who reads
its last words can help it.
"""

from dataclasses import dataclass, replace
from typing import Final

FIRST_DELAY: Final = 0.2
# After a process had served: five seconds is what a kill may cost altogether.
MAX_DELAY_SERVED: Final = 2.0
# After it never served: often enough to notice that somebody mended the cause.
MAX_DELAY_NEVER_SERVED: Final = 15.0
# Having served this long, what happened before has no bearing any more.
STABLE_SECONDS: Final = 10.0
# Failures in a row, none of which served, that are called by their name.
CRASH_LOOP: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts:
    """The failures of one component so far."""

    total: int = 0
    in_a_row: int = 0  # since it last served for long
    never_served: int = 0  # in a row
    delay: float = 0.0  # before the next start

    @property
    def is_crash_loop(self) -> bool:
        return self.never_served >= CRASH_LOOP

    def after_exit(self, served_seconds: float | None) -> "Restarts":
        """Count an exit; `served_seconds` is None where the process was never ready."""
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
