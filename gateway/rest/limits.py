"""How much a caller may do in a second: calls, records and bytes, each a bucket that refills.

May be asked from any thread. A bucket holds one second's worth, so a caller that was
quiet may begin with that much at once. A piece larger than what is left is let through and paid for
by waiting: otherwise a batch larger than a bucket could never be sent.

Where workers share, a bucket holds the part of its rate that is this worker's: see `shares`.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

from django.conf import settings

from gateway.access.callers import Caller
from gateway.rest.codes import ApiError, Code
from gateway.rest.shares import Named, Shares, Wants

# Callers whose buckets are kept; one that is forgotten has a full bucket again.
MAX_CALLERS: Final = 10_000
MIB: Final = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What one caller may do in a second; 0 stands for no limit."""

    requests: int = 10_000
    records: int = 10_000
    bytes: int = 10 * MIB


class Bucket:
    """What is left of a rate; below 0 is owed."""

    __slots__ = ("_at", "_left", "_rate", "wanted")

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._left = rate
        self._at = now
        # What was asked for since somebody looked, also where it was not to be had.
        self.wanted = 0

    def wait_s(self, now: float) -> float:
        """Return how long to wait until something may be taken; 0 for not at all."""
        self._left = min(self._rate, self._left + (now - self._at) * self._rate)
        self._at = now
        # A whole one has to be there; a rate below one a second still has its turn.
        least = min(1.0, self._rate)
        return 0.0 if self._left >= least else (least - self._left) / self._rate

    def take(self, amount: int) -> None:
        self._left -= amount

    def refill_by(self, rate: float, now: float) -> None:
        """Refill by another rate from now on."""
        self.wait_s(now)
        self._rate = rate
        self._left = min(rate, self._left)


class Limits:
    """Of one process, both of its sides."""

    def __init__(self, rates: Rates, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._rates = rates
        self._monotonic = monotonic
        self._buckets: OrderedDict[Named, Bucket] = OrderedDict()
        self._lock = threading.Lock()
        self._shares = Shares()
        # Those that were asked since `divide` looked, and those that it left less than their rate.
        self._asked: set[Named] = set()
        self._divided: set[Named] = set()

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

    def divide(self, seconds: float) -> Wants:
        """Keep to this worker's parts, by what was asked for in so many seconds; return that."""
        now = self._monotonic()
        with self._lock:
            wanted = {}
            for named in self._asked:
                bucket = self._buckets.get(named)
                if bucket is not None:
                    wanted[named] = bucket.wanted / seconds / self._rate_of(named[1])
                    bucket.wanted = 0
            asked, self._asked = self._asked, set()
            told = self._shares.note(wanted)
            self._part(asked | self._divided, now)
        return told

    def hear(self, worker: str, wants: Wants) -> None:
        """Leave another worker what its callers want of it."""
        now = self._monotonic()
        with self._lock:
            self._shares.hear(worker, wants, now=now)
            self._part(wants, now)

    def _part(self, names: Iterable[Named], now: float) -> None:
        for named in names:
            bucket = self._buckets.get(named)
            part = self._shares.part(named, now=now)
            if bucket is not None:
                bucket.refill_by(part * self._rate_of(named[1]), now)
            if bucket is None or part == 1:
                self._divided.discard(named)
            else:
                self._divided.add(named)

    def _rate_of(self, name: str) -> int:
        rate: int = getattr(self._rates, name)
        return rate

    def _take(self, caller: Caller, amounts: dict[str, tuple[int, int]]) -> float:
        now = self._monotonic()
        with self._lock:
            limited = [
                (self._bucket((caller.key, name), rate, now), amount)
                for name, (rate, amount) in amounts.items()
                if rate
            ]
            for bucket, amount in limited:
                bucket.wanted += amount
            wait_s = max((bucket.wait_s(now) for bucket, _ in limited), default=0.0)
            if not wait_s:
                for bucket, amount in limited:
                    bucket.take(amount)
        return wait_s

    def _bucket(self, named: Named, rate: int, now: float) -> Bucket:
        self._asked.add(named)
        bucket = self._buckets.get(named)
        if bucket is None:
            part = self._shares.part(named, now=now)
            bucket = self._buckets[named] = Bucket(part * rate, now)
            if part < 1:
                self._divided.add(named)
            while len(self._buckets) > MAX_CALLERS:
                forgotten, _ = self._buckets.popitem(last=False)
                self._asked.discard(forgotten)
                self._divided.discard(forgotten)
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
