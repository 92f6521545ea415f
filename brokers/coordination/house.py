"""Holds what the shards of one runtime share: event loop, clock, limits and callbacks.

Knows nothing of the shards themselves.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from types import TracebackType
from typing import Generic, TypeVar

from brokers.clock import Clock
from brokers.coordination.answers import Answers
from brokers.coordination.jobs import Jobs
from brokers.coordination.rounds import MAX_ROUND_BYTES
from brokers.replication.deadlines import Deadlines
from brokers.replication.replicas import Trouble
from brokers.replication.turns import Turns

# One shard at its place.
H = TypeVar("H")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a runtime; beyond them clients get COORDINATOR_NOT_AVAILABLE and retry."""

    max_round_bytes: int = MAX_ROUND_BYTES
    max_queued: int = 20_000  # of one shard, on the way to the log or behind those
    max_parked: int = 50_000  # of all shards
    commit_timeout_ms: int = 5_000


@dataclass(slots=True, kw_only=True)
class House(Generic[H]):
    """The objects that all shards of one runtime share."""

    loop: asyncio.AbstractEventLoop
    clock: Clock
    deadlines: Deadlines
    answers: Answers
    jobs: Jobs
    turns: Turns
    limits: Limits
    on_trouble: Trouble
    # Called if a shard cannot continue: its leadership is over, or it failed to apply records.
    on_end: Callable[[H], None]
    on_round: Callable[[float], None]  # gets the seconds that a round took
    tickets: "count[int]"
    parked: int = 0

    def reporting(self, event: str) -> "Reporting":
        return Reporting(self.on_trouble, event)


class Reporting:
    """Catches and reports every error in its block, which must affect nothing behind it."""

    __slots__ = ("_event", "_on_trouble")

    def __init__(self, on_trouble: Trouble, event: str) -> None:
        self._on_trouble = on_trouble
        self._event = event

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        # An exit costs an operation less than a generator with a handler would.
        if not isinstance(error, Exception):
            return False
        self._on_trouble(self._event, error)
        return True
