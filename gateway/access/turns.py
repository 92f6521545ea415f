"""Limits how many threads of a web server do a costly thing at once, and how many wait for it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class TooBusy(Exception):
    """Too many threads already do or await the same thing."""


class Turns:
    """A limit of the whole process for one thing. `what` names it: passwords are being checked."""

    def __init__(self, *, places: int, queue: int, wait_s: float, what: str) -> None:
        self._most = places + queue
        self._wait_s = wait_s
        self._what = what
        self._free = threading.Semaphore(places)
        self._lock = threading.Lock()
        self._present = 0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a place and hold it. Raises TooBusy at once if too many threads wait."""
        with self._lock:
            if self._present >= self._most:
                raise TooBusy(f"{self._most} {self._what} already")
            self._present += 1
        try:
            if not self._free.acquire(timeout=self._wait_s):
                raise TooBusy(f"{self._what}, and no turn came within {self._wait_s:g} s")
            try:
                yield
            finally:
                self._free.release()
        finally:
            with self._lock:
                self._present -= 1
