"""Produces records of many callers into many topics, through one producer, for an event loop.

`send` never waits. One thread polls the library and hands delivery reports to the loop in batches,
so that the loop wakes up once for many records. Records in flight are limited in number and bytes;
callers check `is_full` and await `room`. Nothing here creates a topic.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias

from confluent_kafka import KafkaError, Message

from gateway.kafka.clients import GATEWAY_WRITES
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure, failure
from gateway.kafka.known_topics import NO_TOPIC, KnownTopics
from gateway.kafka.producer import Done, Outcome, Producer, size_of
from gateway.kafka.values import NewRecord

log: Final = logging.getLogger(__name__)
# The topic of a record, its callback, its size, and its outcome.
Report: TypeAlias = tuple[str, Done, int, Outcome]

# Records in flight over all callers: a second's worth of small records, and room for a few of the
# largest. The library's own queue is larger, so that it never fills first.
MAX_RECORDS: Final = 20_000
MAX_BYTES: Final = 32 * 1024 * 1024
# A killed broker serves again within seconds; HTTP clients wait longer than that.
DELIVERY_S: Final = 15.0
# How soon the thread notices that it has to end; reports wake it at once.
POLL_S: Final = 0.1
# How long `close` waits for records in flight, within CLOSE_SECONDS of the worker.
CLOSE_S: Final = 1.5


class _PolledProducer:
    """A producer and the thread that polls it."""

    def __init__(
        self,
        connection: Connection,
        delivery_s: float,
        hand_over: Callable[[list[Report]], None],
    ) -> None:
        self._hand_over = hand_over
        # Only the thread writes it: the library reports only while it is polled.
        self._reports: list[Report] = []
        self._is_closing = False
        self.producer = Producer(connection, GATEWAY_WRITES, delivery_s=delivery_s)
        self._thread = threading.Thread(target=self._poll, name="deliveries", daemon=True)
        self._thread.start()

    def send(self, topic: str, record: NewRecord, size: int, done: Done) -> None:
        """Hand a record to the library; raise what it refuses at once."""
        if not self.producer.offer(topic, record, partial(self._delivered, topic, size, done)):
            raise failure("REQUEST_TIMED_OUT", f"topic {topic}", "too much is under way")

    def close(self) -> None:
        """End the thread; records in flight are reported as failed."""
        self._is_closing = True

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _poll(self) -> None:
        while True:
            if self._is_closing:
                self.producer.purge()
            self.producer.poll(0 if self._is_closing else POLL_S)
            if self._reports:
                reports, self._reports = self._reports, []
                self._hand_over(reports)
            if self._is_closing and not self.producer.in_flight():
                return

    def _delivered(
        self, topic: str, size: int, done: Done, error: KafkaError | None, message: Message
    ) -> None:
        self._reports.append((topic, done, size, self.producer.outcome(topic, error, message)))


class Deliveries:
    """The producer of one event loop."""

    def __init__(self, connection: Connection, *, delivery_s: float = DELIVERY_S) -> None:
        self.topics = KnownTopics(connection)
        self._connection = connection
        self._delivery_s = delivery_s
        self._loop = asyncio.get_running_loop()
        self._polled: _PolledProducer | None = None
        self._records = 0
        self._bytes = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._waiting: list[asyncio.Future[None]] = []

    def send(self, topic: str, record: NewRecord, done: Done) -> None:
        """Queue a record; `done` is called on the loop, later, in order within a partition.

        `topics.require` should have found the topic.
        """
        size = size_of(record)
        self._records += 1
        self._bytes += size
        self._idle.clear()
        try:
            self._open().send(topic, record, size, done)
        except KafkaFailure as failed:
            reports: list[Report] = [(topic, done, size, failed)]
            self._loop.call_soon(self._hand_over, reports)

    @property
    def is_full(self) -> bool:
        return self._records >= MAX_RECORDS or self._bytes >= MAX_BYTES

    async def room(self) -> None:
        """Wait until there is room, at most as long as a record may be in flight."""
        while self.is_full:
            waiting = self._loop.create_future()
            self._waiting.append(waiting)
            try:
                await waiting
            finally:
                with suppress(ValueError):
                    self._waiting.remove(waiting)

    def _open(self) -> _PolledProducer:
        """Return the producer; replace a broken one."""
        if self._polled is not None and self._polled.producer.is_broken:
            log.error("deliveries.client_replaced")
            self._polled.close()
            self._polled = None
        if self._polled is None:
            self._polled = _PolledProducer(self._connection, self._delivery_s, self._reported)
        return self._polled

    def _reported(self, reports: list[Report]) -> None:
        """Hand reports to the loop; called by the thread. A loop that has ended needs none."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._hand_over, reports)

    def _hand_over(self, reports: list[Report]) -> None:
        for topic, done, size, outcome in reports:
            self._records -= 1
            self._bytes -= size
            if isinstance(outcome, KafkaFailure) and outcome.name == NO_TOPIC:
                self.topics.forget(topic)
            try:
                done(outcome)
            except Exception:
                # One caller that fails must not lose the reports of the others.
                log.exception("deliveries.report_failed")
        if not self._records:
            self._idle.set()
        if self._waiting and not self.is_full:
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                if not future.done():
                    future.set_result(None)

    # --- life --------------------------------------------------------------------------------

    def drain(self) -> None:
        """Do nothing: callers stop sending, and `close` waits for records in flight."""

    async def close(self) -> None:
        """Wait a moment for records in flight, and end."""
        polled, self._polled = self._polled, None
        if polled is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await self._idle.wait()
            polled.close()
            await self._loop.run_in_executor(None, polled.join, 2 * POLL_S)
        self.topics.close()
