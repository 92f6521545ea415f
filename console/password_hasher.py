"""Hashes passwords, few at a time: each takes memory and time on purpose.

Logins run in a thread each. Without a bound here, forty at once took 1.4 GB.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.contrib.auth.hashers import Argon2PasswordHasher

# At once: two cores hash no faster with more, and their memory is that of the constant below.
PLACES: Final = 2
# Who may wait for a place: the last of them waits a second or two, which a person puts up with.
QUEUE: Final = 20
# A thread that waits longer than this is given up: its browser has, or the machine is overwhelmed.
WAIT_SECONDS: Final = 10.0


class TooBusy(Exception):
    """So many passwords are being checked that this one would wait too long."""


class Turns:
    """Lets few threads work at once, and few wait."""

    def __init__(self, *, places: int = PLACES, queue: int = QUEUE) -> None:
        self._most = places + queue
        self._free = threading.Semaphore(places)
        self._lock = threading.Lock()
        self._present = 0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a place and hold it; TooBusy at once where too many wait already."""
        with self._lock:
            if self._present >= self._most:
                raise TooBusy(f"{self._most} passwords are being checked already")
            self._present += 1
        try:
            if not self._free.acquire(timeout=WAIT_SECONDS):
                raise TooBusy(f"no password could be checked within {WAIT_SECONDS:g} s")
            try:
                yield
            finally:
                self._free.release()
        finally:
            with self._lock:
                self._present -= 1


# Of the whole process, whoever asks.
TURNS: Final = Turns()


class PasswordHasher(Argon2PasswordHasher):
    """Argon2id with 46 MiB and two passes: more than OWASP asks, and half of Django's memory.

    A hash of other costs stays valid; Django makes it anew at the next login, and in a turn as
    well.
    """

    time_cost = 2
    memory_cost = 46 * 1024
    parallelism = 1

    def encode(self, password: str, salt: str) -> str:
        with TURNS.turn():
            encoded: str = super().encode(password, salt)
            return encoded

    def verify(self, password: str, encoded: str) -> bool:
        with TURNS.turn():
            is_right: bool = super().verify(password, encoded)
            return is_right
