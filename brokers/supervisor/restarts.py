"""Decides when a process that ended is started again.

Pure: time arrives as an argument. The first restarts follow at once, because clients wait; a
process that ends again and again is retried at growing intervals and called a crash loop, since
only an operator who reads its last output can help it.
"""

from dataclasses import dataclass, replace
from typing import Final

FIRST_DELAY: Final = 0.2
# Each end doubles the pause: the fourth in a row costs 1.6 s, so a kill costs five seconds at most.
# A crash loop of a broker costs its cluster two elections a minute. Once its cause is removed, it
# serves within a minute, or at once by `./samsa brokers start`.
MAX_DELAY: Final = 60.0
# After it has served this long, earlier ends no longer count.
STABLE_SECONDS: Final = 10.0
# Ends in a row that are reported as a crash loop: without serving, and after serving briefly.
LOOP_NEVER_SERVED: Final = 3
LOOP_SERVED_BRIEFLY: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts:
    """The ends of one component."""

    total: int = 0
    in_a_row: int = 0  # since it last served for long
    never_served: int = 0  # in a row
    delay: float = 0.0  # before the next start

    @property
    def is_crash_loop(self) -> bool:
        return self.never_served >= LOOP_NEVER_SERVED or self.in_a_row >= LOOP_SERVED_BRIEFLY

    def after_exit(self, served_seconds: float | None) -> "Restarts":
        """Count an exit; `served_seconds` is None if the process was never ready."""
        was_stable = served_seconds is not None and served_seconds >= STABLE_SECONDS
        in_a_row = 1 if was_stable else self.in_a_row + 1
        return replace(
            self,
            total=self.total + 1,
            in_a_row=in_a_row,
            never_served=self.never_served + 1 if served_seconds is None else 0,
            # The exponent is bounded, so that a year of crashes does not overflow.
            delay=min(MAX_DELAY, FIRST_DELAY * 2 ** min(in_a_row - 1, 10)),
        )
