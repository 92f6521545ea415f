"""Reads many partitions with one librdkafka client, in a thread, for one event loop.

Knows no readers. The loop orders partitions to be read from offsets, with a number each; arriving
records carry the number, so that those of an earlier order can be recognised.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.kafka.clients import LANE_READS
from gateway.kafka.connection import Connection
from gateway.kafka.consumer import AssignedConsumer, End, Event, Failed
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.values import Place, Record

# Messages handed to the loop at once: a few milliseconds of its time.
BATCH: Final = 500
# Batches that the loop has not taken yet; the thread pauses meanwhile.
BATCHES_WAITING: Final = 2
# An idle client is closed after this, and created again on demand.
IDLE_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The pace of a lane."""

    # Data that librdkafka buffers for the thread, over all partitions.
    ahead_kbytes: int
    # How long the thread waits for records before it checks for orders.
    tick_s: float


# The next records arrive while the thread handles these.
STEADY: Final = Pace(ahead_kbytes=2 * 1024, tick_s=0.02)
# Each order wants a little from another offset: data fetched beyond it is discarded, and delays the
# next order (100 ms in twenty turns, else 3 ms).
JUMPING: Final = Pace(ahead_kbytes=1, tick_s=0.005)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """The result of one order: records in order, or an event of the partition."""

    place: Place
    order: int
    records: Sequence[Record] = ()
    # The end of the partition, if it was reached.
    end: int | None = None
    failed: KafkaFailure | None = None


class Lane:
    """Call it, and get `tell` called, on the loop. Its thread lives while there is work."""

    def __init__(
        self,
        connection: Connection,
        *,
        name: str,
        pace: Pace,
        tell: Callable[[Arrived], None],
    ) -> None:
        self._connection = connection
        self._name = name
        self._pace = pace
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._change = threading.Condition()
        self._orders: list[tuple[Place, int, int | None]] = []
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._room = threading.Semaphore(BATCHES_WAITING)
        # Used by the thread: the order number of each partition that is read.
        self._reading: dict[Place, int] = {}

    def read(self, place: Place, offset: int, order: int) -> None:
        """Read a partition from an offset on, replacing its earlier order."""
        self._say((place, order, offset))

    def stop(self, place: Place) -> None:
        self._say((place, 0, None))

    def close(self) -> threading.Thread | None:
        """Ask the thread to end, and return it if there is one."""
        with self._change:
            self._is_closed = True
            self._change.notify()
            thread = self._thread
        for _ in range(BATCHES_WAITING):
            self._room.release()
        return thread

    def _say(self, order: tuple[Place, int, int | None]) -> None:
        with self._change:
            if self._is_closed:
                return
            self._orders.append(order)
            self._change.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    # --- the thread ----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            consumer = self._consumer()
        except KafkaFailure as failed:
            self._refuse(failed)
            return
        try:
            while (orders := self._next_orders()) is not None:
                self._obey(consumer, orders)
                if self._reading:
                    events = consumer.poll(most=BATCH, wait_s=self._pace.tick_s)
                    if events:
                        self._hand_over(events)
        finally:
            consumer.close()

    def _consumer(self) -> AssignedConsumer:
        ahead = {"queued.max.messages.kbytes": self._pace.ahead_kbytes}
        return AssignedConsumer(self._connection, LANE_READS, ahead)

    def _refuse(self, failed: KafkaFailure) -> None:
        with self._change:
            orders, self._orders, self._thread = self._orders, [], None
        for place, order, offset in orders:
            if offset is not None:
                self._send([Arrived(place=place, order=order, failed=failed)])

    def _next_orders(self) -> list[tuple[Place, int, int | None]] | None:
        """Return orders; if nothing is read, wait for one. None if the thread has to end."""
        with self._change:
            if not self._reading and not self._orders and not self._is_closed:
                self._change.wait_for(lambda: self._orders or self._is_closed, IDLE_S)
                if not self._orders:
                    self._thread = None
                    return None
            if self._is_closed:
                self._thread = None
                return None
            orders, self._orders = self._orders, []
            return orders

    def _obey(
        self, consumer: AssignedConsumer, orders: Sequence[tuple[Place, int, int | None]]
    ) -> None:
        # Of several orders for one partition, only the last one counts.
        for place, (order, offset) in {one[0]: one[1:] for one in orders}.items():
            try:
                if self._reading.pop(place, None) is not None:
                    consumer.remove([place])
                if offset is not None:
                    consumer.add({place: offset})
                    self._reading[place] = order
            except KafkaFailure as failed:
                self._send([Arrived(place=place, order=order, failed=failed)])

    def _hand_over(self, events: Sequence[Event]) -> None:
        """Hand events to the loop, once it has taken enough of the earlier ones."""
        found: list[Arrived] = []
        records: dict[Place, list[Record]] = {}
        for event in events:
            if isinstance(event, Record):
                place = Place(topic=event.topic, partition=event.partition)
                if place in self._reading:
                    records.setdefault(place, []).append(event)
            # An event of the whole client is a lost broker: it reconnects by itself.
            elif (at := event.place) is not None and at in self._reading:
                found.append(
                    Arrived(
                        place=at,
                        order=self._reading[at],
                        records=records.pop(at, ()),
                        end=event.offset if isinstance(event, End) else None,
                        failed=event.failure if isinstance(event, Failed) else None,
                    )
                )
        found += [
            Arrived(place=place, order=self._reading[place], records=some)
            for place, some in records.items()
        ]
        self._send(found)

    def _send(self, found: Sequence[Arrived]) -> None:
        self._room.acquire()
        try:
            self._loop.call_soon_threadsafe(self._take, found)
        except RuntimeError:
            # The loop has ended before the lane, and needs no results.
            self._room.release()

    def _take(self, found: Sequence[Arrived]) -> None:
        self._room.release()
        if not self._is_closed:
            for one in found:
                self._tell(one)
