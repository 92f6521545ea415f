"""Counts what callers do in this process: calls, records, bytes, errors, and what is open.

Numbers only grow, but for what is open; whoever reads them twice knows a rate. Bare calls are
counted on the loop and views in their threads.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Final

from gateway.rest.calls import Call

# A row is some hundred bytes. Only callers that were let in have one, so these are tokens and
# users of one installation; a script that makes a token for each run must not fill the memory.
MAX_CALLERS: Final = 1_000
# What callers beyond that number do together. No caller's key begins so.
OTHERS: Final = "*"


@dataclass(slots=True)
class Counts:
    """What one caller did since the process began."""

    requests: int = 0
    records: int = 0
    errors: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    # Streams and sockets that are open now.
    open: int = 0


class Counter:
    """The traffic of one process, by the key of its callers. From any thread."""

    def __init__(self, *, max_callers: int = MAX_CALLERS) -> None:
        self._max_callers = max_callers
        self._rows: dict[str, Counts] = {}
        self._lock = Lock()

    def count(self, call: Call) -> None:
        """Count a call that is over."""
        self.add(
            call.caller.key,
            requests=1,
            records=call.records,
            errors=call.errors,
            bytes_in=call.bytes_in,
            bytes_out=call.bytes_out,
        )

    def add(
        self,
        key: str,
        *,
        requests: int = 0,
        records: int = 0,
        errors: int = 0,
        bytes_in: int = 0,
        bytes_out: int = 0,
    ) -> None:
        with self._lock:
            row = self._row(key)
            row.requests += requests
            row.records += records
            row.errors += errors
            row.bytes_in += bytes_in
            row.bytes_out += bytes_out

    @contextmanager
    def opened(self, key: str) -> Iterator[None]:
        """Count a stream or a socket as open for as long as it is."""
        with self._lock:
            row = self._row(key)
            row.open += 1
        try:
            yield
        finally:
            with self._lock:
                row.open -= 1

    def rows(self) -> Mapping[str, Mapping[str, int]]:
        """Return all counts as they are now, as values of JSON."""
        with self._lock:
            return {key: asdict(row) for key, row in self._rows.items()}

    def _row(self, key: str) -> Counts:
        if key not in self._rows and len(self._rows) >= self._max_callers:
            key = OTHERS
        return self._rows.setdefault(key, Counts())
