"""Whose turn it is among all shards of a broker: one step each, and one slice of the loop for all.

Knows no shards. A change of the cluster, or the look through all offsets, gives every shard much to
do at once; if each had a slice of its own, fifty of them would hold the loop for fifty slices.
"""

import asyncio
from collections import deque
from typing import Final, Protocol

from brokers.clock import Clock
from brokers.replication.replicas import Trouble

# What all shards together may take of one turn of the loop, and the one step that is under way.
SLICE_SECONDS: Final = 0.002


class Turning(Protocol):
    """Whoever has something to do; the flag belongs to the turns."""

    has_turn_coming: bool

    def take_turn(self) -> bool:
        """One small step; whether there are more to take."""


class Turns:
    """Belongs to the event loop."""

    __slots__ = ("_clock", "_is_coming", "_loop", "_on_trouble", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, on_trouble: Trouble) -> None:
        self._loop = loop
        self._clock = clock
        self._on_trouble = on_trouble
        self._waiting: deque[Turning] = deque()  # each of them once
        self._is_coming = False

    def __len__(self) -> int:
        return len(self._waiting)

    def come(self, who: Turning) -> None:
        """Gives somebody a turn soon, behind those who wait for theirs."""
        if not who.has_turn_coming:
            who.has_turn_coming = True
            self._waiting.append(who)
            self._come()

    def _come(self) -> None:
        if not self._is_coming:
            self._is_coming = True
            self._loop.call_soon(self._go_round)

    def _go_round(self) -> None:
        self._is_coming = False
        began = self._clock.monotonic()
        while self._waiting:
            who = self._waiting.popleft()
            who.has_turn_coming = False
            try:
                has_more = who.take_turn()
            except Exception as error:  # noqa: BLE001 - a bug in one must not stop the others
                self._on_trouble("coordinator.turn_failed", error)
                has_more = False
            if has_more and not who.has_turn_coming:
                who.has_turn_coming = True
                self._waiting.append(who)
            if self._clock.monotonic() - began >= SLICE_SECONDS:
                break
        if self._waiting:
            self._come()
