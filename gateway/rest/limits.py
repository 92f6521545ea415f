"""How much a caller may do in a second: calls, records and bytes, each a bucket that refills.

May be asked from any thread. A bucket holds one second's worth, so a caller that was
quiet may begin with that much at once. A piece larger than what is left is let through and paid for
by waiting: otherwise a batch larger than a bucket could never be sent.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

from django.conf import settings

from gateway.access.callers import Caller
from gateway.rest.codes import ApiError, Code

# Callers whose buckets are kept; one that is forgotten has a full bucket again.
MAX_CALLERS: Final = 10_000
MIB: Final = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What one caller may do in a second in one worker; 0 stands for no limit."""

    requests: int = 10_000
    records: int = 10_000
    bytes: int = 10 * MIB


class Bucket:
    """What is left of a rate; below 0 is owed."""

    __slots__ = ("_at", "_left", "_rate")

    def __init__(self, rate: int, now: float) -> None:
        self._rate = rate
        self._left = float(rate)
        self._at = now

    def wait_s(self, now: float) -> float:
        """Return how long to wait until something may be taken; 0 for not at all."""
        self._left = min(self._rate, self._left + (now - self._at) * self._rate)
        self._at = now
        # A whole one has to be there.
        return 0.0 if self._left >= 1 else (1 - self._left) / self._rate

    def take(self, amount: int) -> None:
        self._left -= amount


class Limits:
    """Of one process, both of its sides."""

    def __init__(self, rates: Rates, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._rates = rates
        self._monotonic = monotonic
        self._buckets: OrderedDict[tuple[str, str], Bucket] = OrderedDict()
        self._lock = threading.Lock()

    def take_request(self, caller: Caller) -> None:
        """Count a call; TOO_MANY where the caller has to wait first."""
        wait_s = self._take(caller, {"requests": (self._rates.requests, 1)})
        if wait_s:
            raise ApiError(
                Code.TOO_MANY,
                f"{caller.key} makes more than {self._rates.requests} calls in a second: wait,"
                " and send more records in one call",
                retry_after_s=seconds(wait_s),
            )

    def take_records(self, caller: Caller, records: int, size: int) -> float:
        """Count records of so many bytes; return 0, or the seconds to wait before they may go.

        Where there is something to wait for, nothing is counted.
        """
        return self._take(
            caller,
            {"records": (self._rates.records, records), "bytes": (self._rates.bytes, size)},
        )

    def refusal(self, caller: Caller, wait_s: float) -> ApiError:
        """Return what a caller is told whose records may not go yet."""
        return ApiError(
            Code.TOO_MANY,
            f"{caller.key} writes more than {self._rates.records} records or"
            f" {self._rates.bytes} bytes in a second: wait and send again",
            retry_after_s=seconds(wait_s),
        )

    def _take(self, caller: Caller, amounts: dict[str, tuple[int, int]]) -> float:
        now = self._monotonic()
        with self._lock:
            limited = [
                (self._bucket(caller.key, name, rate, now), amount)
                for name, (rate, amount) in amounts.items()
                if rate
            ]
            wait_s = max((bucket.wait_s(now) for bucket, _ in limited), default=0.0)
            if not wait_s:
                for bucket, amount in limited:
                    bucket.take(amount)
        return wait_s

    def _bucket(self, key: str, name: str, rate: int, now: float) -> Bucket:
        named = (key, name)
        bucket = self._buckets.get(named)
        if bucket is None:
            bucket = self._buckets[named] = Bucket(rate, now)
            while len(self._buckets) > MAX_CALLERS:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(named)
        return bucket


@cache
def of_process() -> Limits:
    """Return the limits of both sides of a process, as its settings have them."""
    requests, records, size = settings.SAMSA_REST_RATES
    return Limits(Rates(requests=requests, records=records, bytes=size))


def seconds(wait_s: float) -> int:
    """Return whole seconds, as the header Retry-After has them, and never none."""
    return max(1, -int(-wait_s // 1))
