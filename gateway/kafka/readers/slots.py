"""Limits the searches on each broker, first come, first served.

A broker runs two searches at a time and refuses a third one; further searches wait here.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

# As many as a broker runs at a time.
PER_BROKER: Final = 2
# How often a waiting search checks whether it is still wanted.
LOOK_SECONDS: Final = 0.1


class Slots:
    """The places of all brokers."""

    def __init__(self, *, per_broker: int = PER_BROKER) -> None:
        self._per_broker = per_broker
        self._change = threading.Condition()
        # Running and waiting searches, by broker, in order of arrival.
        self._lines: dict[str, list[object]] = {}

    @contextmanager
    def place(self, broker: str, *, waits: Callable[[int], None]) -> Iterator[None]:
        """Wait for a place. `waits` is called often, with the searches ahead, and may raise."""
        ticket = object()
        with self._change:
            self._lines.setdefault(broker, []).append(ticket)
        try:
            while (ahead := self._ahead(broker, ticket)) > 0:
                waits(ahead)
                with self._change:
                    self._change.wait(LOOK_SECONDS)
            waits(0)
            yield
        finally:
            with self._change:
                self._lines[broker].remove(ticket)
                if not self._lines[broker]:
                    del self._lines[broker]
                self._change.notify_all()

    def _ahead(self, broker: str, ticket: object) -> int:
        """Return how many searches must end before this one may start."""
        with self._change:
            return max(0, self._lines[broker].index(ticket) - self._per_broker + 1)
