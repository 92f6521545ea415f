"""How many bytes a call holds at most, and how many it may."""

import tracemalloc
from collections.abc import Callable
from typing import Any

# Beside twice the bytes: the fields decoded before the lie, the error and its traceback.
ALLOWANCE = 8 * 1024
# Bytes of objects for one byte of the densest honest array, as test_codec_hostile measures it, with
# some room.
DENSEST = 64


# A call that needs memory needs it each time; what a first call compiles, or another thread of the
# test worker allocates meanwhile, which the tracer counts too, it needs only once.
ATTEMPTS = 3


def peak_of(call: Callable[..., Any], *arguments: object, enough: int = ALLOWANCE) -> int:
    """Tell how many bytes a call holds at most, its result included: the least of some attempts.

    Tries no further once the peak is at most `enough`.
    """
    least = _peak_of_one(call, *arguments)
    for _ in range(ATTEMPTS - 1):
        if least <= enough:
            break
        least = min(least, _peak_of_one(call, *arguments))
    return least


def _peak_of_one(call: Callable[..., Any], *arguments: object) -> int:
    tracemalloc.start()
    try:
        result = call(*arguments)
        peak = tracemalloc.get_traced_memory()[1]
        del result
        return peak
    finally:
        tracemalloc.stop()
