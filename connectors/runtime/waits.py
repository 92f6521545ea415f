"""How long a task waits: when there is nothing to do, and when something failed that may pass.

Pure. All waits grow by doubling, so that what is quiet costs little and what is down is not beaten.
"""

from typing import Final

# A light task is looked at this soon again, and this seldom once it has been quiet for long: 200 of
# them on one worker must have a turn each within 15 s.
FIRST_IDLE_S: Final = 0.2
MAX_IDLE_S: Final = 10.0
# Within a slice nobody else waits for the worker, and records are to be seen within a second.
FIRST_LOOK_S: Final = 0.1
MAX_LOOK_S: Final = 0.8
FIRST_RETRY_S: Final = 0.3
# Exponents beyond it are over every limit.
MAX_DOUBLINGS: Final = 16


def idle(slices: int) -> float:
    """Return the wait after so many slices in a row that found nothing to do."""
    return _grown(FIRST_IDLE_S, slices, MAX_IDLE_S)


def look(polls: int) -> float:
    """Return the wait within a slice after so many polls in a row that found nothing."""
    return _grown(FIRST_LOOK_S, polls, MAX_LOOK_S)


def retry(attempts: int, *, most_s: float) -> float:
    """Return the wait before another attempt, after so many that failed."""
    return _grown(FIRST_RETRY_S, attempts, most_s)


def _grown(first: float, steps: int, most: float) -> float:
    return min(most, first * 2.0 ** min(max(0, steps), MAX_DOUBLINGS))
