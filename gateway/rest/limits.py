"""Limits calls, records and bytes per second and caller, each by a token bucket.

Thread-safe. A bucket holds one second's worth, so a caller that was quiet may start with that much
at once. A piece that exceeds the bucket is let through and paid for by waiting afterwards:
otherwise a batch larger than a bucket could never be sent. Records that have to wait are counted
at once, so that those who wait are served in turn.

If workers share limits, a bucket has this worker's part of the rate: see `shares`.
"""

import math
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

# Callers whose buckets are kept; an evicted caller has a full bucket again.
MAX_CALLERS: Final = 10_000
MIB: Final = 1_048_576
# How long records of one call wait for their caller's rate, before the call is refused: some
# seconds even out several threads, and clients and proxies wait for an answer for 30.
MAX_DELAY_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Limits of one caller per second; 0 means no limit."""

    requests: int = 10_000
    records: int = 10_000
    bytes: int = 10 * MIB


class Bucket:
    """The remainder of a rate; a negative one is owed."""

    __slots__ = ("_at", "_left", "_rate", "wanted")

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._left = rate
        self._at = now
        # The requested amount since the last reading, including refused requests.
        self.wanted = 0

    def wait_s(self, now: float) -> float:
        """Return the seconds to wait until something may be taken; 0 if none."""
        self._left = min(self._rate, self._left + (now - self._at) * self._rate)
        self._at = now
        # One whole unit has to be available; for a rate below one, a full bucket.
        least = min(1.0, self._rate)
        return 0.0 if self._left >= least else (least - self._left) / self._rate

    def take(self, amount: int) -> None:
        self._left -= amount

    def refill_by(self, rate: float, now: float) -> None:
        """Use another rate from now on."""
        self.wait_s(now)
        self._rate = rate
        self._left = min(rate, self._left)


class Limits:
    """The limits of one process, shared by both of its sides."""

    def __init__(self, rates: Rates, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._rates = rates
        self._monotonic = monotonic
        self._buckets: OrderedDict[Named, Bucket] = OrderedDict()
        self._lock = threading.Lock()
        self._shares = Shares()
        # Buckets used since the last `divide`, and those that it left with less than their rate.
        self._asked: set[Named] = set()
        self._divided: set[Named] = set()

    def take_request(self, caller: Caller) -> None:
        """Count a call. Raises TOO_MANY if the caller has to wait first."""
        wait_s = self._take(caller, {"requests": (self._rates.requests, 1)})
        if wait_s:
            raise ApiError(
                Code.TOO_MANY,
                f"{caller.key} makes more than {self._rates.requests} calls in a second: wait,"
                " and send more records in one call",
                retry_after_s=seconds(wait_s),
            )

    def take_records(
        self, caller: Caller, records: int, size: int, *, patience_s: float = math.inf
    ) -> float:
        """Count records and their bytes; return the seconds to wait before sending them.

        Raises TOO_MANY, and counts nothing, if that is longer than `patience_s`.
        """
        wait_s = self._take(
            caller,
            {"records": (self._rates.records, records), "bytes": (self._rates.bytes, size)},
            patience_s=patience_s,
        )
        if wait_s > patience_s:
            raise ApiError(
                Code.TOO_MANY,
                f"{caller.key} writes more than {self._rates.records} records or"
                f" {self._rates.bytes} bytes in a second, and would wait {wait_s:.1f} s for its"
                " turn: nothing was written; wait, and send all of it again",
                retry_after_s=seconds(wait_s),
            )
        return wait_s

    def divide(self, seconds: float) -> Wants:
        """Limit this worker to its parts, by the demand of the last seconds; return that demand."""
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
        """Take over the demand that another worker reports for its callers."""
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

    def _take(
        self, caller: Caller, amounts: dict[str, tuple[int, int]], *, patience_s: float = 0.0
    ) -> float:
        """Return the seconds to wait; count the amounts unless that is longer than `patience_s`."""
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
            if wait_s <= patience_s:
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
    """Return the limits of a process, from its settings."""
    requests, records, size = settings.SAMSA_REST_RATES
    return Limits(Rates(requests=requests, records=records, bytes=size))


def seconds(wait_s: float) -> int:
    """Return whole seconds for the header Retry-After, at least one."""
    return max(1, -int(-wait_s // 1))
