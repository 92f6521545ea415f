"""Sends the responses of shards in order, in short slices of the event loop.

Knows no shards. A rebalance answers a thousand members at once, each with a message to encode, and
incoming requests must not wait for all of them. All shards share one slice of a turn, since the
disk may confirm the rounds of many of them in one turn.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from brokers.clock import Clock
from brokers.coordination.shard import Answer
from brokers.replication.replicas import Trouble

# Takes an answer; what it raises is a bug that is reported.
Done = Callable[[Answer], None]

# The share of one turn for responses; one that has begun may exceed it.
SLICE_SECONDS: Final = 0.002


class Answers:
    """Belongs to the event loop."""

    __slots__ = (
        "_clock",
        "_is_coming",
        "_is_delivering",
        "_left",
        "_loop",
        "_on_trouble",
        "_waiting",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, on_trouble: Trouble) -> None:
        self._loop = loop
        self._clock = clock
        self._on_trouble = on_trouble
        # No longer than the queues of the shards, which are bounded there.
        self._waiting: deque[tuple[Done, Answer]] = deque()
        self._is_coming = False  # a call of `_begin_turn` is scheduled
        self._left = SLICE_SECONDS  # of this turn
        self._is_delivering = False

    def __len__(self) -> int:
        return len(self._waiting)

    def give(self, done: Done, answer: Answer) -> None:
        """Deliver an answer in this turn."""
        try:
            done(answer)
        except Exception as error:  # noqa: BLE001 - the others must get theirs, whoever is broken
            self._on_trouble("coordinator.answer_failed", error)

    def add(self, done: Done, answer: Answer) -> None:
        """Queue an answer behind all that were added before."""
        self._waiting.append((done, answer))
        if not self._is_coming:
            self._is_coming = True
            self._loop.call_soon(self._begin_turn)

    def deliver(self) -> None:
        """Deliver queued answers for the rest of the slice; leave the others to later turns."""
        if not self._waiting or self._left <= 0 or self._is_delivering:
            return  # The last condition: an answered client has sent its next request at once.
        self._is_delivering = True
        began = self._clock.monotonic()
        while self._waiting:
            self.give(*self._waiting.popleft())
            spent = self._clock.monotonic() - began
            if spent >= self._left:
                break
        self._left -= spent
        self._is_delivering = False

    def _begin_turn(self) -> None:
        """Start a new slice; runs after every turn in which answers were added."""
        self._is_coming = False
        self._left = SLICE_SECONDS
        self.deliver()
        if self._waiting and not self._is_coming:
            self._is_coming = True
            self._loop.call_soon(self._begin_turn)
