"""Remembers credentials that were just refused, and limits an address's attempts with others.

Finding out that a credential is nobody's costs a question to the database, and asking costs whoever
makes one up nothing. So an address has few of these questions, and who was known a moment ago never
waits for it. Belongs to one event loop.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from gateway.addresses import network_of
from gateway.rest.codes import ApiError, Code
from gateway.rest.limits import Bucket, seconds

# What was refused is refused again without a question for as long as what was known counts.
REFUSED_SECONDS: Final = 2.0
# Questions for unknown credentials of one address in a second. Those that turn out to be somebody's
# are not counted, so this bounds how many are asked at the same time after a start, too. A question
# is a millisecond of three threads, so that one address takes a thirtieth of them.
NEW_PER_SECOND: Final = 100
# Of each; a few megabytes. Who is forgotten begins anew, and `callers.Lane` bounds all together.
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
        # Why a key was refused, and until when that counts; the oldest one is the first.
        self._refused: OrderedDict[object, tuple[float, ApiError]] = OrderedDict()
        self._asked: OrderedDict[str, Bucket] = OrderedDict()

    def check(self, key: object) -> None:
        """Refuse what was refused a moment ago."""
        until, error = self._refused.get(key, (0.0, None))
        if error is not None and self._monotonic() < until:
            # Another one: an error that is raised again and again keeps all that it was raised in.
            raise ApiError(error.code, error.message)

    def enter(self, address: str) -> None:
        """Count a question for an unknown credential; TOO_MANY where its address has to wait."""
        now = self._monotonic()
        bucket = self._bucket(network_of(address), now)
        wait_s = bucket.wait_s(now)
        if wait_s:
            raise ApiError(
                Code.TOO_MANY,
                f"{address or 'this address'} shows more than {self._per_second} unknown tokens or"
                " sessions in a second: wait, and show one that is known",
                retry_after_s=seconds(wait_s),
            )
        bucket.take(1)

    def found(self, address: str) -> None:
        """Take back the count of a credential that is somebody's."""
        bucket = self._asked.get(network_of(address))
        if bucket is not None:
            bucket.take(-1)

    def refuse(self, key: object, error: ApiError) -> None:
        """Remember what nobody has."""
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
