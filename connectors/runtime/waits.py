"""Computes the waits of an idle task, and after failures that may pass.

Pure. All waits double, so that idle tasks cost little and failing services are spared.
"""

from typing import Final

# A light task is polled again after the first, and after the second once it has been idle for long:
# 200 of them on one worker must each run within 15 s.
FIRST_IDLE_S: Final = 0.2
MAX_IDLE_S: Final = 10.0
# Within a slice no other task waits for the worker, and records should arrive within a second.
FIRST_LOOK_S: Final = 0.1
MAX_LOOK_S: Final = 0.8
FIRST_RETRY_S: Final = 0.3
# With larger exponents all waits are beyond every limit.
MAX_DOUBLINGS: Final = 16


def idle(slices: int) -> float:
    """Return the wait after this many idle slices in a row."""
    return _grown(FIRST_IDLE_S, slices, MAX_IDLE_S)


def look(polls: int) -> float:
    """Return the wait within a slice after this many empty polls in a row."""
    return _grown(FIRST_LOOK_S, polls, MAX_LOOK_S)


def retry(attempts: int, *, most_s: float) -> float:
    """Return the wait before another attempt, after this many failures."""
    return _grown(FIRST_RETRY_S, attempts, most_s)


def _grown(first: float, steps: int, most: float) -> float:
    return min(most, first * 2.0 ** min(max(0, steps), MAX_DOUBLINGS))
