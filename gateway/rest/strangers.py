"""Caches credentials that were just refused, and limits lookups of new ones per address.

Finding out that a credential is invalid takes a database query, while inventing one costs nothing.
So the lookups of an address are limited, and recently known callers never wait for that. Belongs to
one event loop.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from gateway.addresses import network_of
from gateway.rest.codes import ApiError, Code
from gateway.rest.limits import Bucket, seconds

# Refusals are cached for as long as known callers are.
REFUSED_SECONDS: Final = 2.0
# Lookups of unknown credentials per address and second. Valid ones are not counted in the end, so
# this also limits concurrent lookups after a start. A lookup takes a millisecond of one of three
# threads, so one address uses a thirtieth of them.
NEW_PER_SECOND: Final = 100
# Of each table; a few megabytes. An evicted row starts over; `callers.Lane` limits the total.
MAX_ROWS: Final = 10_000


class Strangers:
    """See the module."""

    def __init__(
        self,
        *,
        per_second: int = NEW_PER_SECOND,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._per_second = per_second
        self._monotonic = monotonic
        # The refusal of a key and its expiry, oldest first.
        self._refused: OrderedDict[object, tuple[float, ApiError]] = OrderedDict()
        self._asked: OrderedDict[str, Bucket] = OrderedDict()

    def check(self, key: object) -> None:
        """Raise the error of a key that was refused a moment ago."""
        until, error = self._refused.get(key, (0.0, None))
        if error is not None and self._monotonic() < until:
            # Raise a copy: an error that is raised repeatedly keeps every traceback.
            raise ApiError(error.code, error.message)

    def enter(self, address: str) -> None:
        """Count a lookup of an unknown credential. Raises TOO_MANY if the address has to wait."""
        now = self._monotonic()
        bucket = self._bucket(network_of(address), now)
        wait_s = bucket.wait_s(now)
        if wait_s:
            raise ApiError(
                Code.TOO_MANY,
                f"{address or 'this address'} sends more than {self._per_second} unknown tokens or"
                " sessions in a second: wait, and send a valid one",
                retry_after_s=seconds(wait_s),
            )
        bucket.take(1)

    def found(self, address: str) -> None:
        """Undo the count of a credential that proved valid."""
        bucket = self._asked.get(network_of(address))
        if bucket is not None:
            bucket.take(-1)

    def refuse(self, key: object, error: ApiError) -> None:
        """Remember a refused credential."""
        self._refused[key] = (self._monotonic() + REFUSED_SECONDS, error)
        self._refused.move_to_end(key)
        while len(self._refused) > MAX_ROWS:
            self._refused.popitem(last=False)

    def _bucket(self, network: str, now: float) -> Bucket:
        bucket = self._asked.get(network)
        if bucket is None:
            bucket = self._asked[network] = Bucket(self._per_second, now)
            while len(self._asked) > MAX_ROWS:
                self._asked.popitem(last=False)
        else:
            self._asked.move_to_end(network)
        return bucket
