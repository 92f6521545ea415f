"""Runs searches in the records of a partition, for readers of the inspection port.

Decides whether a search may begin and where; a separate process does the work (ADR 0030). That
process opens log files by name and gets offsets only: times are resolved to offsets here, and
nothing beyond the high watermark is ever read.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from brokers.config import SEARCH_BYTES_PER_SECOND
from brokers.protocol.errors import KafkaError
from brokers.replication.compactor import WorkerFailed
from brokers.replication.partition import Partition
from brokers.search import worker
from brokers.search.question import MAX_ABORTED, Bound, Job, Question, encode_job, question_of
from brokers.server.context import Context
from brokers.server.workers import streamed
from brokers.slices import Slices

# Each is a process that uses up to a core, beside a broker that uses one.
MAX_SEARCHES: Final = 2
# The time limit of a search, which then ends with its hits so far; the reader may continue there.
SEARCH_SECONDS: Final = 300.0


class SearchRefused(Exception):
    """A search cannot be answered; the message says why, and `status` is HTTP's."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Searches:
    """Belongs to the event loop."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._running = 0
        self._bytes_per_second = max(1, context.config.number(SEARCH_BYTES_PER_SECOND))

    @asynccontextmanager
    async def answer(self, body: bytes) -> AsyncIterator[AsyncIterator[bytes]]:
        """Search, and yield lines of JSON as they come; SearchRefused before the first one.

        The search ends with the block.
        """
        try:
            question = question_of(body)
        except ValueError as error:
            raise SearchRefused(400, str(error)) from None
        if self._running >= MAX_SEARCHES:
            raise SearchRefused(
                429, f"{MAX_SEARCHES} searches are running on this broker; ask again when one ends"
            )
        self._running += 1
        try:
            job = encode_job(await self._job(question))
            try:
                async with streamed(worker.__name__, job) as pieces:
                    yield _with_error(pieces)
            except WorkerFailed as error:
                raise SearchRefused(503, f"the search cannot begin: {error}") from error
        finally:
            self._running -= 1

    async def _job(self, question: Question) -> Job:
        name = (question.topic, question.partition)
        partition = self._context.replicas.led(name)
        if partition is None:
            raise SearchRefused(
                404,
                f"{question.topic}-{question.partition} is not led by this broker; "
                "ask the one that leads it",
            )
        end = partition.last_stable_offset if question.is_committed else partition.high_watermark
        try:
            start = await self._offset(partition, question.first, partition.log_start_offset, end)
            stop = await self._offset(partition, question.last, end, end)
            aborted = _aborted(partition, start, stop) if question.is_committed else []
        except KafkaError as error:
            raise SearchRefused(503, f"{error.code.name}: {error}") from error
        return Job(
            folder=partition.log.folder,
            start=max(start, partition.log_start_offset),
            end=min(stop, end),
            where=question.where,
            max_hits=question.max_hits,
            max_bytes=question.max_bytes,
            max_shown_bytes=question.max_shown_bytes,
            max_decompressed_bytes=partition.log.config.rules.max_decompressed_bytes,
            bytes_per_second=self._bytes_per_second,
            seconds=SEARCH_SECONDS,
            aborted=aborted,
        )

    async def _offset(self, partition: Partition, bound: Bound, default: int, end: int) -> int:
        """Return the offset of a bound; the one after the last record if all are older."""
        if bound.offset is not None:
            return bound.offset
        if bound.time is None:
            return default
        slices, steps = Slices(self._context.clock), partition.search_timestamp(bound.time)
        while True:
            try:
                next(steps)
            except StopIteration as found:
                return end if found.value is None else int(found.value.offset)
            await slices.breathe()


def _aborted(partition: Partition, start: int, stop: int) -> list[tuple[int, int, int]]:
    found = partition.aborted_transactions(start, stop) if start < stop else []
    if len(found) > MAX_ABORTED:
        raise SearchRefused(
            400,
            f"{len(found)} transactions were aborted in the range, {MAX_ABORTED} are allowed; "
            "search a smaller range, or read_uncommitted",
        )
    return [(txn.producer_id, txn.first_offset, txn.last_offset) for txn in found]


async def _with_error(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines, and an error line if the process failed."""
    try:
        async for piece in pieces:
            yield piece
    except WorkerFailed as error:
        line = {"kind": "error", "message": f"the search ended early: {error}"}
        yield b"\n" + json.dumps(line).encode() + b"\n"
