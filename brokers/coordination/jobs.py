"""Runs long pure work of shards step by step in one task, while requests go on.

Knows nothing of a job's purpose. Its result returns to the shard as an operation, which checks
again everything that may have changed since.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from brokers.clock import Clock
from brokers.coordination.shard import Job, Operation
from brokers.replication.replicas import Trouble
from brokers.slices import Slices

# Beyond it jobs are dropped; code that needs one requests it again.
MAX_JOBS: Final = 10_000

# Gets the operation that applies a job's result.
Submit = Callable[[Operation[Any]], None]


class Jobs:
    """Belongs to the event loop."""

    __slots__ = ("_clock", "_loop", "_on_trouble", "_task", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, on_trouble: Trouble) -> None:
        self._loop = loop
        self._clock = clock
        self._on_trouble = on_trouble
        # By owner and key; the first one is running, and stays until it is done.
        self._waiting: dict[tuple[object, str], tuple[Job[Any], Submit]] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self, owner: object, job: Job[Any], submit: Submit) -> None:
        """Queue a job, unless its owner has one with that key already."""
        key = (owner, job.key)
        if key in self._waiting:
            return
        if len(self._waiting) >= MAX_JOBS:
            self._on_trouble(
                "coordinator.job_dropped", RuntimeError(f"{job.key}: {MAX_JOBS} jobs wait already")
            )
            return
        self._waiting[key] = (job, submit)
        if self._task is None:
            self._task = self._loop.create_task(self._run())

    def forget(self, owner: object) -> None:
        """Drop the jobs of an owner, and the result of one that is running."""
        for key in [key for key in self._waiting if key[0] is owner]:
            del self._waiting[key]

    async def close(self) -> None:
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        slices = Slices(self._clock)
        try:
            while self._waiting:
                key = next(iter(self._waiting))
                await self._run_one(key, *self._waiting[key], slices)
        finally:
            self._task = None

    async def _run_one(
        self, key: tuple[object, str], job: Job[Any], submit: Submit, slices: Slices
    ) -> None:
        try:
            for _step in job.steps():
                await slices.breathe()
                if key not in self._waiting:
                    return
            found = job.done()
        except Exception as error:  # noqa: BLE001 - a bug in one job must not stop the others
            self._waiting.pop(key, None)
            self._on_trouble("coordinator.job_failed", error)
            return
        del self._waiting[key]
        submit(found)
