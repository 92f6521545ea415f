"""Produces records of many callers into many topics, through one producer, for an event loop.

`send` never waits. One thread polls the library and hands delivery reports to the loop in batches,
so that the loop wakes up once for many records. Records in flight are limited in number and bytes;
callers check `is_full` and await `room`. Nothing here creates a topic.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import Producer as Client

from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection, Reach
from gateway.kafka.errors import KafkaFailure, failure, from_exception, translated
from gateway.kafka.header_names import require_names
from gateway.kafka.values import Delivered, NewRecord, Topic

log: Final = logging.getLogger(__name__)
Done = Callable[[Delivered | KafkaFailure], None]
# The topic of a record, its callback, its size, and its outcome.
Report = tuple[str, Done, int, Delivered | KafkaFailure]

# Records in flight over all callers: a second's worth of small records, and room for a few of the
# largest.
MAX_RECORDS: Final = 20_000
MAX_BYTES: Final = 32 * 1024 * 1024
# The largest record that librdkafka accepts; the broker enforces the topic's own limit.
MAX_RECORD_BYTES: Final = 64 * 1024 * 1024
# The library's own queue is larger than ours, so that it never fills first.
MAX_QUEUED_RECORDS: Final = 10 * MAX_RECORDS
MAX_QUEUED_KBYTES: Final = 4 * MAX_RECORD_BYTES // 1024
# A killed broker serves again within seconds; HTTP clients wait longer than that.
DELIVERY_S: Final = 15.0
# Long enough to fill a batch from one piece of a stream, short beside an HTTP round trip.
LINGER_MS: Final = 2
# A batch of many small records must not exceed the topic's limit for one large record.
BATCH_BYTES: Final = 256 * 1024
# How soon the thread notices that it has to end; reports wake it at once.
POLL_S: Final = 0.1
# How long a lookup of a topic may take while callers wait for it.
LOOKUP_S: Final = 5.0
# A topic is looked up before a record is sent; the producer's broker may know it later.
UNKNOWN_TOPIC_MS: Final = 2_000
# Concurrent lookups, one for each topic; one thread takes milliseconds for each.
MAX_LOOKUPS: Final = 200
# A topic is looked up again after this, so that writes to a deleted topic end soon.
KNOWN_S: Final = 30.0
# Partitions are seldom added: a number beyond the last is looked up once in this time.
LOOK_AGAIN_S: Final = 1.0
# Topics that are cached; a name and two numbers each.
MAX_KNOWN: Final = 20_000
# How long `close` waits for records in flight, within CLOSE_SECONDS of the worker.
CLOSE_S: Final = 1.5

NO_TOPIC: Final = "UNKNOWN_TOPIC_OR_PARTITION"


@dataclass(slots=True, kw_only=True)
class _Known:
    """An existing topic, as of its last lookup."""

    partitions: int
    at: float


class _Line:
    """One producer of the library and the thread that polls it."""

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
        self.is_broken = False
        self._reach = Reach(connection.bootstrap)
        settings = connection.settings(
            self._reach,
            enable_idempotence=True,
            acks="all",
            message_max_bytes=MAX_RECORD_BYTES,
            queue_buffering_max_messages=MAX_QUEUED_RECORDS,
            queue_buffering_max_kbytes=MAX_QUEUED_KBYTES,
            batch_size=BATCH_BYTES,
            linger_ms=LINGER_MS,
            # Java's client sends equal keys to the same partition.
            partitioner="murmur2_random",
            message_timeout_ms=int(delivery_s * 1000),
            # A record must not bring back a topic that was deleted since its lookup. The property
            # is one of consumers, but the library honours it for producers, too.
            allow_auto_create_topics=False,
            topic_metadata_propagation_max_ms=UNKNOWN_TOPIC_MS,
        )
        try:
            self.client = Client(settings)
        except (KafkaException, ValueError, TypeError) as error:
            raise from_exception(error, connection.bootstrap) from error
        self._thread = threading.Thread(target=self._poll, name="deliveries", daemon=True)
        self._thread.start()

    def send(self, topic: str, record: NewRecord, size: int, done: Done) -> None:
        """Hand a record to the library; raise what it refuses at once."""
        require_names(record)
        try:
            self.client.produce(
                topic,
                value=record.value,
                key=record.key,
                partition=-1 if record.partition is None else record.partition,
                headers=list(record.headers) or None,
                timestamp=record.timestamp_ms or 0,
                on_delivery=partial(self._delivered, topic, size, done),
            )
        except BufferError:
            raise failure("REQUEST_TIMED_OUT", f"topic {topic}", "too much is under way") from None
        except (KafkaException, ValueError, TypeError) as error:
            self._note_fatal(error.args[0] if isinstance(error, KafkaException) else None)
            raise from_exception(error, f"a record of {size} bytes for topic {topic}") from error

    def close(self) -> None:
        """End the thread; records in flight are reported as failed."""
        self._is_closing = True

    def joined(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _poll(self) -> None:
        while True:
            if self._is_closing:
                self.client.purge()
            self.client.poll(0 if self._is_closing else POLL_S)
            if self._reports:
                reports, self._reports = self._reports, []
                self._hand_over(reports)
            if self._is_closing and not len(self.client):
                return

    def _delivered(
        self, topic: str, size: int, done: Done, error: KafkaError | None, message: Message
    ) -> None:
        """Take the library's report on one record; an exception here would lose the others."""
        if error is None:
            self._reach.heard()
            _, timestamp = message.timestamp()
            told: Delivered | KafkaFailure = Delivered(
                partition=message.partition() or 0,
                offset=message.offset() or 0,
                timestamp_ms=timestamp,
            )
        else:
            self._note_fatal(error)
            told = self._failed(error, topic, message.partition())
        self._reports.append((topic, done, size, told))

    def _failed(self, error: KafkaError, topic: str, partition: int | None) -> KafkaFailure:
        timed_out = KafkaError._MSG_TIMED_OUT  # noqa: SLF001 - a documented constant
        if error.code() == timed_out and self._reach.is_down():
            return self._reach.failure()
        is_placed = partition is not None and partition >= 0
        return translated(error, f"topic {topic}" + (f", partition {partition}" * is_placed))

    def _note_fatal(self, error: object) -> None:
        if isinstance(error, KafkaError) and error.fatal():
            self.is_broken = True


class Deliveries:
    """The producer of one event loop."""

    def __init__(self, connection: Connection, *, delivery_s: float = DELIVERY_S) -> None:
        self._connection = connection
        self._delivery_s = delivery_s
        self._loop = asyncio.get_running_loop()
        self._line: _Line | None = None
        self._records = 0
        self._bytes = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._waiting: list[asyncio.Future[None]] = []
        self._known: dict[str, _Known] = {}
        self._lookups: dict[str, asyncio.Task[_Known]] = {}
        # Not thread-safe, so it is created in the thread of lookups.
        self._admin: Admin | None = None
        self._asker = ThreadPoolExecutor(1, thread_name_prefix="topic-lookup")

    # --- topics ------------------------------------------------------------------------------

    def is_known(self, topic: str, partition: int | None = None) -> bool:
        """Tell whether a topic can be sent to without `require`, which may wait."""
        known = self._known.get(topic)
        return (
            known is not None
            and time.monotonic() - known.at < KNOWN_S
            and (partition is None or partition < known.partitions)
        )

    async def require(self, topic: str, partition: int | None = None) -> int:
        """Return the number of a topic's partitions. Raises KafkaFailure if it does not exist."""
        if not self.is_known(topic, partition):
            await self._look_up(topic)
        count = self._known[topic].partitions
        if partition is not None and partition >= count:
            raise failure(
                NO_TOPIC, f"topic {topic}, partition {partition}", f"{topic!r} has {count} of them"
            )
        return count

    async def _look_up(self, topic: str) -> None:
        known = self._known.get(topic)
        if known is not None and time.monotonic() - known.at < LOOK_AGAIN_S:
            return
        lookup = self._lookups.get(topic)
        if lookup is None:
            if len(self._lookups) >= MAX_LOOKUPS:
                raise failure(
                    "REQUEST_TIMED_OUT", f"topic {topic}", "too many topics are asked for at once"
                )
            lookup = self._lookups[topic] = self._loop.create_task(self._ask(topic))
            lookup.add_done_callback(lambda over: self._looked_up(topic, over))
        try:
            # A caller that leaves must not cancel the lookup for the others.
            found = await asyncio.shield(lookup)
        except KafkaFailure as failed:
            if failed.name == NO_TOPIC or known is None:
                self._known.pop(topic, None)
                raise
            # The topic still exists while the cluster is briefly silent; the record waits for it.
            known.at = time.monotonic()
            return
        if len(self._known) >= MAX_KNOWN:
            self._known.pop(next(iter(self._known)))
        self._known[topic] = found

    def _looked_up(self, topic: str, over: asyncio.Task[_Known]) -> None:
        self._lookups.pop(topic, None)
        if not over.cancelled():
            # All callers may have left, so retrieve the exception here.
            over.exception()

    async def _ask(self, topic: str) -> _Known:
        found = await self._loop.run_in_executor(self._asker, self._find, topic)
        if found is None:
            raise failure(NO_TOPIC, f"topic {topic}")
        return _Known(partitions=len(found.partitions), at=time.monotonic())

    def _find(self, topic: str) -> Topic | None:
        """Ask the cluster; in the lookup thread. A lookup by a producer would create the topic."""
        if self._admin is None:
            self._admin = Admin(replace(self._connection, timeout_s=LOOKUP_S))
        return self._admin.find([topic]).get(topic)

    # --- records -----------------------------------------------------------------------------

    def send(self, topic: str, record: NewRecord, done: Done) -> None:
        """Queue a record; `done` is called on the loop, later, in order within a partition.

        `require` should have found the topic.
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

    def _open(self) -> _Line:
        """Return the producer; replace a broken one."""
        if self._line is not None and self._line.is_broken:
            log.error("deliveries.client_replaced")
            self._line.close()
            self._line = None
        if self._line is None:
            self._line = _Line(self._connection, self._delivery_s, self._reported)
        return self._line

    def _reported(self, reports: list[Report]) -> None:
        """Hand reports to the loop; called by the thread. A loop that has ended needs none."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._hand_over, reports)

    def _hand_over(self, reports: list[Report]) -> None:
        for topic, done, size, told in reports:
            self._records -= 1
            self._bytes -= size
            if isinstance(told, KafkaFailure) and told.name == NO_TOPIC:
                self._known.pop(topic, None)
            try:
                done(told)
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
        line, self._line = self._line, None
        if line is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await self._idle.wait()
            line.close()
            await self._loop.run_in_executor(None, line.joined, 2 * POLL_S)
        self._asker.shutdown(wait=False, cancel_futures=True)


def size_of(record: NewRecord) -> int:
    """Return roughly how much memory a record takes while in flight."""
    size = len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += len(name) + len(value or b"")
    return size
