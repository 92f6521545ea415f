"""How many bytes a call holds at most, and how many it may."""

import tracemalloc
from collections.abc import Callable
from typing import Any

# Beside twice the bytes: the fields decoded before the lie, the error and its traceback (at most
# 5 KiB), and what other threads of a test worker allocate meanwhile, which the tracer counts too.
ALLOWANCE = 32 * 1024
# Bytes of objects for one byte of the densest honest array, as test_codec_hostile measures it, with
# some room.
DENSEST = 64


def peak_of(call: Callable[..., Any], *arguments: object) -> int:
    """Tell how many bytes a call held at most, its result included."""
    tracemalloc.start()
    try:
        result = call(*arguments)
        peak = tracemalloc.get_traced_memory()[1]
        del result
        return peak
    finally:
        tracemalloc.stop()
