"""Keeps the receipts of one stream that its client has not read, within limits.

A client that sends all of its records before it reads gets every receipt, as long as they fit.
"""

from typing import Final

from gateway.access.callers import Caller
from gateway.rest.codes import ApiError, Code
from gateway.rest.incoming import Budget
from gateway.rest.produce.receipts import END

# Of one call: the receipts of 160,000 records with a name of usual length.
MAX_UNREAD_BYTES: Final = 32 * 1024 * 1024
# Of all calls of one caller, and of all calls of a process.
MAX_UNREAD_BYTES_EACH: Final = 64 * 1024 * 1024
MAX_UNREAD_BYTES_ALL: Final = 128 * 1024 * 1024
# Counted in such steps: a client that reads while it sends has less, and costs nothing.
STEP_BYTES: Final = 64 * 1024


def unread_of_all() -> Budget:
    """Return the counter of all calls of a process."""
    return Budget(MAX_UNREAD_BYTES_ALL, each=MAX_UNREAD_BYTES_EACH, what="unread answers")


class Unread:
    """Receipts in their order. Release it at the end."""

    def __init__(self, caller: Caller, budget: Budget, *, most: int = MAX_UNREAD_BYTES) -> None:
        self._caller = caller
        self._budget = budget
        self._most = most
        self._text = bytearray()
        self._counted = 0

    def __bool__(self) -> bool:
        return bool(self._text)

    def put(self, receipt: bytes) -> None:
        self._text += receipt
        self._text += END

    def take(self, most: int) -> bytes:
        """Return the first bytes, which are kept no longer."""
        piece = bytes(self._text[:most])
        del self._text[:most]
        return piece

    def refusal(self) -> ApiError | None:
        """Return why no further record may be taken, whose receipt would have to be kept."""
        size = len(self._text)
        if size >= self._most:
            return ApiError(
                Code.TOO_LARGE,
                f"{size} bytes of receipts of this call are unread, and {self._most} are kept",
            )
        if abs(size - self._counted) >= STEP_BYTES:
            try:
                self._count(size)
            except ApiError as error:
                return error
        return None

    def release(self) -> None:
        self._text.clear()
        self._count(0)

    def _count(self, size: int) -> None:
        self._budget.change(self._caller, size - self._counted)
        self._counted = size
